// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
)

const certificateLife = 90 * 24 * time.Hour

var (
	authorities = sync.OnceValue(func() *redistest.Authority {
		return redistest.NewAuthority(now.Add(-time.Hour), now.Add(certificateLife))
	})
	certificates = sync.OnceValue(func() map[string][]byte {
		return authorities().Issue([]string{"*.c-nodes.n.svc"}, redistest.BothUsages()...)
	})
)

// certified is a Secret with a certificate for the instances of cluster; labelled says that it may be mounted.
func certified(t *testing.T, name string, labelled bool) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Data: maps.Clone(certificates())}
	if labelled {
		s.Labels = map[string]string{v1alpha1.LabelTLS: "true"}
	}
	return s
}

// Which Secrets a StatefulSet may name is decided on what they are now, whatever was known before.
func TestWithheld(t *testing.T) {
	label := func(kube client.Client, name string, labels map[string]string) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		if err := kube.Get(context.Background(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatal(err)
		}
		s.Labels = labels
		if err := kube.Update(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
	name := func(own, trusted string) func(*v1alpha1.RedisCluster) {
		return func(c *v1alpha1.RedisCluster) {
			c.Generation, c.Spec.TLS = 2, &v1alpha1.TLS{SecretName: own, CASecretName: trusted}
		}
	}
	others := redistest.NewAuthority(now.Add(-time.Hour), now.Add(time.Hour)).PEM()
	trusting := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{v1alpha1.LabelTLS: "true"}},
			Data: data}
	}
	for what, tt := range map[string]struct {
		spec  func(*v1alpha1.RedisCluster)
		world func(client.Client)
		fails bool // the API server does not answer
		later time.Duration
		want  string // part of the message; empty: nothing is withheld
	}{
		"as it was":           {},
		"another good Secret": {spec: name("other", "")},
		"an unlabelled Secret": {
			spec: name("victim", ""),
			want: "spec.tls.secretName: Secret victim is not meant for this: who may label it allows it with: kubectl label secret victim"},
		"an unlabelled Secret of a CA": {
			spec: name("good", "victim"), want: "spec.tls.caSecretName: Secret victim is not meant for this"},
		"an unlabelled Secret with a good CA": {spec: name("victim", "good"), want: "spec.tls.secretName: Secret victim is not meant for this"},
		"a Secret that does not exist":        {spec: name("nothing", ""), want: "Secret nothing does not exist"},
		"a labelled Secret with nonsense":     {spec: name("broken", ""), want: "Secret broken holds no certificate"},
		"a Secret for servers only":           {spec: name("servers", ""), want: "have it made with both usages, server auth and client auth"},
		"an unlabelled Secret of the CA of clients": {spec: func(c *v1alpha1.RedisCluster) {
			c.Generation, c.Spec.TLS = 2, &v1alpha1.TLS{SecretName: "good", ClientCASecretName: "victim"}
		}, want: "spec.tls.clientCASecretName: Secret victim is not meant for this"},
		"a CA of clients without that of instances": {spec: func(c *v1alpha1.RedisCluster) {
			c.Generation, c.Spec.TLS = 2, &v1alpha1.TLS{SecretName: "good", ClientCASecretName: "clients"}
		}, want: "spec.tls.clientCASecretName: Secret clients does not trust, under ca.crt, the certificate of the instances"},
		"a CA of clients, and that of instances": {spec: func(c *v1alpha1.RedisCluster) {
			c.Generation, c.Spec.TLS = 2, &v1alpha1.TLS{SecretName: "good", ClientCASecretName: "all"}
		}},
		"a label that was taken off": {world: func(kube client.Client) { label(kube, "good", nil) },
			want: "Secret good is not meant for this"},
		"a certificate that expired":         {later: 91 * 24 * time.Hour},
		"an API server that does not answer": {fails: true, want: "cannot be read now"},
		"another's Secret in the password's": {world: func(kube client.Client) { label(kube, "c-auth", nil) },
			want: "Secret c-auth exists and was not made for this cluster"},
		"the password's Secret of another name": {
			world: func(kube client.Client) { label(kube, "c-auth", map[string]string{v1alpha1.LabelCluster: "d"}) },
			want:  "was not made for this cluster"},
	} {
		t.Run(what, func(t *testing.T) {
			at, fails := now, false
			o, kube, _ :=
				newObserver(t,
					interceptor.Funcs{
						Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
							if fails {
								return errors.New("etcd is away")
							}
							return c.Get(ctx, key, o, options...)
						}}, secret("p"), certified(t, "good", true), certified(t, "other", true), certified(t, "victim", false),
					trusting("servers", authorities().Issue([]string{"*.c-nodes.n.svc"}, x509.ExtKeyUsageServerAuth)),
					trusting("clients", map[string][]byte{"ca.crt": others}),
					trusting("all", map[string][]byte{"ca.crt": slices.Concat(authorities().PEM(), others)}),
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "broken", Labels: map[string]string{v1alpha1.LabelTLS: "true"}}})
			o.Now = func() time.Time { return at }
			c := cluster()
			c.Generation, c.Spec.TLS = 1, &v1alpha1.TLS{SecretName: "good"}
			pass := func() string {
				if _, err := o.Observe(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if why := o.Withheld(t.Context(), c); why != nil {
					return why.Message
				}
				return ""
			}
			if why := pass(); why != "" {
				t.Fatalf("at first: %s", why)
			}
			if tt.spec != nil {
				tt.spec(c)
			}
			if tt.world != nil {
				tt.world(kube)
			}
			at, fails = at.Add(tt.later), tt.fails
			if why := pass(); (why == "") != (tt.want == "") || !strings.Contains(why, tt.want) {
				t.Errorf("got %q, want %q", why, tt.want)
			}
		})
	}
}

// A Secret that is labelled after it was refused is taken within a minute.
func TestALabelIsNoticed(t *testing.T) {
	at := now
	victim := certified(t, "victim", false)
	o, kube, _ := newObserver(t, interceptor.Funcs{}, secret("p"), victim)
	o.Now = func() time.Time { return at }
	c := cluster()
	c.Spec.TLS = &v1alpha1.TLS{SecretName: "victim"}
	if s, err := o.Observe(t.Context(), c); err != nil || s.TLS.Known || o.Withheld(t.Context(), c) == nil {
		t.Fatalf("an unlabelled Secret is taken: %v", err)
	}
	if why := o.Observer.Withheld(t.Context(), c, &o.Memory, false); why != nil {
		t.Errorf("a StatefulSet that does not mount it is withheld: %s", why.Message)
	}
	victim.Labels = map[string]string{v1alpha1.LabelTLS: "true"}
	if err := kube.Update(t.Context(), victim); err != nil {
		t.Fatal(err)
	}
	at = at.Add(certificateAge)
	if s, err := o.Observe(t.Context(), c); err != nil || !s.TLS.Known || o.Withheld(t.Context(), c) != nil {
		t.Errorf("a labelled Secret is not taken: %v, %+v", err, s)
	}
}

// What an overlay names goes into pods only with the label, whatever it is, and is looked at before each StatefulSet.
func TestOverlayWithheld(t *testing.T) {
	meta := func(name string, allowed bool) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "n", Name: name}
		if allowed {
			m.Labels = map[string]string{v1alpha1.LabelPod: "true"}
		}
		return m
	}
	of := func(name string, allowed bool) []client.Object {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: meta(name, allowed)}, &corev1.Secret{ObjectMeta: meta(name, allowed)},
			&corev1.PersistentVolumeClaim{ObjectMeta: meta(name, allowed)}, &corev1.ServiceAccount{ObjectMeta: meta(name, allowed)}}
	}
	data := &corev1.PersistentVolumeClaim{ObjectMeta: meta("data-c-0-0", true)}
	const lacks = " lacks the label redis.middleware.hc.cn/pod: \"true\""
	for overlay, want := range map[string]string{
		`{}`:                             "",
		`{"serviceAccountName":"good"}`:  "",
		`{"serviceAccountName":"other"}`: "spec.pod[0].overlay.serviceAccountName: ServiceAccount other" + lacks,
		`{"volumes":[{"configMap":{"name":"good"}}]}`:                            "",
		`{"volumes":[{"configMap":{"name":"other"}}]}`:                           "spec.pod[0].overlay.volumes[0].configMap.name: ConfigMap other" + lacks,
		`{"volumes":[{"secret":{"secretName":"good"}}]}`:                         "",
		`{"volumes":[{"secret":{"secretName":"other"}}]}`:                        "volumes[0].secret.secretName: Secret other" + lacks,
		`{"volumes":[{"secret":{"secretName":"c-auth"}}]}`:                       "Secret c-auth" + lacks,
		`{"volumes":[{"secret":{"secretName":"nothing"}}]}`:                      "there is no Secret nothing in this namespace",
		`{"volumes":[{"persistentVolumeClaim":{"claimName":"good"}}]}`:           "",
		`{"volumes":[{"persistentVolumeClaim":{"claimName":"other"}}]}`:          "PersistentVolumeClaim other" + lacks,
		`{"volumes":[{"persistentVolumeClaim":{"claimName":"data-c-0-0"}}]}`:     "claim data-c-0-0 holds the data of instances",
		`{"volumes":[{"projected":{"sources":[{"secret":{"name":"other"}}]}}]}`:  "projected.sources[0].secret.name: Secret other" + lacks,
		`{"volumes":[{"projected":{"sources":[{"configMap":{"name":"bad"}}]}}]}`: "there is no ConfigMap bad in this namespace",
	} {
		objects := append(append(of("good", true), of("other", false)...), secret("p"), data)
		c := cluster()
		c.Generation, c.Spec.Pod = 1, []v1alpha1.PodTemplate{{Overlay: &runtime.RawExtension{Raw: []byte(overlay)}}}
		o, kube, _ := newObserver(t, interceptor.Funcs{}, append(objects, c.DeepCopy())...)
		at := now
		o.Now = func() time.Time { return at }
		withheld := func() string {
			if why := o.Withheld(t.Context(), c); why != nil {
				return why.Cause + ": " + why.Message
			}
			return ""
		}
		if why := withheld(); (why == "") != (want == "") || !strings.Contains(why, want) || want != "" && !strings.HasPrefix(why,
			"OverlayUnavailable") {
			t.Errorf("%s: got %q, want %q", overlay, why, want)
		}
		// A label that goes is noticed with the next StatefulSet, one that comes within a minute.
		for _, object := range of("good", true) {
			object.SetLabels(nil)
			if err := kube.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		if why := withheld(); strings.Contains(overlay, "good") && !strings.Contains(why, lacks) {
			t.Errorf("%s without the label: %q", overlay, why)
		}
		for _, object := range of("good", true) {
			if err := kube.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		at = at.Add(byname.Age)
		if why := withheld(); strings.Contains(overlay, "good") && why != "" {
			t.Errorf("%s with the label again: %q", overlay, why)
		}
	}
}
