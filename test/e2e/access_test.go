// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// password is what clients are told.
func password(t *testing.T, cluster *v1alpha1.RedisCluster) string {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.AuthSecretName()}}
	if err := live.Get(t, secret); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data[v1alpha1.SecretKeyPassword])
}

// awaitStage waits until a change of the password has come to a stage, empty for its end.
func awaitStage(t *testing.T, cluster *v1alpha1.RedisCluster, stage string) {
	t.Helper()
	live.Eventually(t, fmt.Sprintf("the password change is %q", stage), func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) {
			return errors.New(cluster.Status.Reason)
		}
		switch change := cluster.Status.PasswordChange; {
		case change == nil && stage != "":
			return errors.New("none is under way")
		case change != nil && change.Stage != stage:
			return fmt.Errorf("it is %+v", change)
		}
		return nil
	})
}

// A password changes under the load of an application that knows the one before, and connects anew with it all the time. Nothing
// restarts and nothing fails; an application that starts afterwards uses the new one.
func TestRedisClusterPasswordChanges(t *testing.T) {
	shownElsewhere(t, "TestPasswordChangesUnderLoad of test/engine; TestPasswordOfASecret of test/apiserver")
	t.Parallel() // it waits most of the time
	for _, engine := range newest() {
		t.Run(engine.name, func(t *testing.T) {
			live.Scenario(t, func(t *testing.T, run *live.Run) {
				cluster := newCluster(live.NewNamespace(t), "cache")
				cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
				cluster.Spec.Auth.PreviousPasswordFor = &metav1.Duration{Duration: 2 * time.Minute}
				load := underLoad(t, cluster, 1000)
				pods, before := podUIDs(t, cluster), password(t, cluster)

				start := time.Now()
				live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Auth.Rotate = "once" })
				awaitStage(t, cluster, "Accepting")
				if password(t, cluster) != before {
					t.Error("clients are told the next password at once")
				}
				awaitStage(t, cluster, "Retiring")
				t.Logf("clients were told the new password after %.0f s", time.Since(start).Seconds())
				if password(t, cluster) == before {
					t.Error("clients are still told the old password")
				}
				run.WantUnnoticed(load, live.NothingMoved)
				later := live.NewLoad(t, cluster)
				later.Start()
				awaitStage(t, cluster, "")
				t.Logf("the old password is refused after %.0f s", time.Since(start).Seconds())
				run.WantUnnoticed(later, live.NothingMoved)
				if after := podUIDs(t, cluster); !maps.Equal(after, pods) {
					t.Errorf("pods are %v, were %v", after, pods)
				}
			})
		})
	}
}
