// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// passwords remembers what was read: Secrets are neither cached nor watched, and an idle
// cluster costs no request. A password that Redis refuses is read again.
type passwords struct {
	mu    sync.Mutex
	known map[types.UID]string
}

func (p *passwords) get(uid types.UID) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	password, ok := p.known[uid]
	return password, ok
}

func (p *passwords) put(uid types.UID, password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[types.UID]string{}
	}
	p.known[uid] = password
}

func (p *passwords) drop(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, uid)
}

// Forget drops what is remembered of a cluster.
func (o *Observer) Forget(uid types.UID) {
	o.passwords.drop(uid)
	o.settings.drop(uid)
	o.seen.drop(uid)
	o.asked.forget(uid)
}

// Credentials are what the instances of a cluster accept, as last observed.
func (o *Observer) Credentials(cluster *v1alpha1.RedisCluster) redis.Credentials {
	password, _ := o.passwords.get(cluster.UID)
	return redis.Credentials{Password: password}
}

func (o *Observer) auth(ctx context.Context, cluster *v1alpha1.RedisCluster) (snapshot.Auth, redis.Credentials, error) {
	if !cluster.AuthEnabled() {
		return snapshot.Auth{Known: true}, redis.Credentials{}, nil
	}
	if password, ok := o.passwords.get(cluster.UID); ok {
		return snapshot.Auth{Known: true}, redis.Credentials{Password: password}, nil
	}
	var secret corev1.Secret
	err := o.Secrets.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.AuthSecretName()}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return snapshot.Auth{Absent: true}, redis.Credentials{}, nil
	case apierrors.IsForbidden(err):
		return snapshot.Auth{Problem: o.forbidden(cluster)}, redis.Credentials{}, nil
	case err != nil:
		return snapshot.Auth{}, redis.Credentials{}, fmt.Errorf("read the Secret of the password: %w", err)
	}
	if secret.Labels[v1alpha1.LabelCluster] != cluster.Name {
		// Its lines must not become configuration, nor its password a password of Redis.
		return snapshot.Auth{Problem: fmt.Sprintf("Secret %s exists and was not made for this cluster: delete it, or choose another name for the cluster", secret.Name)},
			redis.Credentials{}, nil
	}
	password := secret.Data[v1alpha1.SecretKeyPassword]
	if len(password) == 0 || len(secret.Data[v1alpha1.SecretKeyConfig]) == 0 {
		return snapshot.Auth{Problem: fmt.Sprintf("the Secret %s lacks the keys %s and %s: restore them, or delete the Secret so that it is made anew",
			secret.Name, v1alpha1.SecretKeyPassword, v1alpha1.SecretKeyConfig)}, redis.Credentials{}, nil
	}
	o.passwords.put(cluster.UID, string(password))
	return snapshot.Auth{Known: true}, redis.Credentials{Password: string(password)}, nil
}

// forbidden says how to let the operator keep Secrets in a namespace.
func (o *Observer) forbidden(cluster *v1alpha1.RedisCluster) string {
	return fmt.Sprintf("the operator may not keep Secrets in namespace %s; allow it with: kubectl create rolebinding middleware-operator --namespace %s --clusterrole middleware-operator-namespace --serviceaccount %s",
		cluster.Namespace, cluster.Namespace, o.ServiceAccount)
}

// forgetRefusedPassword makes the next pass read the Secret again.
func (o *Observer) forgetRefusedPassword(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) {
	for i := range s.Instances {
		if s.Instances[i].Refused {
			o.passwords.drop(cluster.UID)
			return
		}
	}
}
