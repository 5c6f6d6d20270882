// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRequests(t *testing.T) {
	const log = `{"auditID":"1","stage":"ResponseComplete","verb":"get","userAgent":"manager/v0.1 (linux/amd64)","user":{"username":"sa:operator"},"objectRef":{"resource":"leases"},"requestReceivedTimestamp":"2026-01-01T00:00:10.000000Z"}
{"auditID":"2","stage":"ResponseStarted","verb":"watch","userAgent":"manager/v0.1 (linux/amd64)","user":{"username":"sa:operator"},"objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-01-01T00:00:10.000000Z"}
{"auditID":"2","stage":"ResponseComplete","verb":"watch","userAgent":"manager/v0.1 (linux/amd64)","user":{"username":"sa:operator"},"objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-01-01T00:00:10.000000Z"}
{"auditID":"3","stage":"ResponseComplete","verb":"get","userAgent":"manager/v0.1 (linux/amd64)","user":{"username":"sa:operator"},"objectRef":{"resource":"leases"},"requestReceivedTimestamp":"2026-01-01T00:00:11.000000Z"}
{"auditID":"4","stage":"ResponseComplete","verb":"patch","userAgent":"kubelet/v1","user":{"username":"system:node:node1"},"objectRef":{"resource":"pods","subresource":"status"},"requestReceivedTimestamp":"2026-01-01T00:00:11.000000Z"}
{"auditID":"5","stage":"ResponseComplete","verb":"get","userAgent":"manager/v0.1","user":{"username":"sa:operator"},"objectRef":{"resource":"leases"},"requestReceivedTimestamp":"2026-01-01T00:01:00.000000Z"}
{"auditID":"6","half a li`
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	manager := []Count{
		{Client: "manager", User: "sa:operator", Verb: "get", Resource: "leases", Requests: 2},
		{Client: "manager", User: "sa:operator", Verb: "watch", Resource: "pods", Requests: 1},
	}
	kubelet := []Count{{Client: "kubelet", User: "system:node:node1", Verb: "patch", Resource: "pods/status", Requests: 1}}
	for name, test := range map[string]struct {
		client string
		want   []Count
	}{
		"by program": {"manager", manager},
		"by user":    {"system:node:", kubelet},
		"all":        {"", []Count{manager[0], kubelet[0], manager[1]}},
		"nobody":     {"nobody", []Count{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Requests(strings.NewReader(log), from, from.Add(time.Minute), test.client)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
