// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"
)

// A selector is written in one way, so that one that says the same has the same Lease; the refusal says which way.
func TestSelectorsAreWrittenInOneWay(t *testing.T) {
	for given, want := range map[string]string{ // what to write instead; empty: it is right
		"":                          "",
		"tier=gold":                 "",
		"tier!=gold":                "",
		"!tier":                     "",
		"tier":                      "",
		"a=b,tier in (gold,silver)": "",
		"tier notin (gold,silver)":  "",
		"tier==gold":                `"tier=gold"`,
		"tier in (gold)":            `"tier=gold"`,
		"tier notin (gold)":         `"tier!=gold"`,
		"tier = gold":               `"tier=gold"`,
		"tier in (silver, gold)":    `"tier in (gold,silver)"`,
		"b=c,a=b":                   `"a=b,b=c"`,
		"a=b,a=b":                   `"a=b"`,
		"tier=":                     "",
		"tier in gold":              "is not a label selector",
		"tier=a b":                  "is not a label selector",
	} {
		o := DefaultOptions()
		o.Selector = given
		err := o.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %s", given, err, want)
		}
		if want != "" && strings.HasPrefix(want, `"`) {
			if o.Selector = strings.Trim(want, `"`); o.Validate() != nil {
				t.Errorf("%q: what is to be written instead is refused: %v", given, o.Validate())
			}
		}
	}
}

// Each selector has a Lease of its own, and none the one that is there without; the chart gives the right to the same names.
func TestLeaseNames(t *testing.T) {
	names := map[string]string{"": "middleware-operator", "tier=gold": "middleware-operator-66869e39", "tier!=gold": "middleware-operator-"}
	seen := map[string]bool{}
	for selector, want := range names {
		o := DefaultOptions()
		o.Selector = selector
		name := o.leaseName()
		if !strings.HasPrefix(name, want) || seen[name] {
			t.Errorf("%q has the lease %s, want %s", selector, name, want)
		}
		seen[name] = true
	}
	o := DefaultOptions()
	o.LeaderElection.ID, o.Selector = strings.Repeat("a", 250), "tier=gold"
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "give a shorter one") {
		t.Errorf("a name that is too long: %v", err)
	}
}
