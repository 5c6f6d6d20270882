// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

// A client library that repeats a part of a pipeline by itself leaves no element twice: the item is put in again from its
// DEL on, until that happens at one go.
func TestFillRepeatsWhatWasPerhapsDoneTwice(t *testing.T) {
	const deleted, pushed = ":0", ":4"
	for _, tt := range []struct {
		name    string
		answers []string
		want    string // in the error; empty: none
	}{
		{"at one go", []string{deleted, pushed}, ""},
		{"the library repeats", []string{deleted, hangUp, deleted, pushed, deleted, pushed}, ""},
		{"never", []string{deleted, "-ERR no", deleted, "-ERR no", deleted, "-ERR no", deleted, "-ERR no", deleted, "-ERR no"}, "ERR no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := newOne(t, tt.answers...)
			client, err := connect(t.Context(), server{addresses: []string{at.listener.Addr().String()}}, 1, &attempts{now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			err = put(t.Context(), client, []item{{key: "list", kind: listKind, elements: 4}})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if len(at.answers) != 0 {
				t.Errorf("%d answers were not asked for", len(at.answers))
			}
		})
	}
}
