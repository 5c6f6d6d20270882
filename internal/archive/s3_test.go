// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/s3blob"
)

// newS3 is a store whose server answers as told. How a real one does is what test/engine shows.
func newS3(t *testing.T, answer http.HandlerFunc) *Store {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	bucket, err := s3blob.OpenBucket(t.Context(), s3.New(s3.Options{BaseEndpoint: aws.String(server.URL), UsePathStyle: true, Region: "x",
		Credentials: credentials.NewStaticCredentialsProvider("user", "secret", "")}), "bucket", nil)
	check(t, err)
	t.Cleanup(func() { check(t, bucket.Close()) })
	return NewStore(bucket, Keys{})
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>so it is</Message></Error>", code)
}

// An upload that is given up is aborted, although its context has ended.
func TestUploadsThatAreGivenUpAreAborted(t *testing.T) {
	ctx, giveUp := context.WithCancel(t.Context())
	var aborted atomic.Bool
	s := newS3(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
			fmt.Fprint(w, "<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>")
		case r.Method == http.MethodPut:
			w.Header().Set("ETag", `"sum"`)
			giveUp()
		case r.Method == http.MethodDelete && r.URL.Query().Get("uploadId") == "id":
			aborted.Store(true)
			w.WriteHeader(http.StatusNoContent)
		default:
			refuse(w, http.StatusBadRequest, "Unexpected")
		}
	})
	noise := make([]byte, 1<<20) // which nothing makes smaller
	_, err := s.put(ctx, "key", func(to io.Writer) error {
		for ctx.Err() == nil {
			rand.Read(noise)
			if _, err := to.Write(noise); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !aborted.Load() {
		t.Errorf("%v, and the upload was aborted: %t", err, aborted.Load())
	}
}

// A bucket that is not there has no backups, and is not an empty one.
func TestBucketThatIsNotThere(t *testing.T) {
	s := newS3(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "NoSuchBucket") })
	for name, try := range map[string]func() error{
		"show":   func() error { _, err := s.Manifest(t.Context(), "b"); return err },
		"delete": func() error { return s.Delete(t.Context(), "b") },
	} {
		if err := try(); err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "NoSuchBucket") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Amazon's S3 denies access to an object that is not there, to who may list only what begins with a prefix.
func TestAbsentObjectsThatAreDenied(t *testing.T) {
	there := false
	s := newS3(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !r.URL.Query().Has("list-type"):
			refuse(w, http.StatusForbidden, "AccessDenied")
		case there && r.URL.Query().Get("prefix") == manifestKey("b"):
			fmt.Fprintf(w, "<ListBucketResult><Contents><Key>%s</Key><LastModified>2026-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>",
				manifestKey("b"))
		default:
			fmt.Fprint(w, "<ListBucketResult></ListBucketResult>")
		}
	})
	if _, err := s.Manifest(t.Context(), "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	check(t, s.Delete(t.Context(), "b"))
	there = true
	if _, err := s.Manifest(t.Context(), "b"); err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("one that is there: %v", err)
	}
	if err := s.Delete(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "PermissionDenied") {
		t.Errorf("one that is there is deleted: %v", err)
	}
}

// An answer that breaks off is no damage: the same object may be read another time.
func TestAnswersThatBreakOff(t *testing.T) {
	s := newS3(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	})
	err := s.get(t.Context(), "key", Object{Size: 100}, false, io.Discard)
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "broke off after 4 of 100 bytes") {
		t.Error(err)
	}
}
