// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"middleware.hc.cn/operator/internal/archive"
)

// What the tests' store is called, and whose secret no message may repeat.
const (
	bucketName  = "backups"
	storeUser   = "store-user"
	storeSecret = "store-secret"
	storePrefix = "shop/"
)

// minio is a real server that speaks S3's language, with TLS, and one bucket.
type minio struct {
	t       testing.TB
	ca      *authority
	dir     string
	port    int
	secret  string   // of storeUser, who may do everything
	env     []string // further settings
	room    string   // of a disk of its own, which is lost when it stops; empty: none
	output  *bytes.Buffer
	process *exec.Cmd
}

// tool is the path of a program that make test-engine names.
func tool(t testing.TB, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set: it must be the path of a program, as make test-engine sets it", variable)
	}
	return path
}

func startMinIO(t testing.TB) *minio {
	t.Helper()
	m := newMinIO(t)
	m.start()
	return m
}

func newMinIO(t testing.TB) *minio {
	t.Helper()
	m := &minio{t: t, ca: newAuthority(t), dir: t.TempDir(), port: freePort(t), secret: storeSecret}
	certificates := filepath.Join(m.dir, "certificates")
	must(t, errors.Join(os.Mkdir(certificates, 0o700), os.Mkdir(filepath.Join(m.dir, "data"), 0o700)))
	m.ca.issue(certificates, net.IPv4(127, 0, 0, 1))
	must(t, errors.Join(os.Rename(filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "public.crt")),
		os.Rename(filepath.Join(certificates, "tls.key"), filepath.Join(certificates, "private.key"))))
	must(t, os.Rename(filepath.Join(certificates, "ca.crt"), m.caFile()))
	return m
}

// start runs the server for the first time, and makes the bucket.
func (m *minio) start() {
	m.t.Helper()
	m.run()
	m.t.Cleanup(func() {
		m.kill()
		if m.t.Failed() {
			m.t.Logf("the store wrote:\n%s", m.output)
		}
	})
	_, err := m.client(m.root()).CreateBucket(m.t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucketName)})
	must(m.t, err)
}

func (m *minio) caFile() string { return filepath.Join(m.dir, "ca.crt") }

// run starts the server, and waits until it takes requests.
func (m *minio) run() {
	m.t.Helper()
	m.output = &bytes.Buffer{}
	data := filepath.Join(m.dir, "data")
	line := []string{tool(m.t, "MINIO"), "server", "--quiet", "--address", m.addr(), "--certs-dir", filepath.Join(m.dir, "certificates"), data}
	if m.room != "" {
		mount := `mount -t tmpfs -o size=` + m.room + ` tmpfs "$0" && exec "$@"`
		line = append([]string{"unshare", "--map-root-user", "--mount", "sh", "-c", mount, data}, line...)
	}
	m.process = exec.Command(line[0], line[1:]...)
	m.process.Env = append(os.Environ(), "MINIO_ROOT_USER="+storeUser, "MINIO_ROOT_PASSWORD="+m.secret, "MINIO_BROWSER=off",
		"HOME="+m.dir)
	m.process.Env = append(m.process.Env, m.env...)
	m.process.Stdout, m.process.Stderr = m.output, m.output
	must(m.t, m.process.Start())
	eventually(m.t, func() error {
		_, err := m.client(m.root()).ListBuckets(m.t.Context(), nil)
		return err
	})
}

// kill ends the server as a lost machine does.
func (m *minio) kill() {
	_ = m.process.Process.Kill() // it may have ended
	_ = m.process.Wait()         // that it ends is what counts
}

func (m *minio) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)) }

func (m *minio) root() aws.Credentials {
	return aws.Credentials{AccessKeyID: storeUser, SecretAccessKey: m.secret}
}

// http trusts the authority of the test and no other.
func (m *minio) http() *http.Client {
	trusted := x509.NewCertPool()
	trusted.AddCert(m.ca.certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	m.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (m *minio) client(as aws.Credentials) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String("https://" + m.addr()), UsePathStyle: true, Region: "us-east-1", HTTPClient: m.http(),
		Credentials: credentials.StaticCredentialsProvider{Value: as},
		Retryer:     retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = 100 * time.Millisecond }), // as often as ever
	})
}

// session is somebody who may do what a policy says, for an hour.
func (m *minio) session(policy string) aws.Credentials {
	m.t.Helper()
	client := sts.New(sts.Options{BaseEndpoint: aws.String("https://" + m.addr()), Region: "us-east-1", HTTPClient: m.http(),
		Credentials: credentials.StaticCredentialsProvider{Value: m.root()}})
	out, err := client.AssumeRole(m.t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::000000000000:role/backup"),
		RoleSessionName: aws.String("backup"), Policy: aws.String(policy)})
	must(m.t, err)
	return aws.Credentials{AccessKeyID: *out.Credentials.AccessKeyId, SecretAccessKey: *out.Credentials.SecretAccessKey,
		SessionToken: *out.Credentials.SessionToken}
}

// store is the bucket as the command line opens it, without a prefix.
func (m *minio) store(as aws.Credentials, keys archive.Keys) *archive.Store {
	m.t.Helper()
	bucket, err := s3blob.OpenBucket(m.t.Context(), m.client(as), bucketName, nil)
	must(m.t, err)
	m.t.Cleanup(func() { _ = bucket.Close() })
	return archive.NewStore(blob.PrefixedBucket(bucket, storePrefix), keys)
}

// objects are the keys that lie in the bucket.
func (m *minio) objects() (keys []string) {
	m.t.Helper()
	out, err := m.client(m.root()).ListObjectsV2(m.t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucketName)})
	must(m.t, err)
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

// unfinished is how many uploads of an object were begun, and neither completed nor aborted.
func (m *minio) unfinished(key string) int {
	m.t.Helper()
	out, err := m.client(m.root()).ListMultipartUploads(m.t.Context(),
		&s3.ListMultipartUploadsInput{Bucket: aws.String(bucketName), Prefix: aws.String(key)})
	must(m.t, err)
	return len(out.Uploads)
}

// command is the program that takes backups, as a pod runs it: with its store's address as an argument, and credentials in its
// environment.
type command struct {
	store string
	env   []string
}

func (m *minio) command(as aws.Credentials) command {
	address := url.URL{Scheme: "s3", Host: bucketName, RawQuery: url.Values{
		"endpoint": {"https://" + m.addr()}, "use_path_style": {"true"}, "region": {"us-east-1"}, "prefix": {storePrefix},
	}.Encode()}
	return command{store: address.String(), env: []string{"AWS_CA_BUNDLE=" + m.caFile(), "AWS_ACCESS_KEY_ID=" + as.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY=" + as.SecretAccessKey, "AWS_SESSION_TOKEN=" + as.SessionToken, "AWS_EC2_METADATA_DISABLED=true"}}
}

func (c command) process(ctx context.Context, t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	process := exec.CommandContext(ctx, tool(t, "BACKUP"), append(args, "--store", c.store)...)
	process.Env = c.env
	return process
}

// run is what the program prints, and how it fails.
func (c command) run(t testing.TB, args ...string) (string, error) {
	t.Helper()
	process := c.process(t.Context(), t, args...)
	var out, problem bytes.Buffer
	process.Stdout, process.Stderr = &out, &problem
	err := process.Run()
	if strings.Contains(problem.String(), "WARN") {
		t.Errorf("%s: a library warns: %s", args, &problem)
	}
	if err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, &problem)
	}
	return out.String(), nil
}

// wantError fails unless an error tells a person what is wrong, and repeats no secret.
func wantError(t testing.TB, err error, words string, secrets ...string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("the error is %v, and not about %q", err, words)
		return
	}
	for _, secret := range append(secrets, storeSecret) {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error has a secret: %v", err)
		}
	}
}

// newIdentity is a key, and the file that has it.
func newIdentity(t testing.TB) (*age.X25519Identity, string) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	path := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(path, []byte(identity.String()+"\n"), 0o600))
	return identity, path
}
