// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// settingsAge is how old the user's ConfigMap may be. It carries no label of ours, so it
// is read by name and not watched.
const settingsAge = time.Minute

type settings struct {
	mu    sync.Mutex
	known map[types.UID]settingsRead
}

type settingsRead struct {
	name, text string
	at         time.Time
}

func (s *settings) drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, uid)
}

// ForgetSettings makes the next pass read the ConfigMap again.
func (o *Observer) ForgetSettings(uid types.UID) { o.settings.drop(uid) }

// Settings reads redis.conf of the ConfigMap that the pod template names; empty when it
// names none. It is read again when it is older than a minute. problem says, with a
// remedy, why there is none.
func (o *Observer) Settings(ctx context.Context, cluster *v1alpha1.RedisCluster, now time.Time) (text, problem string, err error) {
	name := cluster.Spec.Template().Configmap
	if name == "" {
		return "", "", nil
	}
	o.settings.mu.Lock()
	read, ok := o.settings.known[cluster.UID]
	o.settings.mu.Unlock()
	if ok && read.name == name && now.Sub(read.at) < settingsAge {
		return read.text, "", nil
	}
	var config corev1.ConfigMap
	err = o.Secrets.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &config)
	if apierrors.IsNotFound(err) {
		return "", fmt.Sprintf("spec.pod[0].configmap: ConfigMap %s does not exist in namespace %s: create it, or remove the field", name, cluster.Namespace), nil
	}
	if err != nil {
		return "", "", fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	text, ok = config.Data["redis.conf"]
	if !ok {
		return "", fmt.Sprintf("spec.pod[0].configmap: ConfigMap %s has no key redis.conf: add it, or remove the field", name), nil
	}
	o.settings.mu.Lock()
	defer o.settings.mu.Unlock()
	if o.settings.known == nil {
		o.settings.known = map[types.UID]settingsRead{}
	}
	o.settings.known[cluster.UID] = settingsRead{name: name, text: text, at: now}
	return text, "", nil
}
