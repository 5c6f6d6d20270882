// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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

// auditPolicy has the API server write down every request of the measured operators, and nothing of others. What it costs is the
// same for each request, whoever made it.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [` + measuredGroup + `]
- level: None
`

// measuredGroup is the group of the users as which the operators run.
const measuredGroup = "bench:measured"

// auditEvent is what is needed of an audit.k8s.io/v1 Event.
type auditEvent struct {
	Stage     string
	Verb      string
	User      struct{ Username string }
	ObjectRef *struct{ Resource, Subresource, APIGroup string }
	Received  time.Time `json:"requestReceivedTimestamp"`
}

// requests count what an operator asked of the API server in some time.
type requests struct {
	// Total is all but watches and leases: those are counted apart, because a watch is one request that lasts and a lease is
	// renewed by whoever elects leaders.
	Total   int `json:"total"`
	Watches int `json:"watches"`
	Leases  int `json:"leases"`
	// By has the Total's parts, by verb and resource: "patch deployments.apps", "get (discovery)".
	By map[string]int `json:"by"`
}

// count counts a user's requests that came in from one time until another.
func count(events []auditEvent, user string, from, until time.Time) requests {
	r := requests{By: map[string]int{}}
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
func (e auditEvent) target() string {
	if e.ObjectRef == nil {
		return "(discovery)" // /api, /apis, /openapi, /version
	}
	name := schema.GroupResource{Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource}.String()
	if e.ObjectRef.Subresource != "" {
		name += "/" + e.ObjectRef.Subresource
	}
	return name
}

// most lists the most frequent kinds of requests, at most n: "get secrets 400".
func (r requests) most(n int) string {
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

// auditLog reads what the API server appends to its audit log.
type auditLog struct {
	path   string
	offset int64
	events []auditEvent
}

// read returns all events that were written since the last forget.
func (l *auditLog) read() ([]auditEvent, error) {
	file, err := os.Open(l.path)
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
		var e auditEvent
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		l.events = append(l.events, e)
	}
}

// forget drops the events read so far.
func (l *auditLog) forget() { l.events = nil }
