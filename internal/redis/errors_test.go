// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// reply is an error that the library takes for an answer.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var _ redis.Error = reply("")

// What a server says becomes one short line, without a secret or the beginning of one, however the server cuts it off.
func TestErrorsAreBrief(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	for said, want := range map[string]string{
		"ERR no": "ERR no",
		"ERR unknown command, with args beginning with: " +
			"'default' 'correct-horse-ba": "ERR unknown command, with args beginning with: 'default' '[redacted]",
		"ERR " + secret + secret:                                         "ERR [redacted][redacted]",
		"ERR it is corr":                                                 "ERR it is corr",
		"ERR no\x1b[31m\r\nlevel=error msg=\"forged\"":                   `ERR no?[31m level=error msg="forged"`,
		"ERR " + strings.Repeat("a", longestText-4-len(secret)) + secret: "ERR " + strings.Repeat("a", longestText-4-len(secret)) + "[redacted]",
		"ERR " + strings.Repeat("a", 300):                                "ERR " + strings.Repeat("a", longestText-4-len("…")) + "…",
		"ERR " + strings.Repeat("a", longestText-10) + secret:            "ERR " + strings.Repeat("a", longestText-10) + "[re…",
	} {
		err := newError(t.Context(), "10.0.0.7:6379", "PING", reply(said), secret)
		if got := err.Err.Error(); got != want || !errors.Is(err, ErrRefused) {
			t.Errorf("%q becomes %q, want %q", said, got, want)
		}
	}
	for _, secret := range []string{"[redacted]", "redacted", "d"} {
		if got := scrub("it is "+secret+", is it", []string{secret}); !strings.Contains(got, redacted) {
			t.Errorf("%q is not blanked out: %q", secret, got)
		}
	}
	names := errors.New("x509: certificate is valid for " + strings.Repeat("a.example, ", 1000))
	if err := newError(t.Context(), "10.0.0.7:6379", "PING", fmt.Errorf("TLS: %w", names)); len(err.Error()) > 300 || !errors.Is(err, names) {
		t.Errorf("the certificate's error has %d bytes; its cause is lost: %t", len(err.Error()), !errors.Is(err, names))
	}
}
