// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// authority signs certificates.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{t: t}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// issue makes the content of a Secret with a certificate for these names.
func (a authority) issue(until time.Time, names ...string) map[string][]byte {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(until.Unix()), Subject: pkix.Name{CommonName: "redis"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return map[string][]byte{"ca.crt": a.pem, "tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

// A cluster with TLS forms, serves nobody without it, loses an instance, rolls, and loads a renewed certificate without a restart.
func TestRedisClusterTLS(t *testing.T) {
	t.Parallel() // it waits for the kubelet most of the time
	for _, engine := range oldest() {
		t.Run(engine.name, func(t *testing.T) {
			cluster := newCluster(live.NewNamespace(t), "cache")
			cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
			cluster.Spec.TLS = &v1alpha1.TLS{SecretName: "cache-tls"}
			ca, name := newAuthority(t), fmt.Sprintf("*.%s.%s.svc", cluster.HeadlessServiceName(), cluster.Namespace)
			first, second := time.Now().Add(6*time.Hour).Truncate(time.Second), time.Now().Add(12*time.Hour).Truncate(time.Second)
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "cache-tls", Labels: map[string]string{v1alpha1.LabelTLS: "true"}},
				Data:       ca.issue(first, name)}
			live.Create(t, secret)
			live.Create(t, cluster)
			live.Ready(t, cluster)
			wantEncrypted(t, cluster)

			settled(t, cluster, killPods(t, cluster, master(t, cluster, 0).Name))
			rolled(t, cluster, "a rollout with TLS", func(c *v1alpha1.RedisCluster) {
				c.Spec.Pod[0].Annotations = map[string]string{"example.com/rolled": "once"}
			})
			wantEncrypted(t, cluster)

			before := podUIDs(t, cluster)
			live.Change(t, secret, func(s *corev1.Secret) { s.Data = ca.issue(second, name) })
			live.Eventually(t, "every instance shows the renewed certificate", func() error {
				if err := live.Get(t, cluster); err != nil {
					return err
				}
				c := meta.FindStatusCondition(cluster.Status.Conditions, "CertificateInUse")
				if c == nil || c.Status != metav1.ConditionTrue || cluster.Status.CertificateNotAfter == nil ||
					!cluster.Status.CertificateNotAfter.Time.Equal(second) {
					return fmt.Errorf("%+v, until %v", c, cluster.Status.CertificateNotAfter)
				}
				return nil
			})
			for pod, uid := range podUIDs(t, cluster) {
				if before[pod] != uid {
					t.Errorf("%s was restarted for a certificate", pod)
				}
			}
			wantEncrypted(t, cluster)
			wantSteered(t, cluster)
		})
	}
}

// wantEncrypted asks every instance with TLS, and without.
func wantEncrypted(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	if err := live.Get(t, cluster); err != nil {
		t.Fatal(err)
	}
	for _, pod := range names(cluster) {
		info, err := cli(t.Context(), cluster, pod, "cluster", "info")
		if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") {
			t.Errorf("%s with TLS: %v: %s", pod, err, info)
		}
		plain, err := live.Execute(t.Context(), cluster.Namespace, pod, "redis", "timeout", "3", "redis-cli", "ping")
		if err == nil && strings.Contains(plain, "PONG") {
			t.Errorf("%s answers without TLS: %s", pod, plain)
		}
	}
}

// TLS is switched on and off again while an application uses the cluster, which moves between the stages and notices nothing. What the
// engine's own check, a backup's user and an exporter are asked is in other tests.
func TestRedisClusterTLSIsSwitched(t *testing.T) {
	if os.Getenv("E2E") != "all" {
		t.Skip("takes ten minutes: with E2E=all; TestTLSIsSwitched of test/engine takes one")
	}
	for _, engine := range oldest() {
		t.Run(engine.name, func(t *testing.T) {
			live.Scenario(t, func(t *testing.T, run *live.Run) {
				cluster := newCluster(live.NewNamespace(t), "cache")
				cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
				ca := newAuthority(t)
				live.Create(t, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "cache-tls", Labels: map[string]string{v1alpha1.LabelTLS: "true"}},
					Data: ca.issue(time.Now().Add(12*time.Hour), fmt.Sprintf("*.%s.%s.svc", cluster.HeadlessServiceName(), cluster.Namespace),
						fmt.Sprintf("%s.%s.svc", cluster.Name, cluster.Namespace))})
				plain := underLoad(t, cluster, 5000)

				switchTLS(t, cluster, v1alpha1.TLSBoth)
				out, err := middleware(t, "cli", cluster.Name, "--namespace="+cluster.Namespace, "--", "PING")
				if err != nil || !strings.Contains(out, "PONG") {
					t.Errorf("cli while both ports are open: %v: %s", err, out)
				}
				run.WantUnnoticed(plain, live.NothingMoved)
				secured := plain.Secured(ca.pem)
				secured.Start()
				switchTLS(t, cluster, v1alpha1.TLSRequired)
				wantEncrypted(t, cluster)
				switchTLS(t, cluster, v1alpha1.TLSBoth)
				run.WantUnnoticed(secured, live.NothingMoved)
				plain.Start()
				switchTLS(t, cluster, v1alpha1.TLSDisabled)
				run.WantUnnoticed(plain, live.NothingMoved)
				live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.TLS = nil })
				wantHealthy(t, cluster, *cluster.Spec.Replicas/2, *cluster.Spec.Replicas)
			})
		})
	}
}

// switchTLS switches TLS and waits until it is in force and nothing is under way.
func switchTLS(t *testing.T, cluster *v1alpha1.RedisCluster, mode v1alpha1.TLSMode) {
	t.Helper()
	began := time.Now()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.TLS = &v1alpha1.TLS{SecretName: "cache-tls", Mode: mode} })
	live.Eventually(t, "TLS is "+string(mode), func() error {
		if err := atRest(t, cluster); err != nil {
			return err
		}
		is := cluster.Status.TLS
		if mode == v1alpha1.TLSDisabled && is == nil || is != nil && is.Mode == mode &&
			meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionTLSModeInForce) {
			return nil
		}
		return fmt.Errorf("%+v, conditions %+v", is, cluster.Status.Conditions)
	})
	t.Logf("%s after %.0f s", mode, time.Since(began).Seconds())
}
