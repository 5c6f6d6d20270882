// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// refusalAge is how long an engine's refusal of a setting counts. What it refuses may depend
// on its surroundings, such as the number of files it may open.
const refusalAge = 10 * time.Minute

// settingsOf are the settings that the last pass left in redis.conf; nil when there was none.
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
			list = append(list, snapshot.Refusal{Name: r.Name, Value: r.Value, Engine: r.Engine, Message: r.Message, Immutable: r.Immutable, At: r.Time.Time})
		}
	}
	return list
}

// settingNames are the settings that instances are asked for: those that the cluster asks
// for, those that its redis.conf held before, and those that the operator itself changes.
func (o *Observer) settingNames(ctx context.Context, cluster *v1alpha1.RedisCluster) []string {
	// Why the user's ConfigMap cannot be read is told when the children are rendered.
	text, _, _ := o.Settings(ctx, cluster, o.now())
	configMap, _ := values.ParseConfig(text)
	names := values.Momentary()
	for _, s := range values.AskedFor(cluster, configMap) {
		names = append(names, s.Name)
	}
	for _, s := range cluster.Status.Settings {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// longestWords is the limit of kubelets for a termination message.
const longestWords = 4096

// lastWords are what the container of Redis said when it last ended badly. The kubelet takes
// them from the end of its log (terminationMessagePolicy).
func lastWords(pod *corev1.Pod) string {
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

// echoes remember values that an engine took and shows in other words, so that they are not
// set for ever.
type echoes struct {
	mu    sync.Mutex
	known map[types.UID]map[string]echo // by setting
}

type echo struct{ value, shown string }

// NoteEcho notes that a cluster's engine shows a value that it was given in other words.
func (o *Observer) NoteEcho(uid types.UID, name, value, shown string) {
	o.echoes.mu.Lock()
	defer o.echoes.mu.Unlock()
	if o.echoes.known == nil {
		o.echoes.known = map[types.UID]map[string]echo{}
	}
	if o.echoes.known[uid] == nil {
		o.echoes.known[uid] = map[string]echo{}
	}
	o.echoes.known[uid][name] = echo{value: value, shown: shown}
}

// translate puts what was given in place of what is shown.
func (e *echoes) translate(uid types.UID, s *snapshot.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, echo := range e.known[uid] {
		for _, in := range s.Reachable() {
			if in.Redis.Settings[name] == echo.shown {
				in.Redis.Settings[name] = echo.value
			}
		}
	}
}

func (e *echoes) forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, uid)
}
