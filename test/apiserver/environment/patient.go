// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// patient asks an API server again that did not answer a read: a crowded machine keeps it waiting, and no test is about that. It is for the
// tests' own clients alone.
type patient struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet || request.URL.Query().Has("watch") {
		return p.next.RoundTrip(request)
	}
	const most = 20
	for tries := 1; ; tries++ {
		answer, err := p.once(request)
		answered := err == nil && answer.StatusCode != http.StatusGatewayTimeout
		if answered || tries == most || request.Context().Err() != nil {
			return answer, err
		}
		select {
		case <-time.After(time.Second / 2):
		case <-request.Context().Done():
		}
	}
}

// once reads all of an answer: where it breaks off, the client would not ask again.
func (p patient) once(request *http.Request) (*http.Response, error) {
	answer, err := p.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func(body io.Closer) { _ = body.Close() }(answer.Body)
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, nil
}
