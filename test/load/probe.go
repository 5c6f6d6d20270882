// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis/slots"
)

const (
	probeEvery    = 20 * time.Millisecond
	discoverEvery = 200 * time.Millisecond
	probeTimeout  = 300 * time.Millisecond
	// An address that nobody answers at for so long is not asked any more, unless the cluster names it again.
	probeGivesUp = 10 * time.Second
)

// prober writes to every instance that the cluster names, at each of them one key of each sixteenth of the slots. Unlike an ordinary
// client it does not depend on knowing who owns what, so it tells when a write could be acknowledged at all.
type prober struct {
	server server
	keys   [slotRanges]string
	gaps   gaps

	mu    sync.Mutex
	known map[string]bool
	all   sync.WaitGroup
}

// probeResult is what a probe saw.
type probeResult struct {
	GapsMS  []float64 `json:"gapsMS"` // by sixteenth of the slots
	Outages []outage  `json:"outages"`
}

// probe runs until ctx ends.
func probe(ctx context.Context, at server) (probeResult, error) {
	p := &prober{server: at, known: map[string]bool{}}
	for i, found := 0, 0; found < slotRanges; i++ {
		key := fmt.Sprintf("probe:%d", i)
		if s := int(slots.KeySlot(key)) * slotRanges / slots.Count; p.keys[s] == "" {
			p.keys[s], found = key, found+1
		}
	}
	for _, address := range at.addresses {
		p.start(ctx, address)
	}
	p.all.Wait()
	return probeResult{GapsMS: p.gaps.milliseconds(), Outages: p.gaps.outages}, nil
}

// start probes an address that is not probed yet.
func (p *prober) start(ctx context.Context, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[address] {
		return
	}
	p.known[address] = true
	p.all.Go(func() {
		p.instance(ctx, address)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.known, address)
	})
}

// instance probes an address until ctx ends or nobody answers there.
func (p *prober) instance(ctx context.Context, address string) {
	client := redis.NewClient(&redis.Options{Addr: address, Password: p.server.password, DisableIdentity: true, Protocol: 2, PoolSize: 1,
		MaxRetries: -1, DialerRetries: 1, DialTimeout: probeTimeout, ReadTimeout: probeTimeout, WriteTimeout: probeTimeout})
	defer client.Close()
	every := time.NewTicker(probeEvery)
	defer every.Stop()
	answered, discovered := time.Now(), time.Time{}
	for ctx.Err() == nil && time.Since(answered) < probeGivesUp {
		if p.write(ctx, client) {
			answered = time.Now()
		}
		if time.Since(discovered) > discoverEvery {
			discovered = time.Now()
			p.discover(ctx, client)
		}
		select {
		case <-ctx.Done():
		case <-every.C:
		}
	}
}

// write writes all keys and takes down what was acknowledged. It reports whether the instance answered.
func (p *prober) write(ctx context.Context, client *redis.Client) bool {
	pipe := client.Pipeline()
	for _, key := range p.keys {
		pipe.Set(ctx, key, 1, 0)
	}
	answers, _ := pipe.Exec(ctx) // each answer is looked at
	now, answered := time.Now(), false
	for i, answer := range answers {
		_, refused := errors.AsType[redis.Error](answer.Err())
		answered = answered || answer.Err() == nil || refused
		if answer.Err() == nil {
			p.gaps.acknowledged(i*slots.Count/slotRanges, now)
		}
	}
	return answered
}

// discover probes whatever addresses an instance names.
func (p *prober) discover(ctx context.Context, client *redis.Client) {
	text, err := client.ClusterNodes(ctx).Result()
	if err != nil {
		return
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 || strings.Contains(words[2], "noaddr") || strings.Contains(words[2], "handshake") {
			continue
		}
		address, _, _ := strings.Cut(words[1], "@")
		p.start(ctx, address)
	}
}
