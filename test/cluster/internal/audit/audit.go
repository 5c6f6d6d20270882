// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit counts requests to the API server by who made them.
package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"
)

// event is what is used of an audit event (audit.k8s.io/v1).
type event struct {
	AuditID                  string    `json:"auditID"`
	Verb                     string    `json:"verb"`
	UserAgent                string    `json:"userAgent"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
}

// Count is how often a client did one thing.
type Count struct {
	// Client is the program's name in its user agent, without version.
	Client, User string
	Verb         string
	// Resource, with "/subresource"; empty for requests outside of the API.
	Resource string
	Requests int
}

// Requests counts the requests in an audit log that were received in [from, to) by
// clients whose name or user holds the text client. A watch counts once, however
// many lines it has. The busiest come first.
func Requests(log io.Reader, from, to time.Time, client string) ([]Count, error) {
	seen := map[string]bool{}
	counts := map[Count]int{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break // a line without an end is still being written
		}
		if err != nil {
			return nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		c := Count{Client: program(e.UserAgent), User: e.User.Username, Verb: e.Verb, Resource: e.ObjectRef.Resource}
		if e.ObjectRef.Subresource != "" {
			c.Resource += "/" + e.ObjectRef.Subresource
		}
		at := e.RequestReceivedTimestamp
		if at.Before(from) || !at.Before(to) || seen[e.AuditID] ||
			!strings.Contains(c.Client, client) && !strings.Contains(c.User, client) {
			continue
		}
		seen[e.AuditID] = true
		counts[c]++
	}
	out := make([]Count, 0, len(counts))
	for c, n := range counts {
		c.Requests = n
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.Requests != b.Requests {
			return a.Requests > b.Requests
		}
		return fmt.Sprint(a) < fmt.Sprint(b)
	})
	return out, nil
}

// program is the first word of a user agent, up to the version.
func program(userAgent string) string {
	first, _, _ := strings.Cut(userAgent, " ")
	name, _, _ := strings.Cut(first, "/")
	return name
}
