// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/pflag"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/fileblob"  // file://
	"gocloud.dev/blob/s3blob"      // s3://

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/redis"
)

// options are what all commands have.
type options struct {
	store        string
	identityFile string
	recipients   []string
}

// with opens the store.
func (o *options) with(ctx context.Context, use func(*archive.Store) error) error {
	if o.store == "" {
		return errors.New("--store is required, such as s3://BUCKET?region=REGION or file:///DIRECTORY")
	}
	keys, err := o.keys()
	if err != nil {
		return err
	}
	bucket, err := open(ctx, o.store)
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	return errors.Join(use(archive.NewStore(bucket, keys)), bucket.Close())
}

// open opens a store by its address, in which no credentials belong: processes are listed with their arguments, and messages have it.
func open(ctx context.Context, address string) (*blob.Bucket, error) {
	u, err := url.Parse(address)
	if problem := (*url.Error)(nil); errors.As(err, &problem) {
		return nil, problem.Err // without the address
	}
	if err == nil && u.User != nil {
		err = errors.New("an address has no credentials: they come from the environment")
	}
	if err != nil {
		return nil, err
	}
	// What the store sums up of an object of several parts cannot be compared with what is read, and the SDK warns of that each time. Each
	// object is compared with its manifest.
	const checksums = "response_checksum_validation"
	if query := u.Query(); u.Scheme == s3blob.Scheme && !query.Has(checksums) {
		query.Set(checksums, "when_required")
		u.RawQuery = query.Encode()
	}
	return blob.OpenBucket(ctx, u.String())
}

// which is which moment of an archive is meant.
type which struct {
	to         string
	consistent bool
}

func (w *which) add(flags *pflag.FlagSet) {
	flags.StringVar(&w.to, "to", "", "of an archive: the last moment that is not after this time, such as 2026-11-24T03:00:00Z; or latest")
	flags.BoolVar(&w.consistent, "consistent", false, "of an archive: only a moment that is one for all shards")
}

// of reads the moment of an archive, or the backup if none is asked for.
func (w *which) of(ctx context.Context, store *archive.Store, name string) (*archive.Manifest, error) {
	switch w.to {
	case "":
		m, err := store.Manifest(ctx, name)
		if errors.Is(err, archive.ErrNotFound) {
			err = fmt.Errorf("%w (if it is an archive, say which moment is meant: --to)", err)
		}
		return m, err
	case "latest":
		return store.At(ctx, name, time.Time{}, w.consistent)
	}
	at, err := time.Parse(time.RFC3339, w.to)
	if err != nil {
		return nil, fmt.Errorf("--to: %.40q is neither latest nor a time such as 2026-11-24T03:00:00Z", w.to)
	}
	return store.At(ctx, name, at, w.consistent)
}

func (o *options) withBackup(ctx context.Context, name string, w which, use func(*archive.Store, *archive.Manifest) error) error {
	return o.with(ctx, func(store *archive.Store) error {
		m, err := w.of(ctx, store, name)
		if err != nil {
			return err
		}
		return use(store, m)
	})
}

func (o *options) keys() (keys archive.Keys, err error) {
	for _, text := range o.recipients {
		recipient, err := age.ParseX25519Recipient(text)
		if err != nil {
			return keys, fmt.Errorf("--recipient: %w", err)
		}
		keys.Recipients = append(keys.Recipients, recipient)
	}
	if o.identityFile == "" {
		return keys, nil
	}
	file, err := os.Open(o.identityFile)
	if err != nil {
		return keys, fmt.Errorf("--identity-file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was read
	if keys.Identities, err = age.ParseIdentities(file); err != nil {
		return keys, fmt.Errorf("--identity-file: %w", err)
	}
	return keys, nil
}

// login is who logs in to instances, and how.
type login struct{ user, passwordFile, caFile, serverName string }

func (l login) credentials() (c redis.Credentials, err error) {
	c.User = l.user
	if l.passwordFile != "" {
		text, err := os.ReadFile(l.passwordFile)
		if err != nil {
			return c, fmt.Errorf("--password-file: %w", err)
		}
		c.Password = strings.TrimRight(string(text), "\r\n")
	}
	if l.caFile == "" {
		return c, nil
	}
	text, err := os.ReadFile(l.caFile)
	if err != nil {
		return c, fmt.Errorf("--ca-file: %w", err)
	}
	if c.TLS = redis.NewTLS(text, l.serverName); c.TLS == nil {
		return c, fmt.Errorf("--ca-file: %s has no certificate in PEM", l.caFile)
	}
	return c, nil
}

// engineOf reads ENGINE:VERSION; empty: none.
func engineOf(text string) (redis.Engine, string, error) {
	if text == "" {
		return "", "", nil
	}
	engine, version, found := strings.Cut(text, ":")
	if e := redis.Engine(engine); found && (e == redis.EngineRedis || e == redis.EngineValkey) {
		return e, version, nil
	}
	return "", "", fmt.Errorf("--engine: %.40q is not redis:VERSION or valkey:VERSION", text)
}
