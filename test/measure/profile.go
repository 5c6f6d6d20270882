// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Profile samples the processor time of a program that serves pprof at an address, for so many whole seconds; the returned function waits
// for that and saves its memory profiles too, for `go tool pprof`. Files are named PREFIX-cpu.pprof and so on. Sampling costs some percent.
func Profile(ctx context.Context, address, prefix string, during time.Duration) (finish func() error) {
	sampled := make(chan error, 1)
	go func() {
		url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", address, int(during.Seconds()))
		sampled <- save(ctx, url, prefix+"-cpu.pprof", during)
	}()
	return func() error {
		if err := <-sampled; err != nil {
			return err
		}
		for _, kind := range []string{"allocs", "heap"} {
			if err := save(ctx, "http://"+address+"/debug/pprof/"+kind, prefix+"-"+kind+".pprof", 0); err != nil {
				return err
			}
		}
		return nil
	}
}

// save writes what a URL serves after some time to a file.
func save(ctx context.Context, url, path string, after time.Duration) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: after + 30*time.Second}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
