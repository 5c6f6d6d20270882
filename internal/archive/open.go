// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2/google"

	"middleware.hc.cn/operator/internal/archive/directory"
)

// prefixKey is the part of an address that all stores have: what the names of all objects begin with.
const prefixKey = "prefix"

// Open opens a store by its address, in which no credentials belong: processes are listed with their arguments, and messages have it.
func Open(ctx context.Context, address string) (*blob.Bucket, error) {
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
	var bucket *blob.Bucket
	switch u.Scheme {
	case s3blob.Scheme:
		return openS3(ctx, u)
	case "file":
		return openDirectory(u)
	case gcsblob.Scheme:
		bucket, err = openGoogle(ctx, u)
	case azureblob.Scheme:
		bucket, err = openAzure(u)
	default:
		err = fmt.Errorf("%.40q is no kind of store: it is s3, gs, azblob or file", u.Scheme)
	}
	if prefix := u.Query().Get(prefixKey); err == nil && prefix != "" {
		bucket = blob.PrefixedBucket(bucket, prefix)
	}
	return bucket, err
}

// openS3 leaves the address to the driver.
func openS3(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	// What the store sums up of an object of several parts cannot be compared with what is read, and the SDK warns of that each time. Each
	// object is compared with its manifest.
	const checksums = "response_checksum_validation"
	if query := u.Query(); !query.Has(checksums) {
		query.Set(checksums, "when_required")
		u.RawQuery = query.Encode()
	}
	return blob.OpenBucket(ctx, u.String())
}

func openDirectory(u *url.URL) (*blob.Bucket, error) {
	dir := u.Path
	switch u.Host {
	case ".":
		dir = strings.TrimPrefix(dir, "/")
	case "", "localhost":
	default:
		return nil, fmt.Errorf("a directory has no host: write file:///%s%s", u.Host, u.Path)
	}
	if err := known(u, prefixKey); err != nil {
		return nil, err
	}
	return directory.Open(dir, u.Query().Get(prefixKey))
}

// openGoogle logs in with a service account's key, or as who the machine is. A file that has the name of the variable may have been written
// by somebody who may not read others: other kinds of credentials say which to read, and where to send them.
func openGoogle(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	const scope = "https://www.googleapis.com/auth/devstorage.read_write"
	if err := known(u, prefixKey); err != nil {
		return nil, err
	}
	if os.Getenv("STORAGE_EMULATOR_HOST") != "" {
		return gcsblob.OpenBucket(ctx, gcp.NewAnonymousHTTPClient(gcp.DefaultTransport()), u.Host, nil)
	}
	var credentials *google.Credentials
	var err error
	if path := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); path != "" {
		var text []byte
		if text, err = os.ReadFile(path); err == nil { //nolint:gosec // who runs the program names the file
			credentials, err = google.CredentialsFromJSONWithType(ctx, text, google.ServiceAccount, scope)
		}
		if err != nil {
			return nil, fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS is not the key of a service account: %w", err)
		}
	} else if credentials, err = google.FindDefaultCredentials(ctx, scope); err != nil {
		return nil, err
	}
	client, err := gcp.NewHTTPClient(gcp.DefaultTransport(), credentials.TokenSource)
	if err != nil {
		return nil, err
	}
	return gcsblob.OpenBucket(ctx, client, u.Host, nil)
}

// openAzure opens a container of a storage account, at the account's own address or at that of another server.
func openAzure(u *url.URL) (*blob.Bucket, error) {
	const endpoint = "endpoint"
	if err := known(u, prefixKey, endpoint); err != nil {
		return nil, err
	}
	account := os.Getenv("AZURE_STORAGE_ACCOUNT")
	if account == "" {
		return nil, errors.New("AZURE_STORAGE_ACCOUNT is not set: it is the name of the storage account")
	}
	service := strings.TrimSuffix(cmp.Or(u.Query().Get(endpoint), "https://"+account+".blob.core.windows.net"), "/")
	at, err := url.Parse(service)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || at.RawQuery != "" {
		return nil, fmt.Errorf("endpoint: %.100q is no URL such as https://HOST:PORT/ACCOUNT", service)
	}
	if token := os.Getenv("AZURE_STORAGE_SAS_TOKEN"); token != "" && os.Getenv("AZURE_STORAGE_KEY") == "" {
		service += "?" + strings.TrimPrefix(token, "?")
	}
	client, err := azureblob.NewDefaultClient(azureblob.ServiceURL(service), azureblob.ContainerName(u.Host))
	if err != nil {
		return nil, err
	}
	return azureblob.OpenBucket(context.Background(), client, nil)
}

// known refuses what an address has that means nothing to its kind of store.
func known(u *url.URL, keys ...string) error {
	for key := range u.Query() {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("%.40q means nothing to a store of this kind, but %s", key, strings.Join(keys, " and "))
		}
	}
	return nil
}
