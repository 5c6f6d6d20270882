// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of Google's credentials says no more than a key: other kinds say which files to read and where to send them.
func TestGoogleTakesKeysAlone(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	file := filepath.Join(t.TempDir(), "credentials.json")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for kind, good := range map[string]bool{"service_account": true, "external_account": false, "authorized_user": false,
		"impersonated_service_account": false, "external_account_authorized_user": false, "": false} {
		text := `{"type": "` + kind + `", "client_email": "a@b", "private_key": "k", "token_uri": "http://127.0.0.1:1",
			"audience": "a", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "https://sts.googleapis.com/v1/token",
			"credential_source": {"file": "/etc/passwd"}, "client_id": "c", "client_secret": "s", "refresh_token": "r"}`
		check(t, os.WriteFile(file, []byte(text), 0o600))
		bucket, err := Open(t.Context(), "gs://bucket?prefix=a/")
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "is not the key of a service account") {
			t.Errorf("%s: %v", kind, err)
		}
		if err == nil {
			check(t, bucket.Close())
		}
	}
	check(t, os.Remove(file))
	if _, err := Open(t.Context(), "gs://bucket"); err == nil {
		t.Error("a file that is not there")
	}
}

// An endpoint of Azure's is a server, and nothing that credentials could be hidden in.
func TestAzureEndpoints(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	for address, good := range map[string]bool{"azblob://c": true, "azblob://c?endpoint=http://127.0.0.1:1/account&prefix=a/": true,
		"azblob://c?endpoint=https://account.blob.core.chinacloudapi.cn": true, "azblob://c?endpoint=ftp://a": false,
		"azblob://c?endpoint=https://u:p@a": false, "azblob://c?endpoint=https://a?sig=x": false, "azblob://c?endpoint=account": false,
		"azblob://c?localemu=true": false} {
		bucket, err := Open(t.Context(), address)
		if (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
		if err == nil {
			check(t, bucket.Close())
		}
	}
}
