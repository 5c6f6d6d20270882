// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"os"
	"testing"
)

// A gateway says which map it serves: the one of which all ports are open, and none when it ends.
func TestWhichMapIsServed(t *testing.T) {
	i := startInstance(t, nil)
	first, second := free(t), free(t)
	g := startGateway(t, nil, i.on(first))
	says := func() string {
		answer := httptest.NewRecorder()
		g.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/status", nil))
		return fmt.Sprint(answer.Code, " ", answer.Body)
	}
	serves := func() string {
		text, err := os.ReadFile(g.path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("200 {\"map\":\"%x\"}\n", sha256.Sum256(text))
	}
	eventually(t, func() bool { return says() == serves() })
	writeMap(t, g.path, i.on(second))
	eventually(t, func() bool { return says() == serves() })
	g.stop()
	<-g.ended
	if got := says(); got != "503 not ready\n" {
		t.Errorf("when it has ended, it says %q", got)
	}
}
