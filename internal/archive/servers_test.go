// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// place is a store of a kind, with credentials in the environment of the test.
type place struct {
	address string
	// denied has credentials in the environment that the store does not know; nil: it knows everybody.
	denied func(t *testing.T)
}

// within puts a part between the two parts of the address.
func (p place) within(prefix string) string {
	separator := "?"
	if strings.Contains(p.address, "?") {
		separator = "&"
	}
	return p.address + separator + "prefix=" + prefix
}

// places are the stores that there are: a directory, and servers whose programs make test-engine names.
var places = map[string]func(t *testing.T) place{
	"file":     func(t *testing.T) place { return place{address: "file://" + t.TempDir()} },
	"minio":    newMinIO,
	"fake-gcs": newGoogle,
	"azurite":  newAzure,
}

const bucketName = "backups"

// serve runs a program until the test ends, and waits until try succeeds.
func serve(t *testing.T, env []string, try func() error, program string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	process := exec.Command(program, args...)
	process.Env = append(os.Environ(), env...)
	process.Stdout, process.Stderr = &output, &output
	check(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill() // it may have ended
		_ = process.Wait()         // that it ends is what counts
		if t.Failed() {
			t.Logf("the server wrote:\n%s", &output)
		}
	})
	var err error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// programOf is the path of a server's program.
func programOf(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s is not set: it is the path of a server's program, as make test-engine sets it", variable)
	}
	return path
}

// freeAddress is one of this machine alone that nothing listens on.
func freeAddress(t *testing.T) (address, port string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	address = listener.Addr().String()
	check(t, listener.Close())
	_, port, err = net.SplitHostPort(address)
	check(t, err)
	return address, port
}

func newMinIO(t *testing.T) place {
	t.Helper()
	program, secret := programOf(t, "MINIO"), rand.Text()
	address, _ := freeAddress(t)
	client := s3.New(s3.Options{BaseEndpoint: aws.String("http://" + address), UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("user", secret, "")})
	serve(t, []string{"MINIO_ROOT_USER=user", "MINIO_ROOT_PASSWORD=" + secret, "MINIO_BROWSER=off", "HOME=" + t.TempDir()}, func() error {
		_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucketName)})
		return err
	}, program, "server", "--quiet", "--address", address, t.TempDir())
	t.Setenv("AWS_ACCESS_KEY_ID", "user")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return place{"s3://" + bucketName + "?region=us-east-1&use_path_style=true&endpoint=http://" + address,
		func(t *testing.T) { t.Setenv("AWS_SECRET_ACCESS_KEY", rand.Text()) }}
}

func newGoogle(t *testing.T) place {
	t.Helper()
	program := programOf(t, "FAKE_GCS")
	address, port := freeAddress(t)
	serve(t, nil, func() error {
		return post(t.Context(), "http://"+address+"/storage/v1/b?project=p", fmt.Sprintf(`{"name": %q}`, bucketName))
	}, program, "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-public-host", address, "-backend", "memory")
	t.Setenv("STORAGE_EMULATOR_HOST", address)
	return place{address: "gs://" + bucketName}
}

func post(ctx context.Context, url, text string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if answer != nil {
		err = errors.Join(err, answer.Body.Close())
	}
	return err
}

func newAzure(t *testing.T) place {
	t.Helper()
	program, account := programOf(t, "AZURITE"), "storage"
	newKey := func() string { return base64.StdEncoding.EncodeToString([]byte(rand.Text() + rand.Text())) }
	address, port := freeAddress(t)
	key, service := newKey(), "http://"+address+"/"+account
	login, err := container.NewSharedKeyCredential(account, key)
	check(t, err)
	client, err := container.NewClientWithSharedKeyCredential(service+"/"+bucketName, login, nil)
	check(t, err)
	serve(t, []string{"AZURITE_ACCOUNTS=" + account + ":" + key}, func() error {
		_, err := client.Create(t.Context(), nil)
		return err
	}, program, "--blobHost", "127.0.0.1", "--blobPort", port, "--location", t.TempDir(), "--silent",
		"--disableTelemetry", "--skipApiVersionCheck")
	t.Setenv("AZURE_STORAGE_ACCOUNT", account)
	t.Setenv("AZURE_STORAGE_KEY", key)
	return place{"azblob://" + bucketName + "?endpoint=" + service, func(t *testing.T) { t.Setenv("AZURE_STORAGE_KEY", newKey()) }}
}
