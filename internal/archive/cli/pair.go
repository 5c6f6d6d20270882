// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// pair is a certificate with its key, which are read when one of the files is another one, and not for everybody who connects.
type pair struct {
	cert, key string

	mu    sync.Mutex
	since [2]time.Time
	last  *tls.Certificate
}

// get is the certificate as the files say now; if they say none, as they did last.
func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var since [2]time.Time
	for i, name := range []string{p.cert, p.key} {
		if is, err := os.Stat(name); err == nil {
			since[i] = is.ModTime()
		}
	}
	if p.last != nil && since == p.since {
		return p.last, nil
	}
	is, err := tls.LoadX509KeyPair(p.cert, p.key)
	switch {
	case err == nil:
		p.last, p.since = &is, since
	case p.last == nil:
		return nil, err
	}
	return p.last, nil
}
