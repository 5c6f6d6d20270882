// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A read whose answer breaks off, or says that it took too long, is asked for again; a write, which may have been carried out, is not.
func TestReadsAreAskedForAgain(t *testing.T) {
	for method, want := range map[string]int{http.MethodGet: 3, http.MethodPost: 1} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			switch asked++; asked {
			case 1:
				w.Header().Set("Content-Length", "9") // and two come
				_, _ = io.WriteString(w, "no")
			case 2:
				w.WriteHeader(http.StatusGatewayTimeout)
			default:
				_, _ = io.WriteString(w, "yes")
			}
		}))
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
		Check(t, err)
		answer, err := (&http.Client{Transport: patient{http.DefaultTransport}}).Do(request)
		Check(t, err)
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		server.Close()
		if asked != want || method == http.MethodGet && (err != nil || string(text) != "yes") {
			t.Errorf("%s: asked %d times, want %d; %q, %v", method, asked, want, text, err)
		}
	}
}
