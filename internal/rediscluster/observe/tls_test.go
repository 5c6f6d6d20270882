// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
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

// For how long an instance has loaded its files counts from the first time since what is trusted changed, and anew when it does not answer,
// when one could not, when the Secret is no good, and when it changes, also back. A pod with the files of another Secret says so.
func TestForHowLongFilesWereLoaded(t *testing.T) {
	running := pod(mounting(6379, 6380))
	running.Spec.Volumes[0].Projected.Sources[0].Secret.Name = "good"
	o, kube, world := newObserver(t, interceptor.Funcs{}, secret("s"), certified(t, "good", true), statefulSet(nil), running)
	node := world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s"})
	node.SetFile(redisconf.TLS{Stage: redisconf.TLSBoth}.Settings(redisconf.TLSDir))
	world.Restart(node, "10.0.0.1", true)
	at, away := now, false
	var open []net.Conn
	pool := redis.NewPool(redis.Options{DialTimeout: time.Minute, IOTimeout: time.Minute,
		Dialer: func(ctx context.Context, addr string) (net.Conn, error) {
			if away || strings.HasSuffix(addr, ":6380") {
				return nil, errors.New("nobody is there")
			}
			conn, err := world.Dial(ctx, addr)
			open = append(open, conn)
			return conn, err
		}})
	t.Cleanup(pool.Close)
	o.Redis, o.Now = pool, func() time.Time { return at }
	c := cluster()
	c.Spec.TLS = &v1alpha1.TLS{SecretName: "good", Mode: v1alpha1.TLSBoth}
	look := func() *snapshot.Snapshot {
		t.Helper()
		at = at.Add(certificateAge)
		s, err := o.Observe(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	load := func(err error) {
		t.Helper()
		s := look()
		o.NoteReloaded(s, []string{s.Instances[0].Name}, err, at)
	}
	trust := func(text string) {
		t.Helper()
		changed := certified(t, "good", true)
		changed.Data[keyTrusted] = []byte(text)
		if err := kube.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
	}
	leave := func() {
		away = true
		for _, conn := range open {
			_ = conn.Close()
		}
		if s := look(); s.Instances[0].Redis != nil {
			t.Error("it answers")
		}
		away = false
	}
	good := string(certificates()[keyTrusted])
	for name, disturb := range map[string]func(){
		"nothing":                   func() {},
		"it could not":              func() { load(errors.New("it cannot")) },
		"it does not answer":        leave,
		"the Secret is no good":     func() { trust("no good"); look(); trust(good); look() },
		"what is trusted goes back": func() { trust(good + "\n"); look(); trust(good); look() },
	} {
		load(nil)
		load(nil)
		if s := look(); s.Instances[0].Redis == nil || s.Instances[0].Redis.AuthoritiesLoadedFor < certificateAge {
			t.Fatalf("%s: before it is %+v", name, s.Instances[0])
		}
		disturb()
		if s := look(); (s.Instances[0].Redis.AuthoritiesLoadedFor > 0) != (name == "nothing") {
			t.Errorf("%s: it counts %s", name, s.Instances[0].Redis.AuthoritiesLoadedFor)
		}
		load(errors.New("it cannot"))
	}
	for _, other := range []bool{false, true} {
		if c.Spec.TLS.ClientCASecretName = ""; other {
			c.Spec.TLS.ClientCASecretName = "clients"
		}
		if s := look(); s.Instances[0].OtherAuthorities != other {
			t.Errorf("its files are of another Secret: %t, want %t", s.Instances[0].OtherAuthorities, other)
		}
	}
}

// Time alone makes another certificate of one when it begins or ceases to be valid: the next such moment is known.
func TestNextChange(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(from, to time.Duration) []byte {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(from), NotAfter: now.Add(to)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	past, present, future := valid(-2*time.Hour, -time.Hour), valid(-time.Hour, 3*time.Hour), valid(time.Hour, 9*time.Hour)
	for name, tt := range map[string]struct {
		texts [][]byte
		want  time.Time
	}{
		"none":             {},
		"no certificate":   {texts: [][]byte{[]byte("hello")}},
		"over":             {texts: [][]byte{past}},
		"it ends":          {texts: [][]byte{present}, want: now.Add(3*time.Hour + time.Second)},
		"it begins":        {texts: [][]byte{past, present, future}, want: now.Add(time.Hour)},
		"several in one":   {texts: [][]byte{slices.Concat(present, future)}, want: now.Add(time.Hour)},
		"at its very end":  {texts: [][]byte{valid(-time.Hour, 0)}, want: now.Add(time.Second)},
		"not a second now": {texts: [][]byte{valid(0, 3*time.Hour)}, want: now.Add(3*time.Hour + time.Second)},
	} {
		if got := nextChange(now, tt.texts...); !got.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// A certificate that cannot be read at the moment is to be looked at when it would have been.
func TestWhenToLookIsKept(t *testing.T) {
	away := false
	o, _, _ := newObserver(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
		options ...client.GetOption) error {
		if away && key.Name == "good" {
			return errors.New("the API server is away")
		}
		return c.Get(ctx, key, object, options...)
	}}, secret("s"), certified(t, "good", true))
	o.Now = func() time.Time { return now }
	c := cluster()
	c.Spec.TLS = &v1alpha1.TLS{SecretName: "good"}
	if _, err := o.tls(t.Context(), c, &o.Memory); err != nil {
		t.Fatal(err)
	}
	until := o.certificate.until
	away, c.Generation = true, 2
	if seen, err := o.tls(t.Context(), c, &o.Memory); err != nil || !seen.Known || until.IsZero() || !o.certificate.until.Equal(until) {
		t.Errorf("%+v, %v: until %s, want %s", seen, err, o.certificate.until, until)
	}
}

// What is not there does not change with time: nobody looks for it all the time because what was there has expired.
func TestCertificateThatIsGone(t *testing.T) {
	o, kube, _ := newObserver(t, interceptor.Funcs{}, secret("s"), certified(t, "good", true))
	at := now
	o.Now = func() time.Time { return at }
	c := cluster()
	c.Spec.TLS = &v1alpha1.TLS{SecretName: "good"}
	if _, err := o.tls(t.Context(), c, &o.Memory); err != nil {
		t.Fatal(err)
	}
	if err := kube.Delete(t.Context(), certified(t, "good", true)); err != nil {
		t.Fatal(err)
	}
	at = o.certificate.until.Add(time.Hour)
	if seen, err := o.tls(t.Context(), c, &o.Memory); err != nil || !seen.Known || seen.Problem == "" || !o.certificate.until.IsZero() {
		t.Errorf("%+v, %v: until %s", seen, err, o.certificate.until)
	}
}

// A cluster does not begin with a certificate that is about to be replaced by one of another issuer.
func TestFormerIssuer(t *testing.T) {
	const issuer, clusterIssuer = v1alpha1.IssuerKindIssuer, v1alpha1.IssuerKindClusterIssuer
	for name, tt := range map[string]struct {
		by, kind string
		wants    v1alpha1.IssuerRef
		began    bool
		waits    bool
	}{
		"nobody says whose it is":      {wants: v1alpha1.IssuerRef{Name: "a"}},
		"its own":                      {by: "a", kind: "Issuer", wants: v1alpha1.IssuerRef{Name: "a"}},
		"its own, of the default kind": {by: "a", wants: v1alpha1.IssuerRef{Name: "a", Kind: issuer}},
		"another's":                    {by: "b", wants: v1alpha1.IssuerRef{Name: "a"}, waits: true},
		"another kind's":               {by: "a", kind: "ClusterIssuer", wants: v1alpha1.IssuerRef{Name: "a"}, waits: true},
		"of the kind by default":       {by: "a", wants: v1alpha1.IssuerRef{Name: "a", Kind: clusterIssuer}, waits: true},
		"instances use it":             {by: "b", wants: v1alpha1.IssuerRef{Name: "a"}, began: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := certified(t, "c-tls", true)
			s.Annotations = map[string]string{annotationIssuer: tt.by, annotationIssuerKind: tt.kind}
			o, _, _ := newObserver(t, interceptor.Funcs{}, secret("s"), s)
			c := cluster()
			c.Spec.TLS = &v1alpha1.TLS{IssuerRef: &tt.wants}
			if tt.began {
				c.Status.TLS = &v1alpha1.TLSStatus{Mode: v1alpha1.TLSRequired}
			}
			if seen, err := o.tls(t.Context(), c, &o.Memory); err != nil || seen.Known == tt.waits || seen.Waits != tt.waits {
				t.Errorf("%+v, %v", seen, err)
			}
		})
	}
}
