// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// encryption is what the Secret of a cluster with TLS held, whenever it changed, and which of it each instance shows: the files of its
// pod when it last read them.
type encryption struct {
	issued []issued

	mu    sync.Mutex
	shown map[string]int // by the IP of the node
}

type issued struct {
	pair tls.Certificate
	data map[string][]byte
	at   time.Time
}

// newEncrypted makes a formed cluster with TLS.
func newEncrypted(t *testing.T, seed uint64, valkey bool) *simulation {
	t.Helper()
	return newWithTLS(t, seed, valkey, "")
}

// newWithTLS makes a formed cluster of that mode.
func newWithTLS(t *testing.T, seed uint64, valkey bool, mode v1alpha1.TLSMode) *simulation {
	t.Helper()
	s := prepared(t, seed, 2, valkey)
	s.cluster.Spec.TLS = &v1alpha1.TLS{SecretName: "certificate", Mode: mode}
	s.encrypt()
	s.populate()
	s.converge()
	return s
}

// encrypt makes the Secret that spec.tls names; from then on instances take encrypted connections of the operator only.
func (s *simulation) encrypt() {
	s.t.Helper()
	s.encryption = &encryption{shown: map[string]int{}}
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: s.cluster.Spec.TLS.SecretName,
		Labels: map[string]string{v1alpha1.LabelTLS: "true"}}, Data: s.issue()})
}

// renew makes the Secret hold another certificate.
func (s *simulation) renew() {
	s.t.Helper()
	s.say("--- another certificate")
	s.putCertificate(s.issue())
}

// trustAlso makes the Secret hold one more certificate to trust, or as many as before.
func (s *simulation) trustAlso(more bool) {
	s.t.Helper()
	e := s.encryption
	is := e.issued[0]
	if is.at = s.world.Now(); more {
		is.data = maps.Clone(is.data)
		is.data["ca.crt"] = slices.Concat(is.data["ca.crt"], is.data["ca.crt"])
	}
	e.mu.Lock()
	e.issued = append(e.issued, is)
	e.mu.Unlock()
	s.say("--- one more certificate is trusted: %t", more)
	s.putCertificate(is.data)
}

// putCertificate makes the Secret hold what was issued last.
func (s *simulation) putCertificate(data map[string][]byte) {
	s.t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: s.cluster.Spec.TLS.SecretName}
	if err := s.kube.Get(s.t.Context(), key, secret); err != nil {
		s.t.Fatal(err)
	}
	secret.Data = data
	if err := s.kube.Update(s.t.Context(), secret); err != nil {
		s.t.Fatal(err)
	}
	s.awaits = func() bool {
		return s.showsTheNewest() && meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionCertificateInUse)
	}
}

// issue makes the next certificate of the instances, signed by one authority.
func (s *simulation) issue() map[string][]byte {
	s.t.Helper()
	e := s.encryption
	signer := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // handshakes are of the same size in every run
	signed := func(template, parent *x509.Certificate) []byte {
		template.NotBefore, template.NotAfter = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, signer.Public(), signer)
		if err != nil {
			s.t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	trusted := signed(authority, authority)
	own := signed(&x509.Certificate{SerialNumber: big.NewInt(int64(len(e.issued) + 2)), DNSNames: []string{"*.c-nodes.sim.svc"}}, authority)
	key, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		s.t.Fatal(err)
	}
	data := map[string][]byte{corev1.TLSCertKey: own, "ca.crt": trusted,
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
	pair, err := tls.X509KeyPair(own, data[corev1.TLSPrivateKeyKey])
	if err != nil {
		s.t.Fatal(err)
	}
	now := s.world.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.issued = append(e.issued, issued{pair: pair, data: data, at: now})
	return data
}

// load is what an instance does that reads its files again: the kubelet has changed them some time after the Secret.
func (e *encryption) load(addr string, now time.Time) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.issued {
		if i == 0 || now.Sub(e.issued[i].at) >= fileAge {
			e.shown[hostOf(addr)] = i
		}
	}
}

// hostOf is the IP of an address.
func hostOf(addr string) string {
	host, _, _ := net.SplitHostPort(addr) // it is one
	return host
}

// wants is what an instance wants of its clients.
func (s *simulation) wants(addr string) tls.ClientAuthType {
	for _, in := range s.instances {
		if hostOf(in.node.Addr()) == hostOf(addr) && in.node.Setting(redisconf.AuthClients) == "yes" {
			return tls.RequireAndVerifyClientCert
		}
	}
	return tls.VerifyClientCertIfGiven
}

// wrap encrypts the operator's end of a connection to an instance.
func (e *encryption) wrap(plain net.Conn, addr string, wants tls.ClientAuthType) net.Conn {
	e.mu.Lock()
	is := e.issued[e.shown[hostOf(addr)]]
	pair, trusted := is.pair, x509.NewCertPool()
	trusted.AppendCertsFromPEM(is.data["ca.crt"])
	e.mu.Unlock()
	near, far := net.Pipe()
	go func() {
		defer func() { _, _ = plain.Close(), far.Close() }() // whichever end closes, both are closed
		carry(plain, tls.Server(far, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
			ClientAuth: wants, ClientCAs: trusted, SessionTicketsDisabled: true})) // a pipe takes nothing that nobody reads
	}()
	return near
}

// carry carries commands and their answers until an end closes. Answers wait for a client that still writes, as they do in the buffers of
// a network.
func carry(plain, secure net.Conn) {
	const most = 1 << 10 // of a pipeline's parts
	answers, buffer := make(chan []byte, most), make([]byte, 1<<16)
	defer close(answers)
	go func() {
		for answer := range answers {
			_, _ = secure.Write(answer) // whoever has closed wants none
		}
	}()
	for {
		n, err := secure.Read(buffer)
		if err != nil {
			return
		}
		if _, err := plain.Write(buffer[:n]); err != nil {
			return
		}
		for { // what is answered is there when it was written
			_ = plain.SetReadDeadline(time.Now().Add(time.Nanosecond)) // it does not fail
			n, err := plain.Read(buffer)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return
			}
			answers <- slices.Clone(buffer[:n])
		}
	}
}

// showsTheNewest reports whether every instance shows what the Secret holds.
func (s *simulation) showsTheNewest() bool {
	s.encryption.mu.Lock()
	defer s.encryption.mu.Unlock()
	issued := s.encryption.issued
	newest := issued[len(issued)-1].data
	for _, in := range s.instances {
		if !maps.EqualFunc(issued[s.encryption.shown[hostOf(in.node.Addr())]].data, newest, bytes.Equal) {
			return false
		}
	}
	return true
}
