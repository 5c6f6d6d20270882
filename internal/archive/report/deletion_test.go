// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

// What became of a deletion is read again, and fits into a termination message; anything else is none.
func TestDeletions(t *testing.T) {
	for _, d := range []Deletion{{Deleted: true}, {Error: "access denied"}, {Another: true, Error: "another's"},
		{Error: strings.Repeat("<\x00\"&é", 3000)}} {
		text, err := d.Encode()
		got, problem := ParseDeletion(string(text))
		if err != nil || problem != nil || len(text) > Most || got.Deleted != d.Deleted || got.Another != d.Another ||
			(got.Error == "") != (d.Error == "") {
			t.Errorf("%+v: heard %+v in %d bytes (%v, %v)", d, got, len(text), err, problem)
		}
	}
	whole, err := complete(1).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{}", "null", "x", string(whole), `{"another":true}`, `{"deleted":true,"error":"no"}`,
		`{"deleted":true,"another":true}`, strings.Repeat(" ", Most) + `{"deleted":true}`} {
		if d, err := ParseDeletion(text); err == nil {
			t.Errorf("%.60q is taken for %+v", text, d)
		}
	}
	deleted, err := Deletion{Deleted: true}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Parse(string(deleted)); err == nil {
		t.Errorf("a deletion is taken for the backup %+v", r)
	}
}
