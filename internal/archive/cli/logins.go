// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"sync"

	"middleware.hc.cn/operator/internal/redis"
)

// mostHosts is how many hosts are remembered.
const mostHosts = 2048

// logins are how to log in at the hosts of a source, as long as that is followed: its password and its certificates change.
type logins struct {
	login login

	mu      sync.Mutex
	last    redis.Credentials
	trusted []byte
	// named are those of hosts: connections are shared by who has the same.
	named map[string]*redis.TLS
}

// at is how to log in at a host, as the files say now; if they say nothing, as they did last.
func (l *logins) at(host string) redis.Credentials {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.read() // the server judges what was known before
	own := l.last
	if own.TLS == nil || l.login.serverName != "" {
		return own
	}
	named, known := l.named[host]
	if !known {
		if len(l.named) == mostHosts {
			clear(l.named)
		}
		named = own.TLS.Named(host)
		l.named[host] = named
	}
	own.TLS = named
	return own
}

func (l *logins) read() error {
	c, trusted, err := l.login.read()
	if err != nil {
		return err
	}
	if l.named != nil && bytes.Equal(trusted, l.trusted) {
		c.TLS = l.last.TLS
	} else {
		l.trusted, l.named = trusted, map[string]*redis.TLS{}
	}
	l.last = c
	return nil
}
