// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// errDead is what a process that has ended hears of everything that it asks.
var errDead = errors.New("this process has ended")

// Of returns a copy of a configuration whose clients are this process': what they write can end it or be refused, and when it has
// ended nothing that they send arrives. Events are no writes here: they are told in the background, some time or never, and
// nothing reads them.
func (p *Process) Of(as *rest.Config) *rest.Config {
	own := rest.CopyConfig(as)
	own.QPS = -1
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next, p} })
	return own
}

// Dial returns a dialer whose connections are this process': when it has ended, nothing that it sends arrives.
func (p *Process) Dial(dial func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		if err := p.await(ctx); err != nil {
			return nil, err
		}
		if p.Died() {
			return nil, errDead
		}
		inner, err := dial(ctx, address)
		if err != nil {
			return nil, err
		}
		return connection{inner, p}, nil
	}
}

type connection struct {
	net.Conn
	process *Process
}

func (c connection) Write(b []byte) (int, error) {
	<-orNow(c.process.goesOn())
	if c.process.Died() {
		return 0, errDead
	}
	return c.Conn.Write(b)
}

type transport struct {
	next    http.RoundTripper
	process *Process
}

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := t.process.await(request.Context()); err != nil {
		return nil, err
	}
	if !writes(request) {
		if t.process.Died() {
			return nil, errDead
		}
		return t.next.RoundTrip(request)
	}
	when := t.process.Strikes(request.Method+" "+request.URL.Path, true)
	if refusal := Refusals[when]; refusal != nil {
		return Refuse(request, refusal)
	}
	switch when {
	case Before:
		return nil, errDead
	case Unanswered, Lost:
		response, err := t.next.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if when == Lost {
			return nil, ErrReset
		}
		return nil, errDead
	case Late: // whoever waits for the answer may have been told to wait no longer, and is not running
		<-t.process.goesOn()
		return t.next.RoundTrip(request.WithContext(context.WithoutCancel(request.Context())))
	case Never, Answered:
	}
	return t.next.RoundTrip(request)
}

// await waits as long as the process is stopped.
func (p *Process) await(ctx context.Context) error {
	select {
	case <-orNow(p.goesOn()):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var now = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// orNow is a channel, or one that is closed.
func orNow(c chan struct{}) chan struct{} {
	if c == nil {
		return now
	}
	return c
}

// writes reports whether a request changes something: no read, no question in the form of an object, no attempt, no Event.
func writes(request *http.Request) bool {
	switch {
	case request.Method == http.MethodGet || request.Method == http.MethodHead:
		return false
	case strings.Contains(request.URL.Path, "/apis/authorization.k8s.io/"), request.URL.Query().Has("dryRun"):
		return false
	}
	return !strings.HasSuffix(request.URL.Path, "/events") && !strings.Contains(request.URL.Path, "/events/")
}

// Refuse answers in the place of the API server.
func Refuse(request *http.Request, refusal error) (*http.Response, error) {
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) {
		return nil, refusal
	}
	said := status.Status()
	said.Kind, said.APIVersion = "Status", "v1"
	body, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if said.Details != nil && said.Details.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(said.Details.RetryAfterSeconds)))
	}
	return &http.Response{Status: http.StatusText(int(said.Code)), StatusCode: int(said.Code), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request}, nil
}
