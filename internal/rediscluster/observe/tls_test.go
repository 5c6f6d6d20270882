// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/redistest"
)

// mounting gives a pod the files of a certificate, and ports.
func mounting(ports ...int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.UID = "pod"
		for _, port := range ports {
			p.Spec.Containers[1].Ports = append(p.Spec.Containers[1].Ports, corev1.ContainerPort{ContainerPort: port})
		}
		files := []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{Items: []corev1.KeyToPath{{Path: redisconf.TLSTrustedFile}}}}}
		p.Spec.Volumes = []corev1.Volume{{Name: "config",
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: files}}}}
	}
}

// An instance whose TLS fails while it takes plain connections as well shows what is wrong, and is to load its files once a minute.
func TestTLSThatFailsIsNotHidden(t *testing.T) {
	o, _, world := newObserver(t, interceptor.Funcs{}, secret("s"), certified(t, "good", true), statefulSet(nil), pod(mounting(6379, 6380)))
	node := world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s"})
	file := redisconf.TLS{Stage: redisconf.TLSBoth}.Settings(redisconf.TLSDir)
	node.SetFile(file)
	world.Restart(node, "10.0.0.1", true)
	pool := redis.NewPool(redis.Options{DialTimeout: time.Minute, IOTimeout: time.Minute,
		Dialer: func(ctx context.Context, addr string) (net.Conn, error) {
			if strings.HasSuffix(addr, ":6380") {
				return nil, errors.New("certificate has expired")
			}
			return world.Dial(ctx, addr)
		}})
	t.Cleanup(pool.Close)
	at := now
	o.Redis, o.Now = pool, func() time.Time { return at }
	c := cluster()
	c.Spec.TLS = &v1alpha1.TLS{SecretName: "good", Mode: v1alpha1.TLSBoth}
	c.Status.TLS = &v1alpha1.TLSStatus{Mode: v1alpha1.TLSBoth, Stage: "Both"}
	for _, load := range []bool{true, false, true} {
		s, err := o.Observe(t.Context(), c)
		if err != nil || s.Instances[0].Redis == nil {
			t.Fatalf("%v, %+v", err, s)
		}
		in := s.Instances[0]
		if !in.Way.Plain || !strings.Contains(in.TLSError, "certificate has expired") || !in.Redis.OldCertificate ||
			in.Redis.CertificateSeen != load {
			t.Errorf("want it to load: %t: %+v, %q, %+v", load, in.Way, in.TLSError, in.Redis)
		}
		at = at.Add(35 * time.Second)
	}
}

// The password goes to no port that may be another's in the place of one that takes TLS; in the mode Disabled, which has been reached,
// instances are reached without the Secret.
func TestWhatTakesTLSIsNotAskedPlainly(t *testing.T) {
	both, one := []int32{6379, 6380}, []int32{6379}
	for name, tt := range map[string]struct {
		tls    *v1alpha1.TLS
		status *v1alpha1.TLSStatus
		ports  []int32
		asked  bool
	}{
		"spec.tls is gone": {status: &v1alpha1.TLSStatus{Mode: v1alpha1.TLSRequired, Stage: "Required"}, ports: one},
		"all is gone":      {ports: one},
		"both":             {ports: both},
		"the Secret is gone": {tls: &v1alpha1.TLS{SecretName: "gone", Mode: v1alpha1.TLSBoth}, ports: both,
			status: &v1alpha1.TLSStatus{Mode: v1alpha1.TLSBoth, Stage: "Both"}},
		"the status is lost": {tls: &v1alpha1.TLS{SecretName: "gone", Mode: v1alpha1.TLSDisabled}, ports: one},
		"on the way back": {tls: &v1alpha1.TLS{SecretName: "gone", Mode: v1alpha1.TLSDisabled}, ports: both,
			status: &v1alpha1.TLSStatus{Mode: v1alpha1.TLSDisabled, Stage: "Both"}},
		"disabled": {tls: &v1alpha1.TLS{SecretName: "gone", Mode: v1alpha1.TLSDisabled}, ports: both, asked: true,
			status: &v1alpha1.TLSStatus{Mode: v1alpha1.TLSDisabled, Stage: "Plain"}},
		"disabled, a pod of before": {tls: &v1alpha1.TLS{SecretName: "gone", Mode: v1alpha1.TLSDisabled}, ports: one,
			status: &v1alpha1.TLSStatus{Mode: v1alpha1.TLSDisabled, Stage: "Plain"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, world := newObserver(t, interceptor.Funcs{}, secret("s"), statefulSet(nil), pod(mounting(tt.ports...)))
			world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s"})
			var said []string
			world.OnCommand(func(_ *redistest.Node, args []string) { said = append(said, args[0]) })
			c := cluster()
			c.Spec.TLS, c.Status.TLS = tt.tls, tt.status
			s, err := o.Observe(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if asked := s.Instances[0].Redis != nil; asked != tt.asked || slices.Contains(said, "AUTH") && !tt.asked || len(said) > 0 != tt.asked {
				t.Errorf("it was told %v: %+v", said, s.Instances[0])
			}
		})
	}
}

// Instances are shown a certificate from before they want one until none does any more, and not otherwise.
func TestWhenACertificateIsShown(t *testing.T) {
	const optional, required = v1alpha1.ClientCertificatesOptional, v1alpha1.ClientCertificatesRequired
	o, _, _ := newObserver(t, interceptor.Funcs{}, secret("s"), certified(t, "good", true), statefulSet(nil))
	c := cluster()
	c.Spec.TLS, c.Status.TLS = &v1alpha1.TLS{SecretName: "good"}, &v1alpha1.TLSStatus{Mode: v1alpha1.TLSRequired, Stage: "Required"}
	for _, tt := range []struct {
		asked, is v1alpha1.ClientCertificates
		shown     bool
	}{{"", "", false}, {optional, optional, false}, {required, optional, true}, {required, required, true}, {optional, required, true},
		{optional, optional, false}} {
		c.Spec.TLS.ClientCertificates, c.Status.TLS.ClientCertificates = tt.asked, tt.is
		if _, err := o.Observe(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if shown := o.certificate.offered.Load() != nil; shown != tt.shown {
			t.Errorf("asked for %q, and %q is in force: shown is %t", tt.asked, tt.is, shown)
		}
	}
}
