// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// A source's password that is changed counts from the next connection on, and so do certificates; connections are shared as long as
// nothing changes, and a file that is missing changes nothing.
func TestLoginsAreRenewed(t *testing.T) {
	dir := t.TempDir()
	password, ca := filepath.Join(dir, "password"), filepath.Join(dir, "ca.crt")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(password, "first\n")
	write(ca, certificate(t))
	l := &logins{login: login{user: "import", passwordFile: password, caFile: ca}}
	if err := l.read(); err != nil {
		t.Fatal(err)
	}
	first := l.at("a")
	if again, other := l.at("a"), l.at("b"); first.Password != "first" || first.User != "import" || again != first || other.TLS == first.TLS {
		t.Error("hosts share what they should not, or do not share what they could")
	}
	write(password, "second\n")
	second := l.at("a")
	if second.Password != "second" || second.TLS != first.TLS {
		t.Error("the password is not the new one, or more was changed")
	}
	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	if l.at("a") != second {
		t.Error("the password that was known is forgotten")
	}
	write(password, "second")
	write(ca, certificate(t)+"\n")
	if l.at("a").TLS == first.TLS {
		t.Error("the certificates are the former ones")
	}
}

func certificate(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}
