// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
)

// abortUploads has an upload to S3 that is given up tell the store so. Otherwise the request to abort it would end with the context of the
// upload: the parts would stay, be paid for, and be in no list of objects. For other stores it does nothing.
func abortUploads(bucket *blob.Bucket, o *blob.WriterOptions) *blob.WriterOptions {
	const within = 30 * time.Second
	var client *s3.Client
	if !bucket.As(&client) {
		return o
	}
	o.BeforeWrite = func(as func(any) bool) error {
		var uploads *transfermanager.Client
		if as(&uploads) {
			*uploads = *transfermanager.New(client, func(t *transfermanager.Options) {
				t.PartSizeBytes, t.Concurrency, t.FailTimeout = int64(o.BufferSize), o.MaxConcurrency, within
				t.RequestChecksumCalculation = client.Options().RequestChecksumCalculation
			})
		}
		return nil
	}
	return o
}
