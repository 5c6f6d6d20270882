// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AuditPolicy has the API server write down every request of the measured operators, and nothing of others. What it costs is the
// same for each request, whoever made it.
const AuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [` + MeasuredGroup + `]
- level: None
`

// MeasuredGroup is the group of the users as which the operators run.
const MeasuredGroup = "bench:measured"

// AuditEvent is what is needed of an audit.k8s.io/v1 Event.
type AuditEvent struct {
	Stage     string
	Verb      string
	User      struct{ Username string }
	ObjectRef *struct{ Resource, Subresource, APIGroup string }
	Received  time.Time `json:"requestReceivedTimestamp"`
}

// Requests count what an operator asked of the API server in some time.
type Requests struct {
	// Total is all but watches and leases: those are counted apart, because a watch is one request that lasts and a lease is
	// renewed by whoever elects leaders.
	Total   int `json:"total"`
	Watches int `json:"watches"`
	Leases  int `json:"leases"`
	// By has the Total's parts, by verb and resource: "patch deployments.apps", "get (discovery)".
	By map[string]int `json:"by"`
}

// Count counts a user's requests that came in from one time until another.
func Count(events []AuditEvent, user string, from, until time.Time) Requests {
	r := Requests{By: map[string]int{}}
	for _, e := range events {
		if e.User.Username != user || e.Received.Before(from) || !e.Received.Before(until) {
			continue
		}
		switch {
		case e.Verb == "watch":
			if e.Stage == "ResponseStarted" {
				r.Watches++
			}
		case e.Stage == "ResponseStarted": // a long answer; its end is written down too
		case e.ObjectRef != nil && e.ObjectRef.Resource == "leases":
			r.Leases++
		default:
			r.Total++
			r.By[e.Verb+" "+e.target()]++
		}
	}
	return r
}

// target names what a request was about.
func (e AuditEvent) target() string {
	if e.ObjectRef == nil {
		return "(discovery)" // /api, /apis, /openapi, /version
	}
	name := schema.GroupResource{Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource}.String()
	if e.ObjectRef.Subresource != "" {
		name += "/" + e.ObjectRef.Subresource
	}
	return name
}

// Most lists the most frequent kinds of requests, at most n: "get secrets 400".
func (r Requests) Most(n int) string {
	keys := slices.SortedFunc(maps.Keys(r.By), func(a, b string) int {
		if r.By[a] != r.By[b] {
			return r.By[b] - r.By[a]
		}
		return strings.Compare(a, b)
	})
	var list []string
	for _, key := range keys[:min(n, len(keys))] {
		list = append(list, fmt.Sprintf("%s %d", key, r.By[key]))
	}
	return strings.Join(list, ", ")
}

// AuditLog reads what the API server appends to its audit log.
type AuditLog struct {
	// Path of the file; the API server makes it with its first event.
	Path   string
	offset int64
	events []AuditEvent
}

// Read returns all events that were written since the last Forget.
func (l *AuditLog) Read() ([]AuditEvent, error) {
	file, err := os.Open(l.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF { // what has no end yet is read next time
			return l.events, nil
		}
		if err != nil {
			return nil, err
		}
		l.offset += int64(len(line))
		var e AuditEvent
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		l.events = append(l.events, e)
	}
}

// Forget drops the events read so far.
func (l *AuditLog) Forget() { l.events = nil }
