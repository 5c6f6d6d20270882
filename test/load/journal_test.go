// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// A writer has a key in each third of the slots, and writes each number to all of them before the next; it fails with the first failure.
func TestJournal(t *testing.T) {
	at := func(one *one) server { return server{addresses: []string{one.listener.Addr().String()}} }
	ok := slices.Repeat([]string{"+OK"}, 2*journalParts)
	ctx, stop := context.WithCancel(t.Context())
	going := newOne(t)
	defer stop()
	go func() {
		for _, answer := range ok {
			going.answers <- answer
		}
		stop()
		for range journalParts { // of a number that is under way already
			select {
			case going.answers <- "+OK":
			case <-t.Context().Done():
			}
		}
	}()
	got, err := journal(ctx, at(going), 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	w := got.Writers[0]
	for part := range journalParts {
		n := len(w.Acknowledged[part])
		if n < 2 || n > 3 || n != len(w.Acknowledged[0]) || len(w.Sent[part]) != n || w.Sent[part][0] > w.Acknowledged[part][0] {
			t.Errorf("of %s: %v sent, %v acknowledged", w.Keys[part], w.Sent[part], w.Acknowledged[part])
		}
		if part > 0 && w.Acknowledged[part-1][0] > w.Sent[part][0] {
			t.Errorf("%s was written before %s", w.Keys[part], w.Keys[part-1])
		}
	}
	failing := at(newOne(t, append(ok, "-ERR no")...))
	if _, err = journal(t.Context(), failing, 1, 1000); err == nil || !strings.Contains(err.Error(), "write 3 to "+w.Keys[0]) {
		t.Errorf("what fails ends with %v", err)
	}
	if _, err = journal(t.Context(), server{}, 0, 1); err == nil {
		t.Error("no writers are accepted")
	}
}
