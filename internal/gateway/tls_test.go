// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issue writes a certificate that signs itself, for names, and returns who trusts it.
func issue(t testing.TB, cert, key string, names ...string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IsCA: true,
		BasicConstraintsValid: true}
	text, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: text}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		trusted.AppendCertsFromPEM(pem.EncodeToMemory(block))
	}
	return trusted
}

// One port leads to all instances, by the name that a client wants; another name is refused, and sessions are resumed.
func TestServerNames(t *testing.T) {
	dir, port, own := t.TempDir(), free(t), free(t)
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	trusted := issue(t, cert, key, "*.example.com")
	var instances []Instance
	for n, name := range []string{"a", "b", "c"} {
		i := startInstance(t, map[string]string{"PING": "+" + name + "\r\n"})
		i.answers["GET"] = "-MOVED 1 " + i.Addr().String() + "\r\n"
		instance := Instance{Name: name, Outside: fmt.Sprintf("%s.example.com:6379", name), Inside: []string{i.Addr().String()}}
		if n == 2 {
			instance.Port = own
		}
		instances = append(instances, instance)
	}
	// With one port for all, the file has that as well.
	path := filepath.Join(dir, "map.json")
	writeWhole(t, path, Map{Port: port, Instances: instances})
	g := startGateway(t, func(o *Options) { o.MapFile, o.CertFile, o.KeyFile = path, cert, key })
	sessions := tls.NewLRUClientSessionCache(8)
	dial := func(port uint16, server string) (*tls.Conn, error) {
		return tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{RootCAs: trusted, ServerName: server, ClientSessionCache: sessions,
			MinVersion: tls.VersionTLS12})
	}
	for _, tc := range []struct {
		port         uint16
		server, want string
	}{{port, "a.example.com", "a"}, {port, "B.example.com", "b"}, {own, "c.example.com", "c"}, {own, "a.example.com", "c"}} {
		for resumed := range 2 {
			conn, err := dial(tc.port, tc.server)
			if err != nil {
				t.Fatal(tc.server, err)
			}
			in := bufio.NewReader(conn)
			if got, err := ask(conn, in, "PING\r\n"); got != "+"+tc.want+"\r\n" {
				t.Errorf("%s leads to %q, %v", tc.server, got, err)
			}
			if got, err := ask(conn, in, "GET a\r\n"); got != "-MOVED 1 "+tc.want+".example.com:6379\r\n" {
				t.Errorf("%s: a redirection is %q, %v", tc.server, got, err)
			}
			if resumed == 1 && !conn.ConnectionState().DidResume {
				t.Errorf("%s: a session is not resumed", tc.server)
			}
			_ = conn.Close()
		}
	}
	for _, server := range []string{"c.example.com", "x.example.com"} {
		if _, err := dial(port, server); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("%s: %v", server, err)
		}
	}
	eventually(t, func() bool { return g.figures.refused[noHandshake].Load() == 2 })
	// A name that is taken out of the map leads nowhere, also with a session from before.
	writeWhole(t, path, Map{Port: port, Instances: instances[:1]})
	eventually(t, func() bool {
		conn, err := dial(port, "b.example.com")
		if err != nil {
			return true
		}
		defer func() { _ = conn.Close() }()
		_, err = ask(conn, bufio.NewReader(conn), "PING\r\n")
		return err != nil
	})
	// Without TLS nobody can be told apart.
	o := g.options
	o.CertFile = ""
	if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the map: port:") {
		t.Error(err)
	}
}
