// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
}

func TestExpandPVCs(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, claim("data-c-0-0"), claim("data-c-1-0"))
	b.must(plan.ExpandPVCs{Claims: []string{"data-c-0-0"}, Bytes: 2 << 30})
	for name, want := range map[string]string{"data-c-0-0": "2Gi", "data-c-1-0": "1Gi"} {
		var got corev1.PersistentVolumeClaim
		if err := b.actor.Client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: name}, &got); err != nil {
			t.Fatal(err)
		}
		if size := got.Spec.Resources.Requests.Storage().String(); size != want {
			t.Errorf("%s asks for %s, want %s", name, size, want)
		}
	}
}

// A storage class that does not expand refuses: that takes someone, so it is not an error
// to try again.
func TestExpandPVCsRefused(t *testing.T) {
	refuse := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data-c-0-0", errors.New("the storageclass must support resize"))
	}}
	err := newBench(t, refuse, claim("data-c-0-0")).do(plan.ExpandPVCs{Claims: []string{"data-c-0-0"}, Bytes: 2 << 30})
	var stall *StallError
	if !errors.As(err, &stall) || stall.Cause != "CannotExpand" {
		t.Fatalf("got %v, want to be stalled", err)
	}
	for _, part := range []string{"spec.storage.size", "data-c-0-0", "allowVolumeExpansion: true", "set the size back to 1Gi"} {
		if !strings.Contains(stall.Message, part) {
			t.Errorf("%q does not say %q", stall.Message, part)
		}
	}
}

// What grew by itself is not taken back by the size.
func TestExpandPVCsRefusedBeyondTheSize(t *testing.T) {
	refuse := interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data-c-0-0", errors.New("exceeded quota"))
	}}
	err := newBench(t, refuse, claim("data-c-0-0")).do(plan.ExpandPVCs{Claims: []string{"data-c-0-0"}, Bytes: 2 << 30, ByData: true})
	var stall *StallError
	if errors.As(err, &stall) {
		t.Errorf("%v holds back what else is to be done", err)
	}
	for _, part := range []string{"spec.storage.maxSize: ", "exceeded quota", "or remove maxSize"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}
