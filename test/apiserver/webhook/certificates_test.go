// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"middleware.hc.cn/operator/internal/webhook/certs"
)

// certificateFixture is a webhook that refuses the ConfigMaps labelled with its name, served with certificates of a Keeper. The
// refusal proves that the API server trusts what is served.
type certificateFixture struct {
	address string
	secret  types.NamespacedName
	clock   *testingclock.FakePassiveClock
}

const (
	fixtureName = "certificates-test"
	refusal     = "seen by the webhook"
)

// startCertificateFixture starts it with a clock 61 days in the past: its first certificate is valid now, and due for renewal.
func startCertificateFixture(t *testing.T) certificateFixture {
	t.Helper()
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	f := certificateFixture{
		address: "localhost:" + port,
		secret:  types.NamespacedName{Namespace: "default", Name: fixtureName},
		clock:   testingclock.NewFakePassiveClock(time.Now().AddDate(0, 0, -61)),
	}
	somebodyElseLeads(t)
	keeper := certs.NewKeeper(certs.Options{Secret: f.secret, DNSNames: []string{"localhost"}, Configuration: fixtureName, Clock: f.clock})
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: "127.0.0.1", Port: number,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = keeper.GetCertificate }},
	})
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", WebhookServer: server,
		LeaderElection: true, LeaderElectionID: fixtureName, LeaderElectionNamespace: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr.GetWebhookServer().Register("/validate", &admission.Webhook{Handler: admission.HandlerFunc(
		func(context.Context, admission.Request) admission.Response { return admission.Denied(refusal) })})
	mgr.GetWebhookServer().Register("/mutate", &admission.Webhook{Handler: admission.HandlerFunc(
		func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })})
	if err := keeper.Add(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return f
}

// somebodyElseLeads makes the fixture a replica that waits: it must serve webhooks all the same.
func somebodyElseLeads(t *testing.T) {
	t.Helper()
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: fixtureName, Namespace: "default"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("somebody-else"), LeaseDurationSeconds: ptr.To[int32](3600), AcquireTime: &now, RenewTime: &now,
		},
	}
	if err := kube.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

// configure makes the two configurations, without an authority.
func (f certificateFixture) configure(t *testing.T) {
	t.Helper()
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: fixtureName}}
	validating.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "validate.certificates.test", ClientConfig: f.client("/validate"), Rules: fixtureRules, ObjectSelector: fixtureSelector,
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: fixtureName}}
	mutating.Webhooks = []admissionregistrationv1.MutatingWebhook{{
		Name: "mutate.certificates.test", ClientConfig: f.client("/mutate"), Rules: fixtureRules, ObjectSelector: fixtureSelector,
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}}
	for _, o := range []client.Object{validating, mutating} {
		if err := kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := kube.Delete(context.Background(), o); err != nil {
				t.Error(err)
			}
		})
	}
}

var (
	fixtureSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"for": fixtureName}}
	fixtureRules    = []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
)

func (f certificateFixture) client(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://" + f.address + path)}
}

// call is nil when both webhooks were reached.
func (f certificateFixture) call(ctx context.Context) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fixtureName, Namespace: "default", Labels: fixtureSelector.MatchLabels}}
	err := kube.Create(ctx, object, client.DryRunAll)
	if err == nil {
		return errors.New("the API server asked nobody")
	}
	if strings.Contains(err.Error(), refusal) {
		return nil
	}
	return err
}

// change updates the Secret, which wakes the Keeper.
func (f certificateFixture) change(t *testing.T, change func(*corev1.Secret)) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := kube.Get(t.Context(), f.secret, secret); err != nil {
		t.Fatal(err)
	}
	before := secret.DeepCopy()
	change(secret)
	if err := kube.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return before
}

// serves is nil when the server presents the certificate of the Secret, and it is not the one in old.
func (f certificateFixture) serves(ctx context.Context, old *corev1.Secret) error {
	secret := &corev1.Secret{}
	if err := kube.Get(ctx, f.secret, secret); err != nil {
		return err
	}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", f.address)
	if err != nil {
		return err
	}
	defer connection.Close()
	leaf := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
	presented := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	switch {
	case !bytes.Equal(presented, secret.Data["tls.crt"]):
		return fmt.Errorf("the server presents another certificate than the Secret's (%s)", leaf.NotAfter)
	case old != nil && bytes.Equal(presented, old.Data["tls.crt"]):
		return errors.New("the server presents the former certificate")
	}
	return nil
}

func TestTheOperatorMakesAndRotatesItsCertificates(t *testing.T) {
	f := startCertificateFixture(t)
	eventually(t, "no Secret was made", func(ctx context.Context) error { return f.serves(ctx, nil) })
	f.configure(t)
	eventually(t, "configurations that appear later are not told the authority", f.call)

	t.Run("an authority that somebody removed is announced again", func(t *testing.T) {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := kube.Get(t.Context(), types.NamespacedName{Name: fixtureName}, configuration); err != nil {
			t.Fatal(err)
		}
		configuration.Webhooks[0].ClientConfig.CABundle = nil
		if err := kube.Update(t.Context(), configuration); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the authority is missing", func(ctx context.Context) error {
			if err := kube.Get(ctx, types.NamespacedName{Name: fixtureName}, configuration); err != nil {
				return err
			}
			if len(configuration.Webhooks[0].ClientConfig.CABundle) == 0 {
				return errors.New("caBundle is empty")
			}
			return f.call(ctx)
		})
	})

	t.Run("a certificate is renewed without a failed admission", func(t *testing.T) {
		stop, failures := make(chan struct{}), make(chan []error)
		go func() { failures <- f.callUntil(stop) }()
		f.clock.SetTime(time.Now())
		old := f.change(t, func(s *corev1.Secret) { s.Annotations = map[string]string{"poke": "1"} })
		eventually(t, "the certificate was not renewed", func(ctx context.Context) error { return f.serves(ctx, old) })
		close(stop)
		for _, err := range <-failures {
			t.Errorf("an admission failed meanwhile: %v", err)
		}
		if err := f.call(t.Context()); err != nil {
			t.Error(err)
		}
	})

	t.Run("a Secret that somebody deleted is made again", func(t *testing.T) {
		old := &corev1.Secret{}
		if err := kube.Get(t.Context(), f.secret, old); err != nil {
			t.Fatal(err)
		}
		if err := kube.Delete(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		eventually(t, "no new Secret", func(ctx context.Context) error { return f.serves(ctx, old) })
		eventually(t, "the new authority is not trusted", f.call)
	})
}

// callUntil calls the webhooks over and over and returns the failures.
func (f certificateFixture) callUntil(stop <-chan struct{}) []error {
	var failures []error
	for {
		select {
		case <-stop:
			return failures
		default:
		}
		if err := f.call(context.Background()); err != nil {
			failures = append(failures, err)
		}
	}
}
