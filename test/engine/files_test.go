// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	goredis "github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// forFiles runs the test on the newest engine, and with E2E=all on every one.
func forFiles(t *testing.T, test func(t *testing.T, e engine)) {
	t.Helper()
	all := engines(t)
	if os.Getenv("E2E") != "all" {
		all = all[len(all)-1:]
	}
	forEach(t, all, test)
}

// upload puts a file of a server into the store.
func (m *minio) upload(name string, text []byte) {
	m.t.Helper()
	_, err := m.client(m.root()).PutObject(m.t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucketName),
		Key: aws.String(storePrefix + name), Body: bytes.NewReader(text)})
	must(m.t, err)
}

// restoreFiles writes the files of all shards into directories, and returns the first error.
func restoreFiles(t *testing.T, store *archive.Store, dir func(shard int) string, shards ...archive.FileShard) error {
	t.Helper()
	m, err := store.Files(t.Context(), shards)
	for shard := range shards {
		if err != nil {
			return err
		}
		err = store.Restore(t.Context(), archive.Restoring{Manifest: m, Shard: shard, Directory: dir(shard), Request: "uid"})
	}
	return err
}

// fromFiles is a cluster that begins with files, and asks for a topology.
func fromFiles(t *testing.T, e engine, topology v1alpha1.Topology, store *archive.Store, shards ...archive.FileShard) *operated {
	t.Helper()
	o := prepared(t, e, topology)
	files := &v1alpha1.RestoreFiles{Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: bucketName, Region: "us-east-1",
		CredentialsSecretName: "store"}}}
	o.cluster.Status.Restored = &v1alpha1.RestoredData{}
	for _, shard := range shards {
		files.Shards = append(files.Shards, v1alpha1.RestoreFileShard{Objects: shard.Objects, Slots: shard.Slots.String()})
		o.cluster.Status.Restored.Slots = append(o.cluster.Status.Restored.Slots, shard.Slots.String())
	}
	o.cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{Files: files}}
	dirs := map[int]string{}
	must(t, restoreFiles(t, store, func(shard int) string {
		dirs[shard] = t.TempDir()
		return dirs[shard]
	}, shards...))
	o.begin(topology[:len(shards)], func(shard int, dir string) { must(t, os.CopyFS(dir, os.DirFS(dirs[shard]))) })
	return o
}

func plainClient(t *testing.T, s *server) *goredis.Client {
	client := goredis.NewClient(&goredis.Options{Addr: s.addr(), Password: password, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() }) // the test is over either way
	return client
}

func mustRead(t *testing.T, elements ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	must(t, err)
	return text
}

// TestClusterBeginsWithFilesOfAServer: the RDB and the append-only file of a server in no cluster become a cluster with every key; and what
// a cluster cannot have is refused before anything starts.
func TestClusterBeginsWithFilesOfAServer(t *testing.T) {
	forFiles(t, func(t *testing.T, e engine) {
		m, source := startMinIO(t), startPlain(t, e, newPool(t))
		client, store := plainClient(t, source), m.store(m.root(), archive.Keys{})
		must(t, client.FunctionLoad(t.Context(), "#!lua name=lib\nredis.register_function('f', function() return 7 end)").Err())
		typed := everyType(t, client, "one")
		for i := range 1000 {
			must(t, client.Set(t.Context(), fmt.Sprintf("still:%d", i), i, 0).Err())
		}
		must(t, client.Save(t.Context()).Err())
		rdb, aof := mustRead(t, source.dir, "dump.rdb"), filepath.Join(source.dir, "appendonlydir")
		m.upload("dump.rdb", rdb)
		base, err := filepath.Glob(filepath.Join(aof, "*.base.rdb"))
		must(t, err)
		m.upload("aof/base", mustRead(t, base[0]))
		commands := mustRead(t, aof, "appendonly.aof.1.incr.aof")
		m.upload("aof/incr", commands)
		m.upload("appendonly.aof", append(mustRead(t, base[0]), commands...))

		for _, objects := range [][]string{{"dump.rdb"}, {"aof/base", "aof/incr"}, {"appendonly.aof"}} {
			o := fromFiles(t, e, v1alpha1.Topology{1, 1, 1}, store, archive.FileShard{Slots: slots.All(), Objects: objects})
			first := o.named(0, 0)
			eventually(t, func() error {
				step := o.reconcile()
				return want(meta.IsStatusConditionTrue(o.cluster.Status.Conditions, v1alpha1.ConditionFormed), "%s: %s", step.Name(), step.Why())
			})
			if keys := o.cluster.Status.Restored.Keys; keys == nil || keys.Total != client.DBSize(t.Context()).Val() || keys.WithTTL != 2 {
				t.Errorf("%v: the cluster began with %+v", objects, keys)
			}
			if n := compareDumps(t, client, o.direct(first)); n < 1000 {
				t.Errorf("%v: only %d keys were compared", objects, n)
			}
			if objects[0] == "dump.rdb" {
				o.formed() // and has the shards that were asked for
			}
			if was, is := contents(t, client, typed), contents(t, o.client(), typed); !maps.Equal(was, is) {
				t.Errorf("%v: keys differ: %v\nwant %v", objects, is, was)
			}
			if n, err := o.direct(first).FCall(t.Context(), "f", nil).Int(); n != 7 || err != nil {
				t.Errorf("%v: the function says %d, %v", objects, n, err)
			}
		}

		damaged := bytes.Clone(rdb)
		damaged[len(damaged)-1] ^= 1
		must(t, client.Do(t.Context(), "SELECT", 1).Err())
		other := plainClient(t, source)
		pipe := other.TxPipeline()
		pipe.Do(t.Context(), "SELECT", 1)
		pipe.Set(t.Context(), "elsewhere", 1, 0)
		_, err = pipe.Exec(t.Context())
		must(t, err)
		must(t, other.Save(t.Context()).Err())
		all := slots.All().Split(2)
		for name, refused := range map[string]struct {
			text []byte
			why  string
		}{
			"other database":   {mustRead(t, source.dir, "dump.rdb"), "it has keys in database 1"},
			"database in AOF":  {mustRead(t, aof, "appendonly.aof.1.incr.aof"), `commands for database "1"`},
			"damaged":          {damaged, "its checksum is"},
			"cut off":          {rdb[:len(rdb)/2], "unexpected EOF"},
			"commands cut off": {commands[:len(commands)-5], "it ends within a command"},
			"no file":          {[]byte("PK\x03\x04 zipped"), "is neither an RDB nor an append-only file"},
			"empty":            {nil, "is empty"},
			"administrative":   {[]byte("*3\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$3\r\ndir\r\n"), "the command CONFIG"},
		} {
			object := strings.ReplaceAll(name, " ", "-")
			m.upload(object, refused.text)
			err := restoreFiles(t, store, func(int) string { return t.TempDir() }, archive.FileShard{Slots: slots.All(), Objects: []string{object}})
			if err == nil || !strings.Contains(err.Error(), refused.why) {
				t.Errorf("%s: %v, want %s", name, err, refused.why)
			}
		}
		err = restoreFiles(t, store, func(int) string { return t.TempDir() }, archive.FileShard{Slots: all[0], Objects: []string{"dump.rdb"}},
			archive.FileShard{Slots: all[1], Objects: []string{"dump.rdb"}})
		wantError(t, err, "which is not among the file's slots")
	})
}

// TestClusterBeginsWithFilesOfACluster: so do the RDBs of each master of a cluster.
func TestClusterBeginsWithFilesOfACluster(t *testing.T) {
	forFiles(t, func(t *testing.T, e engine) {
		m, source := startMinIO(t), startCluster(t, e, 3, 3, 0)
		var shards []archive.FileShard
		var keys []string
		for i, part := range slots.All().Split(3) {
			keys = append(keys, everyType(t, source.client(), tags(part, 1)[0])...)
			must(t, source.direct(i).Save(t.Context()).Err())
			name := fmt.Sprintf("nodes/%d.rdb", i)
			m.upload(name, mustRead(t, source.servers[i].dir, "dump.rdb"))
			shards = append(shards, archive.FileShard{Slots: part, Objects: []string{name}})
		}
		o := fromFiles(t, e, v1alpha1.Topology{1, 1, 1}, m.store(m.root(), archive.Keys{}), shards...)
		o.converge()
		if was, is := contents(t, source.client(), keys), contents(t, o.client(), keys); !maps.Equal(was, is) {
			t.Errorf("keys differ: %v\nwant %v", is, was)
		}

		key := "{" + tags(shards[2].Slots, 1)[0] + "}"
		m.upload("foreign.aof", fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1\r\n1\r\n", len(key), key))
		shards[1].Objects = append(shards[1].Objects, "foreign.aof")
		o = fromFiles(t, e, v1alpha1.Topology{1, 1, 1}, m.store(m.root(), archive.Keys{}), shards...)
		for range 5 {
			step, stalls := o.reconcile().(plan.Stall)
			if !stalls || !strings.Contains(step.Reason, "c-1-0 and c-2-0 both own slots") &&
				!strings.Contains(step.Reason, "c-1-0 was restored with slots") {
				t.Fatalf("a key of another shard's slot: %+v", o.steps)
			}
		}
	})
}
