// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/archive/report"
)

// Of an archive that has not begun it is said that it is not ready, and what is not known has no metric.
func TestWhatAnArchiveSays(t *testing.T) {
	handler := watched{&archive.Watch{}, time.Minute, "uid"}.handler()
	ask := func(method, path string) (int, string) {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
		return answer.Code, answer.Body.String()
	}
	code, text := ask(http.MethodGet, "/status")
	said, err := report.ParseArchive([]byte(text))
	if err != nil || code != http.StatusOK || said.Request != "uid" || said.Behind != -1 || said.Objective != 60 {
		t.Errorf("status: %d %s: %+v, %v", code, text, said, err)
	}
	if code, text := ask(http.MethodGet, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "60 s allowed") {
		t.Errorf("readyz: %d %s", code, text)
	}
	code, text = ask(http.MethodGet, "/metrics")
	if code != http.StatusOK || !strings.Contains(text, "\nredis_archive_bases_total 0\n") || strings.Contains(text, "behind_seconds") ||
		strings.Contains(text, "timestamp") {
		t.Errorf("metrics: %d\n%s", code, text)
	}
	if code, _ := ask(http.MethodPost, "/status"); code != http.StatusMethodNotAllowed {
		t.Errorf("a POST is answered with %d", code)
	}
}

// A backup and a restore say how far they are, and whom they work for.
func TestWhatABackupSays(t *testing.T) {
	answer := httptest.NewRecorder()
	progress(&archive.Meter{}, "uid").ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status", http.NoBody))
	if text := answer.Body.String(); answer.Code != http.StatusOK || text != `{"request":"uid","stage":"","elapsed":0,"bytes":0}` {
		t.Errorf("%d %s", answer.Code, text)
	}
}

func TestMetricsOfAnArchive(t *testing.T) {
	at := time.Unix(1800000000, 0)
	text := metrics(report.Archive{First: at, Last: at, Consistent: at, Behind: 1.5, Objective: 60, Bytes: 1 << 40, Paused: 0.25})
	for _, want := range []string{"\nredis_archive_behind_seconds 1.5\n", "\nredis_archive_first_moment_timestamp_seconds 1.8e+09\n",
		"\nredis_archive_stored_bytes_total 1.099511627776e+12\n", "\nredis_archive_paused_seconds_total 0.25\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}

// It is served as long as the archive is written, to a few at a time, and what became of that is the outcome.
func TestServing(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := serving(t.Context(), address, watched{}.handler(), nil); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("an address that is taken: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	over := errors.New("another one writes it")
	err = serving(t.Context(), address, watched{&archive.Watch{}, time.Minute, "uid"}.handler(), func(ctx context.Context) error {
		for range 40 {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/status", http.NoBody)
			if err != nil {
				return err
			}
			answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
			if err != nil {
				return err
			}
			if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "uid") || answer.Body.Close() != nil {
				t.Errorf("%s, %v", text, err)
			}
		}
		return over
	})
	if !errors.Is(err, over) || strings.Contains(err.Error(), "closed") {
		t.Errorf("it ended with %v", err)
	}
}
