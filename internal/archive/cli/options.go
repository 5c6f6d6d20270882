// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/pflag"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// options are what all commands have.
type options struct {
	store        string
	bytes        int64 // a second, to and from the store; 0: no limit
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
	if o.bytes < 0 {
		return fmt.Errorf("--max-bytes-per-second: %d is less than none", o.bytes)
	}
	bucket, err := archive.Open(ctx, o.store)
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	store := archive.NewStore(bucket, keys)
	if o.bytes > 0 {
		store.Limit(o.bytes)
	}
	return errors.Join(use(store), bucket.Close())
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

// withFiles is withBackup for files that are no backup.
func (o *options) withFiles(ctx context.Context, files []string, use func(*archive.Store, *archive.Manifest) error) error {
	var shards []archive.FileShard
	for _, text := range files {
		owned, objects, _ := strings.Cut(text, ":")
		set, err := slots.Parse(owned)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		shards = append(shards, archive.FileShard{Slots: set, Objects: strings.Split(objects, ",")})
	}
	return o.with(ctx, func(store *archive.Store) error {
		m, err := store.Files(ctx, shards)
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
type login struct {
	user, passwordFile, caFile, serverName string
	shows                                  *pair // to who asks for it; without a file: nothing
}

// addCertificate adds what says which certificate is shown.
func (l *login) addCertificate(flags *pflag.FlagSet) {
	l.shows = &pair{}
	flags.StringVar(&l.shows.cert, "client-cert-file", "", "certificate for servers that want one of clients, in PEM")
	flags.StringVar(&l.shows.key, "client-key-file", "", "its private key")
}

func (l login) credentials() (redis.Credentials, error) {
	c, _, err := l.read()
	return c, err
}

// read is credentials, with the text of the certificates.
func (l login) read() (c redis.Credentials, trusted []byte, err error) {
	c.User = l.user
	if l.passwordFile != "" {
		text, err := os.ReadFile(l.passwordFile)
		if err != nil {
			return c, nil, fmt.Errorf("--password-file: %w", err)
		}
		c.Password = strings.TrimRight(string(text), "\r\n")
	}
	shows := l.shows != nil && l.shows.cert != ""
	if shows != (l.shows != nil && l.shows.key != "") {
		return c, nil, errors.New("--client-cert-file and --client-key-file belong together")
	}
	if l.caFile == "" {
		return c, nil, nil
	}
	if trusted, err = os.ReadFile(l.caFile); err != nil {
		return c, nil, fmt.Errorf("--ca-file: %w", err)
	}
	if c.TLS = redis.NewTLS(trusted, l.serverName); c.TLS == nil {
		return c, nil, fmt.Errorf("--ca-file: %s has no certificate in PEM", l.caFile)
	}
	if !shows {
		return c, trusted, nil
	}
	if _, err := l.shows.get(nil); err != nil {
		return c, nil, fmt.Errorf("--client-cert-file: %w", err)
	}
	c.TLS = c.TLS.Showing(func() *tls.Certificate {
		is, _ := l.shows.get(nil) // as it was last, if it cannot be read now
		return is
	})
	return c, trusted, nil
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
