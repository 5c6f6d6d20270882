// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// cert-manager writes over a Secret only if it is meant for that, and belongs to nobody else.
func TestSecretOfACertificate(t *testing.T) {
	const labelled = true
	secret := func(labelled bool, writer string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-tls", Annotations: map[string]string{}}}
		if labelled {
			s.Labels = map[string]string{v1alpha1.LabelTLS: "true"}
		}
		if writer != "" {
			s.Annotations[annotationCertificate] = writer
		}
		return s
	}
	another := func(namespace string, tls *v1alpha1.TLS) *v1alpha1.RedisCluster {
		return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other", UID: "other"},
			Spec: v1alpha1.RedisClusterSpec{TLS: tls}}
	}
	for name, tt := range map[string]struct {
		there []client.Object
		want  string
	}{
		"there is none":                      {},
		"nobody meant it for that":           {[]client.Object{secret(!labelled, "")}, "kubectl label secret c-tls --namespace n"},
		"nobody did, whoever wrote it":       {[]client.Object{secret(!labelled, "c-tls")}, "kubectl label secret c-tls --namespace n"},
		"it is meant for that":               {[]client.Object{secret(labelled, "")}, ""},
		"written for its Certificate before": {[]client.Object{secret(labelled, "c-tls"), another("n", &v1alpha1.TLS{SecretName: "c-tls"})}, ""},
		"written for another Certificate":    {[]client.Object{secret(labelled, "web")}, "the certificate of Certificate web in Secret c-tls"},
		"another cluster's certificate": {[]client.Object{secret(labelled, ""), another("n", &v1alpha1.TLS{SecretName: "c-tls"})},
			"RedisCluster other uses Secret c-tls"},
		"another cluster's CA": {[]client.Object{secret(labelled, ""), another("n", &v1alpha1.TLS{SecretName: "d", CASecretName: "c-tls"})},
			"RedisCluster other uses Secret c-tls"},
		"the CA of another cluster's clients": {[]client.Object{secret(labelled, ""),
			another("n", &v1alpha1.TLS{SecretName: "d", ClientCASecretName: "c-tls"})}, "RedisCluster other uses Secret c-tls"},
		"in another namespace":  {[]client.Object{secret(labelled, ""), another("m", &v1alpha1.TLS{SecretName: "c-tls"})}, ""},
		"another cluster's TLS": {[]client.Object{secret(labelled, ""), another("n", &v1alpha1.TLS{SecretName: "d"})}, ""},
		"others without TLS":    {[]client.Object{secret(labelled, ""), another("n", nil)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{}, tt.there...)
			err := b.actor.freeForCertificate(t.Context(), b.subject.Cluster)
			var stall *StallError
			if tt.want == "" && err != nil || tt.want != "" &&
				(!errors.As(err, &stall) || stall.Cause != "NameTaken" || !strings.Contains(stall.Message, tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	b := newBench(t, interceptor.Funcs{}, secret(labelled, ""))
	b.subject.Cluster.Spec.TLS = &v1alpha1.TLS{CASecretName: "c-tls"}
	if err := b.actor.Client.Update(t.Context(), b.subject.Cluster); err != nil {
		t.Fatal(err)
	}
	if err := b.actor.freeForCertificate(t.Context(), b.subject.Cluster); err != nil {
		t.Errorf("the cluster itself uses it: %v", err)
	}
	timeout := errors.New("timeout")
	for name, fails := range map[string]interceptor.Funcs{
		"the Secret": {Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if key.Name == "c-tls" {
				return timeout
			}
			return c.Get(ctx, key, o, options...)
		}},
		"other clusters": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return timeout }},
	} {
		b := newBench(t, fails, secret(labelled, ""))
		if err := b.actor.freeForCertificate(t.Context(), b.subject.Cluster); !errors.Is(err, timeout) {
			t.Errorf("%s cannot be read: %v", name, err)
		}
	}
}

// The Services whose names a certificate holds are made before it is asked for, and it is not where one cannot be. What is for clients
// outside, and all else, is not waited for.
func TestServicesComeBeforeTheCertificate(t *testing.T) {
	timeout := errors.New("timeout")
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "c-nodes", nil)
	child := func(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetNamespace("n")
		o.SetName(name)
		return o
	}
	service := corev1.SchemeGroupVersion.WithKind("Service")
	for name, tt := range map[string]struct {
		there  []client.Object
		answer map[string]error
		made   []string
		stall  string
		fails  error
	}{
		"all is made": {made: []string{"c-nodes", "c-tls"}},
		"a Service is somebody's": {there: []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-nodes",
			OwnerReferences: []metav1.OwnerReference{*theirs}}}}, stall: "NameTaken"},
		"a Service is refused":         {answer: map[string]error{"c-nodes": refused}, made: []string{"c-nodes"}, stall: "Rejected"},
		"cert-manager does not answer": {answer: map[string]error{"c-tls": timeout}, made: []string{"c-nodes", "c-tls"}, fails: timeout},
	} {
		var made []string
		b := newBench(t, interceptor.Funcs{})
		kube := applying(t, func(name string) error {
			made = append(made, name)
			return tt.answer[name]
		}, tt.there...)
		b.actor.Applier = apply.New(kube, kube)
		b.subject.Certificate = child(values.Certificate, "c-tls")
		b.subject.Children = []*unstructured.Unstructured{child(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "c-config"),
			child(service, b.subject.Cluster.GatewayName()), child(service, "c-nodes")}
		err := b.do(plan.ApplyCertificate{})
		var stall *StallError
		if errors.As(err, &stall) != (tt.stall != "") || stall != nil && stall.Cause != tt.stall || stall == nil && !errors.Is(err, tt.fails) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.made, made); diff != "" {
			t.Errorf("%s: made (-want +got):\n%s", name, diff)
		}
	}
}

// A Certificate is deleted without the Secret, which instances may use, and only the one that was seen.
func TestCertificateThatIsNotWantedAnyMore(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "certificates"}, "c-tls")
	another := apierrors.NewConflict(schema.GroupResource{Resource: "certificates"}, "c-tls", errors.New("another UID"))
	refused := errors.New("the webhook does not answer")
	secret := func(owner types.UID) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-tls", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "cert-manager.io/v1", Kind: "Certificate", Name: "c-tls", UID: owner}}}}
	}
	for name, tt := range map[string]struct {
		secret       *corev1.Secret
		unread       error
		orphans      bool
		answer, want error
	}{
		"deleted":                         {secret: secret("another")},
		"it has made no Secret":           {},
		"the Secret is its own":           {secret: secret("seen"), orphans: true},
		"the Secret may be":               {secret: secret("another"), unread: refused, orphans: true},
		"gone":                            {answer: gone},
		"another one":                     {answer: another},
		"the webhook refuses, or is away": {answer: refused, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			var there []client.Object
			if tt.secret != nil {
				there = append(there, tt.secret)
			}
			policy := metav1.DeletePropagationBackground
			if tt.orphans {
				policy = metav1.DeletePropagationOrphan
			}
			b := newBench(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
				options ...client.GetOption) error {
				if key.Name == "c-tls" && tt.unread != nil {
					return tt.unread
				}
				return c.Get(ctx, key, o, options...)
			}, Delete: func(ctx context.Context, _ client.WithWatch, o client.Object,
				options ...client.DeleteOption) error {
				asked++
				is := (&client.DeleteOptions{}).ApplyOptions(options)
				if o.GetObjectKind().GroupVersionKind() != values.Certificate || o.GetName() != "c-tls" ||
					is.Preconditions == nil || is.Preconditions.UID == nil || *is.Preconditions.UID != "seen" ||
					is.PropagationPolicy == nil || *is.PropagationPolicy != policy {
					t.Errorf("%s: %+v", o.GetName(), is)
				}
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("a webhook may keep it waiting for ever")
				}
				return tt.answer
			}}, there...)
			b.subject.NoCertificate = &apply.Ref{GroupVersionKind: values.Certificate, Namespace: "n", Name: "c-tls", UID: "seen"}
			if err := b.do(plan.ApplyCertificate{}); !errors.Is(err, tt.want) || (tt.want == nil) != (err == nil) || asked != 1 {
				t.Errorf("%v after %d requests, want %v", err, asked, tt.want)
			}
			b.subject.NoCertificate = nil
			if b.must(plan.ApplyCertificate{}); asked != 1 {
				t.Error("one that there is not is deleted")
			}
		})
	}
}

// A Secret that may not be written over stops what would write it.
func TestNoCertificateForATakenName(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-tls"}})
	b.subject.Certificate = &unstructured.Unstructured{}
	var stall *StallError
	if err := b.do(plan.ApplyCertificate{}); !errors.As(err, &stall) || stall.Cause != "NameTaken" {
		t.Error(err)
	}
}
