// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/redis/slots"
)

const backupPage = "../../docs/backup.md"

// documented is the block of the page about backups that has some words.
func documented(t testing.TB, words string) string {
	t.Helper()
	page, err := os.ReadFile(backupPage)
	must(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```\n").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], words) {
			return block[1]
		}
	}
	t.Fatalf("%s has no block with %s", backupPage, words)
	return ""
}

// TestBackupInS3: what a person does with the program and a store of S3's kind, by somebody who has the rights of the page and no other,
// and a session token; and then without the program.
func TestBackupInS3(t *testing.T) {
	t.Parallel()
	e := engines(t)[0]
	m, c := startMinIO(t), startCluster(t, e, 2, 2, 0)
	client := c.client()
	var keys []string
	for _, part := range slots.All().Split(2) {
		keys = append(keys, everyType(t, client, tags(part, 1)[0])...)
	}
	written := contents(t, client, keys)
	policy := documented(t, "s3:ListBucket")
	as := m.session(policy)
	program := m.command(as)
	run := func(args ...string) string {
		t.Helper()
		out, err := program.run(t, args...)
		must(t, err)
		return out
	}
	identity, keyFile := newIdentity(t)
	c.taking("", nil) // makes the user
	take := []string{"take", "monday", "--from", c.servers[0].addr(), "--user", "backup", "--password-file", c.backupPassword(),
		"--pause", timeout.String(), "--recipient", identity.Recipient().String()}
	run(take...)
	_, err := program.run(t, take...)
	wantError(t, err, "backup monday exists", as.SecretAccessKey, as.SessionToken)
	if list, backup := run("list"), run("show", "monday"); !strings.Contains(list, "monday") || !strings.Contains(backup, `"age"`) {
		t.Errorf("the list is %s, and the backup %s", list, backup)
	}
	program = m.command(m.session(strings.Replace(policy, `"s3:PutObject", "s3:GetObject", "s3:DeleteObject", "s3:AbortMultipartUpload"`,
		`"s3:GetObject"`, 1)))
	_, err = program.run(t, "delete", "monday")
	wantError(t, err, "PermissionDenied")
	run("verify", "monday", "--identity-file", keyFile)

	for name, restore := range map[string]func(shard int, dir string){
		"by the program": func(shard int, dir string) {
			run("restore", "monday", "--identity-file", keyFile, "--shard", fmt.Sprint(shard), "--directory", dir)
		},
		"by hand": func(shard int, dir string) { byHand(t, m, shard, keyFile, dir) },
	} {
		manifest, err := m.store(m.root(), archive.Keys{}).Manifest(t.Context(), "monday")
		must(t, err)
		again := startRestored(t, e, manifest, restore)
		if got := contents(t, again.client(), keys); !maps.Equal(got, written) {
			t.Errorf("%s: keys differ: %v\nwant %v", name, got, written)
		}
	}

	program = m.command(as)
	m.damage(m.objects()[0])
	_, err = program.run(t, "verify", "monday", "--identity-file", keyFile)
	wantError(t, err, "the object is damaged", as.SecretAccessKey, as.SessionToken)
	run("delete", "monday")
	if left := m.objects(); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// backupPassword is a file with the password of the user who takes backups.
func (c *cluster) backupPassword() string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "password")
	must(c.t, os.WriteFile(path, []byte("backup-password\n"), 0o600))
	return path
}

// byHand does what the page says to do without the program.
func byHand(t testing.TB, m *minio, shard int, keyFile, dir string) {
	t.Helper()
	manifest, err := m.store(m.root(), archive.Keys{}).Manifest(t.Context(), "monday")
	must(t, err)
	for _, name := range []string{"base.rdb", "stream.aof"} {
		key := fmt.Sprintf("%smonday/%s/shard-%d/%s", storePrefix, manifest.Attempt, shard, name)
		must(t, os.WriteFile(filepath.Join(dir, name), m.read(key), 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, "appendonlydir"), 0o700))
	must(t, os.Symlink(keyFile, filepath.Join(dir, "key")))
	shell := exec.CommandContext(t.Context(), "sh", "-ec", documented(t, "age --decrypt"))
	shell.Dir, shell.Env = dir, append(os.Environ(), "PATH="+strings.Join([]string{os.Getenv("PATH"),
		filepath.Dir(tool(t, "AGE")), filepath.Dir(tool(t, "ZSTD"))}, ":")) // the machine's own, if it has them
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	nodes := strings.NewReplacer("ID", strings.Repeat(fmt.Sprint(shard+1), 40), "EPOCH", fmt.Sprint(shard+1),
		"0-5460", strings.ReplaceAll(manifest.Shards[shard].Slots.String(), ",", " "))
	must(t, os.WriteFile(filepath.Join(dir, "nodes.conf"), []byte(nodes.Replace(documented(t, "myself,master"))), 0o600))
}

// read is what an object has.
func (m *minio) read(key string) []byte {
	m.t.Helper()
	out, err := m.client(m.root()).GetObject(m.t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key)})
	must(m.t, err)
	data, err := io.ReadAll(out.Body)
	must(m.t, err)
	return data
}

// damage changes a byte of an object.
func (m *minio) damage(key string) {
	m.t.Helper()
	data := m.read(key)
	data[len(data)-1] ^= 1
	_, err := m.client(m.root()).PutObject(m.t.Context(),
		&s3.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key), Body: bytes.NewReader(data)})
	must(m.t, err)
}
