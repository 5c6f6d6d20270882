// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// refusalAge is how long an engine's refusal of a setting counts. What it refuses may depend
// on its surroundings, such as the number of files it may open.
const refusalAge = 10 * time.Minute

// settingsOf are the settings that the last reconciliation left in redis.conf; nil when there was none.
func settingsOf(cluster *v1alpha1.RedisCluster) map[string]string {
	if len(cluster.Status.Settings) == 0 {
		return nil
	}
	settings := map[string]string{}
	for _, s := range cluster.Status.Settings {
		settings[s.Name] = s.Value
	}
	return settings
}

// refusals are those that still count.
func refusals(cluster *v1alpha1.RedisCluster, now time.Time) []snapshot.Refusal {
	var list []snapshot.Refusal
	for _, r := range cluster.Status.RefusedSettings {
		if now.Sub(r.Time.Time) < refusalAge {
			list = append(list, snapshot.Refusal{Name: r.Name, Value: r.Value, Engine: r.Engine, Message: r.Message, Immutable: r.Immutable,
				At: r.Time.Time})
		}
	}
	return list
}

// settingNames are the settings that instances are asked for: those that the cluster asks
// for, those that its redis.conf held before, and those that the operator itself changes.
func settingNames(cluster *v1alpha1.RedisCluster, config snapshot.UserConfig) []string {
	names := append(redisconf.Momentary(), redisconf.NoFailover) // who was told that is told otherwise, whatever is remembered of it
	for _, s := range redisconf.AskedFor(cluster, config.Settings) {
		names = append(names, s.Name)
	}
	for _, s := range cluster.Status.Settings {
		names = append(names, s.Name)
	}
	if cluster.Spec.TLS != nil {
		names = append(names, redisconf.TLSSettingNames()...)
	}
	if cluster.Spec.Hibernate || len(cluster.Status.HibernatedInstances) > 0 {
		names = append(names, "appendonly")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// longestWords is the limit of kubelets for a termination message.
const longestWords = 4096

// terminationMessage are what the container of Redis said when it last ended badly. The kubelet takes
// them from the end of its log (terminationMessagePolicy).
func terminationMessage(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if c.Name != redisContainer {
			continue
		}
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil && t.ExitCode != 0 {
				return t.Message[max(0, len(t.Message)-longestWords):]
			}
		}
	}
	return ""
}

// configRead is what was read of the user's ConfigMap.
type configRead struct {
	name     string
	settings map[string]string
	read     byname.Reading
}

// config reads redis.conf of the ConfigMap that the pod template names; it is empty when that names
// none. It is read again when it has changed, or is older than a minute where nobody tells, and at once
// while something is wrong with it. An error means that it could not be read, now or before.
func (o *Observer) config(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) (snapshot.UserConfig, error) {
	name := cluster.Spec.Template().Configmap
	if name == "" || cluster.DeletionTimestamp != nil {
		return snapshot.UserConfig{}, nil
	}
	last := &m.config
	if last.name == name && o.fresh(last.read) {
		return snapshot.UserConfig{Settings: last.settings}, nil
	}
	var config corev1.ConfigMap
	reads := &byname.Reads{Reader: o.Secrets}
	switch err := reads.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &config); {
	case apierrors.IsNotFound(err):
		return snapshot.UserConfig{
			Problem: fmt.Sprintf("spec.pod[0].configmap: ConfigMap %s does not exist in namespace %s: create it, or remove the field", name,
				cluster.Namespace)}, nil
	case err != nil && last.name == name:
		return snapshot.UserConfig{Settings: last.settings}, nil // the API server is away, and what was read goes on to be right
	case err != nil:
		return snapshot.UserConfig{}, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	text, found := config.Data["redis.conf"]
	if !found {
		return snapshot.UserConfig{
			Problem: fmt.Sprintf("spec.pod[0].configmap: ConfigMap %s has no key redis.conf: add it, or remove the field", name)}, nil
	}
	settings, err := redisconf.ParseConfig(text)
	if err != nil {
		return snapshot.UserConfig{Problem: fmt.Sprintf("spec.pod[0].configmap: %v", err)}, nil
	}
	*last = configRead{name: name, settings: settings, read: reads.At(o.now())}
	return snapshot.UserConfig{Settings: settings}, nil
}
