// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// secured is a bench whose operator's Secret is in a state, for a cluster that asks for a rotation.
func secured(t *testing.T, state access.State, rotate string, fails interceptor.Funcs) *bench {
	t.Helper()
	owner := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-auth",
		Labels:          map[string]string{apply.ManagedByLabel: apply.ManagedByValue, v1alpha1.LabelCluster: "c"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("RedisCluster"))}},
		Type: corev1.SecretTypeOpaque}
	state.Write(secret)
	b := newBench(t, fails, secret)
	b.subject.Cluster.Spec.Auth.Rotate = rotate
	return b
}

func (b *bench) state() access.State {
	b.t.Helper()
	reading, err := access.Reader{Client: b.actor.Client}.Read(b.t.Context(), b.subject.Cluster)
	if err != nil || reading.State == nil {
		b.t.Fatalf("%v %s", err, reading.Problem)
	}
	return *reading.State
}

// A stage of a change of the password is taken only from the one before it, as the Secret says now.
func TestPasswordStages(t *testing.T) {
	began := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	steady := access.State{Password: "one", Exporter: "e", Backup: "b", Token: "1", ChangedAt: began}
	accepting := access.State{Password: "one", Next: "two", Exporter: "e", Backup: "b", Token: "1", ChangedAt: began}
	retiring := access.State{Password: "two", Previous: "one", Exporter: "e", Backup: "b", Token: "1", ChangedAt: began}
	for name, tt := range map[string]struct {
		state  access.State
		rotate string
		to     plan.PasswordStep
		want   access.State
	}{
		"the next one is published":       {accepting, "1", plan.PublishPassword, retiring},
		"not one that is to change again": {accepting, "2", plan.PublishPassword, accepting},
		"not where there is none":         {steady, "1", plan.PublishPassword, steady},
		"the previous one is retired": {retiring, "1", plan.RetirePassword,
			access.State{Password: "two", Exporter: "e", Backup: "b", Token: "1"}},
		"not when it is to change again":      {retiring, "2", plan.RetirePassword, retiring},
		"not before the next is published":    {accepting, "1", plan.RetirePassword, accepting},
		"nothing is accepted that is not due": {steady, "1", plan.AcceptPassword, steady},
		"no users are asked for":              {steady, "1", plan.AcceptUsers, steady},
	} {
		t.Run(name, func(t *testing.T) {
			b := secured(t, tt.state, tt.rotate, interceptor.Funcs{})
			b.must(plan.ChangePassword{To: tt.to, On: b.targets})
			if diff := cmp.Diff(tt.want, b.state(), cmpopts.IgnoreFields(access.State{}, "ChangedAt"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
	b := secured(t, steady, "2", interceptor.Funcs{})
	b.must(plan.ChangePassword{To: plan.AcceptPassword})
	if got := b.state(); got.Next == "" || got.Token != "2" || got.Password != "one" {
		t.Errorf("another one is asked for, and the state is %+v", got)
	}
	conflict := errors.New("conflict")
	b = secured(t, accepting, "1", interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return conflict }})
	if err := b.do(plan.ChangePassword{To: plan.PublishPassword}); !errors.Is(err, conflict) {
		t.Errorf("the Secret was not written, and got %v", err)
	}
}
