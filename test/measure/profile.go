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

// profileSeconds is how long processor time is sampled.
const profileSeconds = 10

// Profile samples the processor time of a program that serves pprof at an address; the returned function waits for that and saves its
// memory profiles too, for `go tool pprof`. Files are named PREFIX-cpu.pprof and so on. Sampling costs some percent.
func Profile(ctx context.Context, address, prefix string) (finish func() error) {
	sampled := make(chan error, 1)
	go func() {
		sampled <- save(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", address, profileSeconds), prefix+"-cpu.pprof")
	}()
	return func() error {
		if err := <-sampled; err != nil {
			return err
		}
		for _, kind := range []string{"allocs", "heap"} {
			if err := save(ctx, "http://"+address+"/debug/pprof/"+kind, prefix+"-"+kind+".pprof"); err != nil {
				return err
			}
		}
		return nil
	}
}

// save writes what a URL serves to a file.
func save(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: (profileSeconds + 30) * time.Second}
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
