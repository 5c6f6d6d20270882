// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// beginsWithFiles has redis-cli write an RDB of each master of a cluster into the store, and makes a cluster that begins with these.
func beginsWithFiles(t *testing.T, store *s3.Client, of *v1alpha1.RedisCluster, in v1alpha1.BackupStore, keys int) {
	t.Helper()
	files := &v1alpha1.RestoreFiles{Store: in}
	live.Ready(t, of)
	for shard := range int32(3) {
		from := master(t, of, shard)
		text, err := live.Execute(t.Context(), of.Namespace, from.Name, "redis", "sh", "-c",
			prelude+"redis-cli --rdb /data/copy >/dev/null 2>&1 && base64 /data/copy && rm /data/copy")
		if err != nil {
			t.Fatal(err)
		}
		rdb, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("copies/shard-%d.rdb", shard)
		if _, err := store.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String(in.S3.Prefix + "/" + name),
			Body: bytes.NewReader(rdb)}); err != nil {
			t.Fatal(err)
		}
		files.Shards = append(files.Shards, v1alpha1.RestoreFileShard{Objects: []string{name}, Slots: from.Slots})
	}
	cluster := newCluster(of.Namespace, "files")
	cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{Files: files}}
	live.Create(t, cluster)
	live.Ready(t, cluster)
	wantHealthy(t, cluster, 3, 6)
	load := live.NewLoad(t, cluster)
	load.Began(keys)
	load.WantData()
}
