// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// issuer gives tokens to pods, as a Kubernetes cluster does.
type issuer struct {
	url string
	key *ecdsa.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	public, err := key.PublicKey.Bytes()
	must(t, err)
	const half = 32 // of a point, after a byte that says how it is written
	i := &issuer{key: key}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"issuer": i.url, "jwks_uri": i.url + "/keys"}
		if r.URL.Path == "/keys" {
			answer = map[string]any{"keys": []map[string]string{{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "key",
				"x": base64.RawURLEncoding.EncodeToString(public[1 : 1+half]), "y": base64.RawURLEncoding.EncodeToString(public[1+half:])}}}
		}
		_ = json.NewEncoder(w).Encode(answer) // who asked sees that it is not whole
	}))
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// token is one of an hour, for who may what a policy of the store says.
func (i *issuer) token(t testing.TB, policy string) string {
	t.Helper()
	part := func(claims map[string]any) string {
		text, err := json.Marshal(claims)
		must(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(map[string]any{"alg": "ES256", "typ": "JWT", "kid": "key"}) + "." + part(map[string]any{
		"iss": i.url, "aud": "backups", "sub": "system:serviceaccount:shop:backup", "policy": policy,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()})
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	must(t, err)
	const half = 32
	signature := make([]byte, 2*half)
	r.FillBytes(signature[:half])
	s.FillBytes(signature[half:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// TestBackupWithAPodsIdentity: the program needs no secret where its pod has a token that the store trusts.
func TestBackupWithAPodsIdentity(t *testing.T) {
	t.Parallel()
	identities := newIssuer(t)
	m := newMinIO(t)
	m.env = []string{"MINIO_IDENTITY_OPENID_CONFIG_URL=" + identities.url + "/.well-known/openid-configuration",
		"MINIO_IDENTITY_OPENID_CLIENT_ID=backups"}
	m.start()
	c := startCluster(t, engines(t)[0], 1, 1, 0)
	file := filepath.Join(t.TempDir(), "token")
	program := m.command(m.root())
	program.env = []string{"AWS_CA_BUNDLE=" + m.caFile(), "AWS_WEB_IDENTITY_TOKEN_FILE=" + file, "AWS_ENDPOINT_URL_STS=https://" + m.addr(),
		"AWS_ROLE_ARN=arn:aws:iam::000000000000:role/backup"} // which Amazon needs, and MinIO does not look at
	c.taking("", nil) // makes the user
	take := []string{"take", "monday", "--from", c.servers[0].addr(), "--user", "backup", "--password-file", c.backupPassword()}

	writer := identities.token(t, "readwrite")
	must(t, os.WriteFile(file, []byte(identities.token(t, "readonly")), 0o600))
	_, err := program.run(t, take...)
	wantError(t, err, "AccessDenied", writer)
	must(t, os.WriteFile(file, []byte(writer), 0o600))
	_, err = program.run(t, take...)
	must(t, err)
	_, err = program.run(t, "verify", "monday")
	must(t, err)
	must(t, os.WriteFile(file, []byte(writer[:len(writer)-2]), 0o600))
	_, err = program.run(t, "verify", "monday")
	wantError(t, err, "AssumeRoleWithWebIdentity", writer[:len(writer)-2])
}
