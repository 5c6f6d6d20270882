// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

var certManager sync.Once

// installCertManager has the API server serve Certificates, as the CRD of a release of cert-manager says.
func installCertManager(t *testing.T) {
	t.Helper()
	certManager.Do(func() {
		const module, sum = "github.com/cert-manager/cert-manager@v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68="
		command := exec.Command("go", "mod", "download", "-json", module)
		command.Dir = os.TempDir() // outside of any module: nothing but this version is looked at
		command.Env = append(os.Environ(), "GO111MODULE=on", "GOWORK=off", "GOFLAGS=-mod=mod")
		answer, err := command.Output()
		check(t, err)
		var found struct{ Dir, Sum string }
		check(t, json.Unmarshal(answer, &found))
		if found.Sum != sum {
			t.Fatalf("%s has the digest %s, not the pinned %s", module, found.Sum, sum)
		}
		_, err = envtest.InstallCRDs(admin, envtest.CRDInstallOptions{ErrorIfPathMissing: true,
			Paths: []string{filepath.Join(found.Dir, "deploy", "crds", "cert-manager.io_certificates.yaml")}})
		check(t, err)
	})
}

// issuer stands in for cert-manager in a namespace: it signs what Certificates ask for, as often as they change.
type issuer struct {
	authority *redistest.Authority
	// paused: it says that it waits, and signs nothing.
	paused atomic.Bool
	shown  atomic.Pointer[tls.Certificate]
	signed map[string]int64 // the generation by the UID of a Certificate
}

func startIssuer(t *testing.T, namespace string) *issuer {
	t.Helper()
	i := &issuer{authority: redistest.NewAuthority(time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)), signed: map[string]int64{}}
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			if err := i.look(ctx, namespace); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
			time.Sleep(pollInterval)
		}
	})
	t.Cleanup(func() { stop(); ended.Wait() })
	return i
}

// look signs what is to be signed.
func (i *issuer) look(ctx context.Context, namespace string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(values.Certificate)
	if err := api.List(ctx, list, client.InNamespace(namespace)); meta.IsNoMatchError(err) {
		return nil // cert-manager is not installed
	} else if err != nil {
		return err
	}
	for n := range list.Items {
		certificate := &list.Items[n]
		name, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
		secret := &corev1.Secret{}
		err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
		exists := err == nil
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		switch signed := i.signed[string(certificate.GetUID())]; {
		case i.paused.Load():
			if err := say(ctx, certificate, "False", "Issuing certificate as Secret does not exist"); err != nil {
				return err
			}
			continue
		case exists && signed == certificate.GetGeneration():
			continue
		}
		if err := i.sign(ctx, certificate, secret, name, exists); err != nil {
			return err
		}
		i.signed[string(certificate.GetUID())] = certificate.GetGeneration()
		if err := say(ctx, certificate, "True", "Certificate is up to date and has not expired"); err != nil {
			return err
		}
	}
	return nil
}

func (i *issuer) sign(ctx context.Context, certificate *unstructured.Unstructured, secret *corev1.Secret, name string, exists bool) error {
	names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	labels, _, _ := unstructured.NestedStringMap(certificate.Object, "spec", "secretTemplate", "labels")
	secret.Namespace, secret.Name, secret.Labels, secret.Type = certificate.GetNamespace(), name, labels, corev1.SecretTypeTLS
	secret.Data = i.authority.Issue(names, redistest.BothUsages()...)
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return err
	}
	if exists {
		err = api.Update(ctx, secret)
	} else {
		err = api.Create(ctx, secret)
	}
	if err == nil {
		i.shown.Store(&pair) // as soon as an instance would have loaded it
	}
	return err
}

// say sets the condition Ready of a Certificate.
func say(ctx context.Context, certificate *unstructured.Unstructured, status, message string) error {
	condition := map[string]any{"type": "Ready", "status": status, "reason": "Said", "message": message}
	if err := unstructured.SetNestedSlice(certificate.Object, []any{condition}, "status", "conditions"); err != nil {
		return err
	}
	return api.Status().Update(ctx, certificate)
}

// dial is a dialer by which instances take encrypted connections only, and show what was signed last.
func (i *issuer) dial(dial func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return encrypted(dial, func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if pair := i.shown.Load(); pair != nil {
			return pair, nil
		}
		return nil, errors.New("nothing was signed yet")
	})
}
