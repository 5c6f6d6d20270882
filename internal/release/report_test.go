// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"
)

// The API server refuses an Event whose note is longer than 1 KiB, whatever it is about.
func TestWhatIsToldFitsIntoAnEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	r := &Reconciler{events: recorder}
	r.tell(parse(t, "{apiVersion: v1, kind: Web, metadata: {name: web}}"), effect{step: Uninstall{}, hooksSkipped: strings.Repeat("ä", 5000)},
		nil)
	_, note, found := strings.Cut(<-recorder.Events, "HooksSkipped ")
	if !found || len(note) > 1024 || !utf8.ValidString(note) {
		t.Errorf("%t: a note of %d bytes, valid %t: %.80s", found, len(note), utf8.ValidString(note), note)
	}
}
