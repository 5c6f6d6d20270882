// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// encrypt gives a cluster that is yet to be created a certificate, and returns a dialer by which its instances take encrypted
// connections only, as servers do that have no port beside.
func encrypt(t *testing.T, cluster *v1alpha1.RedisCluster, dial func(context.Context, string) (net.Conn, error)) func(context.Context,
	string) (net.Conn, error) {
	t.Helper()
	secret := certified(t, cluster.Namespace, "own", v1alpha1.LabelTLS)
	cluster.Spec.TLS = &v1alpha1.TLS{SecretName: secret.Name}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	check(t, err)
	return encrypted(dial, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil })
}

// encrypted is a dialer by which instances take encrypted connections only, and show a certificate.
func encrypted(dial func(context.Context, string) (net.Conn, error), shown func(*tls.ClientHelloInfo) (*tls.Certificate, error)) func(
	context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		plain, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		near, far := net.Pipe()
		secure := tls.Server(far, &tls.Config{GetCertificate: shown, MinVersion: tls.VersionTLS12,
			SessionTicketsDisabled: true}) // a pipe takes nothing that nobody reads
		carry := func(to, from net.Conn) {
			_, _ = io.Copy(to, from) // whichever end closes, both are closed
			_, _ = plain.Close(), secure.Close()
		}
		go carry(plain, secure)
		go carry(secure, plain)
		return near, nil
	}
}
