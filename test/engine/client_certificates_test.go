// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/gateway"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// client makes a certificate of the authority for clients, with these uses.
func (a *authority) client(uses ...x509.ExtKeyUsage) tls.Certificate {
	a.t.Helper()
	a.issued++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(a.issued), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"*.cache-nodes.shop.svc"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: uses}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	must(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// caller is a client that logs in.
type caller struct {
	*tls.Conn
	in *bufio.Reader
}

// call connects with these certificates and logs in, where there is a password.
func call(addr string, config *tls.Config, shows ...tls.Certificate) (*caller, error) {
	config = config.Clone()
	config.Certificates = shows
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: timeout}, "tcp", addr, config)
	if err != nil {
		return nil, err
	}
	c := &caller{conn, bufio.NewReader(conn)}
	if _, err := c.asks("AUTH " + password); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// asks returns the answer to a command; whoever is refused gets none.
func (c *caller) asks(command string) (string, error) {
	_ = c.SetDeadline(time.Now().Add(timeout)) // a connection that is closed fails below
	if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
		return "", err
	}
	return c.in.ReadString('\n')
}

// What the operator relies on about certificates of clients: a change counts for who connects from then on, whoever is connected stays, and
// who was connected before does not come back by a session of then if the certificate is loaded in the same command.
func TestCertificatesOfClients(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		ctx, dir, ca, stranger := t.Context(), t.TempDir(), newAuthority(t), newAuthority(t)
		ca.issue(dir)
		s := startEncrypted(t, e, newPool(t), dir, ca.trusted(certifiedName))
		admin := s.node(newPool(t))
		mine, foreign := ca.client(x509.ExtKeyUsageClientAuth), stranger.client(x509.ExtKeyUsageClientAuth)
		servers := ca.client(x509.ExtKeyUsageServerAuth)
		lets := func(when string, lets bool, shows ...tls.Certificate) {
			t.Helper()
			if _, err := call(s.addr(), ca.clients(), shows...); (err == nil) != lets {
				t.Errorf("%s: let in is to be %t: %v", when, lets, err)
			}
		}
		lets("optional, without", true)
		lets("optional, of the authority", true, mine)
		lets("optional, of another", false, foreign)
		lets("optional, for servers", false, servers)

		resumes := ca.clients()
		resumes.ClientSessionCache = tls.NewLRUClientSessionCache(4)
		stays, err := call(s.addr(), resumes)
		must(t, err)
		must(t, admin.ConfigSetAll(ctx, map[string]string{"tls-auth-clients": "yes"}))
		if again, err := call(s.addr(), resumes); err != nil || !again.ConnectionState().DidResume {
			t.Errorf("a session of before is not resumed: need the certificate still be loaded? %v", err)
		}
		must(t, admin.ConfigSetAll(ctx, map[string]string{"tls-auth-clients": "yes", "tls-cert-file": filepath.Join(dir, "tls.crt")}))
		if _, err := call(s.addr(), resumes); err == nil {
			t.Error("a session of before is resumed without a certificate after it was loaded")
		}
		if answer, err := stays.asks("PING"); err != nil || answer != "+PONG\r\n" {
			t.Errorf("a connection of before is answered by %q, %v", answer, err)
		}
		lets("required, without", false)
		lets("required, of the authority", true, mine)
		lets("required, of another", false, foreign)

		must(t, admin.ConfigSetAll(ctx, map[string]string{"tls-auth-clients": "no"}))
		lets("none, without", true)
		lets("none, of another", true, foreign)
	})
}

// wants has instances want that of clients, and lets the operator work until they do.
func (s *switched) wants(certificates v1alpha1.ClientCertificates) {
	s.t.Helper()
	s.cluster.Spec.TLS.ClientCertificates = certificates
	s.until(string(certificates), func() {}, func() bool {
		return s.cluster.Status.TLS.ClientCertificates == certificates &&
			meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionTLSModeInForce)
	})
}

// Certificates of clients become required, and optional again, under load: clients that have one have no command fail, others are let in
// until then, and the operator, the instances and their scripts go on.
func TestCertificatesOfClientsAreRequired(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		s := startSwitched(t, e, 2, 2, 2)
		s.shows = []tls.Certificate{s.ca.client(x509.ExtKeyUsageClientAuth)}
		s.to(v1alpha1.TLSBoth, func() {})
		s.to(v1alpha1.TLSRequired, func() {})
		lets := func(when string, lets bool) {
			t.Helper()
			for _, p := range s.pods {
				if _, err := call(net.JoinHostPort(p.pod.Status.PodIP, "6379"), s.ca.clients()); (err == nil) != lets {
					t.Errorf("%s: %s is to let clients in without a certificate: %t: %v", when, p.pod.Name, lets, err)
				}
			}
		}
		load := startLoadBy(t, s.applications(true), "certified")
		lets("at first", true)
		s.wants(v1alpha1.ClientCertificatesRequired)
		lets("required", false)
		s.stops(0, redisconf.TLSRequired)
		p := s.named(1, 1)
		s.stop(p)
		s.again(p, false, false)
		s.converge()
		s.wants(v1alpha1.ClientCertificatesOptional)
		lets("optional again", true)
		load.end()
	})
}

// Clients outside come to instances that want a certificate by that of the gateway, which wants one of them in turn.
func TestGatewayShowsAndWantsCertificates(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		inner, outer, theirs, dir, front := newAuthority(t), newAuthority(t), newAuthority(t), t.TempDir(), t.TempDir()
		inner.issue(dir)
		outer.issue(front, net.ParseIP("127.0.0.1"))
		must(t, os.WriteFile(filepath.Join(front, "clients.crt"), theirs.pem, 0o600))
		mine := inner.client(x509.ExtKeyUsageClientAuth)
		secured := inner.trusted(certifiedName).Showing(func() *tls.Certificate { return &mine })
		c := startClusterOf(t, newPool(t), 3, 3, 0, func(pool *redis.Pool) *server { return startEncrypted(t, e, pool, dir, secured) })
		for i := range c.servers {
			must(t, c.node(i).ConfigSetAll(t.Context(), map[string]string{"tls-auth-clients": "yes"}))
		}
		o := startClientsOutside(c, func(g *gateway.Options) {
			g.CAFile, g.ServerName = dir+"/ca.crt", certifiedName
			g.CertFile, g.KeyFile = front+"/tls.crt", front+"/tls.key"
			g.ClientCertFile, g.ClientKeyFile, g.ClientCAFile = dir+"/tls.crt", dir+"/tls.key", front+"/clients.crt"
		})
		config := outer.clients()
		config.ServerName = "127.0.0.1"
		for _, shows := range [][]tls.Certificate{nil, {mine}} {
			if _, err := call(o.address(0), config, shows...); err == nil {
				t.Errorf("a client is let in with %d certificates of another authority", len(shows))
			}
		}
		config.Certificates = []tls.Certificate{theirs.client(x509.ExtKeyUsageClientAuth)}
		useOutside(t, o.client(func(options *goredis.ClusterOptions) { options.TLSConfig = config }), "tls")
		o.checkDialed(3)
	})
}
