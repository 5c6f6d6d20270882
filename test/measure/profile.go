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

	"golang.org/x/sync/errgroup"
)

// Profile samples for so many whole seconds what a program that serves pprof at an address takes of the processors and what it allocates;
// the returned function waits for that and saves what it has in memory too, for `go tool pprof`. Files are named PREFIX-cpu.pprof and so
// on. Sampling costs some percent.
func Profile(ctx context.Context, address, prefix string, during time.Duration) (finish func() error) {
	take := func(name, kind string, seconds time.Duration) error {
		url := fmt.Sprintf("http://%s/debug/pprof/%s", address, kind)
		if seconds > 0 {
			url += fmt.Sprintf("?seconds=%d", int(seconds.Seconds()))
		}
		return save(ctx, url, prefix+"-"+name+".pprof", seconds)
	}
	var sampled errgroup.Group
	sampled.Go(func() error { return take("cpu", "profile", during) })
	sampled.Go(func() error { return take("allocs", "allocs", during) })
	return func() error {
		if err := sampled.Wait(); err != nil {
			return err
		}
		return take("heap", "heap", 0)
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
