// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// watchEvery is how often an instance is asked.
const watchEvery = 25 * time.Millisecond

// watchResult is how slots came to or went from instances.
type watchResult struct {
	From    int       `json:"from"`  // slots they owned at first, together
	To      int       `json:"to"`    // and at last
	Begin   time.Time `json:"begin"` // when the first slot was on its way
	End     time.Time `json:"end"`   // when the last one had changed its owner
	Seconds float64   `json:"seconds"`
}

// watch asks the instances at the addresses for their slots until ctx ends. One that does
// not answer any more after slots have changed their owner may have been removed for that.
func watch(ctx context.Context, at server) (watchResult, error) {
	var clients []*redis.Client
	for _, address := range at.addresses {
		client := redis.NewClient(&redis.Options{Addr: address, Password: at.password, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
			DialTimeout: time.Second, ReadTimeout: 5 * time.Second})
		defer client.Close()
		clients = append(clients, client)
	}
	asking := context.WithoutCancel(ctx)
	var w watchResult
	for first := true; first || ctx.Err() == nil; first = false {
		owned, moving, err := look(asking, clients)
		if err != nil && w.End.IsZero() {
			return w, err
		}
		if err != nil {
			<-ctx.Done()
			return w, nil // it went when its slots had gone
		}
		w.saw(owned, moving, first, time.Now())
		select {
		case <-ctx.Done():
		case <-time.After(watchEvery):
		}
	}
	return w, nil
}

// look counts the slots of instances, and tells whether any is on its way.
func look(ctx context.Context, clients []*redis.Client) (owned int, moving bool, err error) {
	for _, client := range clients {
		text, err := client.ClusterNodes(ctx).Result()
		if err != nil {
			return 0, false, fmt.Errorf("ask %s: %w", client.Options().Addr, err)
		}
		own, open := ownSlots(text)
		if !open && !moving {
			if open, err = jobs(ctx, client); err != nil {
				return 0, false, err
			}
		}
		owned, moving = owned+own, moving || open
	}
	return owned, moving, nil
}

// saw takes down one look.
func (w *watchResult) saw(owned int, moving, first bool, at time.Time) {
	if first {
		w.From, w.To = owned, owned
	}
	if w.Begin.IsZero() && (moving || owned != w.To) {
		w.Begin = at
	}
	if owned != w.To {
		w.To, w.End = owned, at
	}
	if !w.End.IsZero() {
		w.Seconds = w.End.Sub(w.Begin).Seconds()
	}
}

// ownSlots counts the slots of the instance that answered CLUSTER NODES, and tells whether
// any is on its way.
func ownSlots(nodes string) (owned int, moving bool) {
	for line := range strings.Lines(nodes) {
		words := strings.Fields(line)
		if len(words) < 8 || !strings.Contains(words[2], "myself") {
			continue
		}
		for _, word := range words[8:] {
			if strings.HasPrefix(word, "[") {
				moving = true
				continue
			}
			var from, to int
			if n, _ := fmt.Sscanf(word, "%d-%d", &from, &to); n < 2 {
				to = from
			}
			owned += to - from + 1
		}
	}
	return owned, moving
}

// jobs reports whether the engine itself moves slots to or from the instance. An engine that
// does not know the question does not.
func jobs(ctx context.Context, client *redis.Client) (bool, error) {
	answer, err := client.Do(ctx, "cluster", "getslotmigrations").Slice()
	if _, refused := errors.AsType[redis.Error](err); refused {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, job := range answer {
		if text := fmt.Sprint(job); !strings.Contains(text, "success") && !strings.Contains(text, "failed") &&
			!strings.Contains(text, "cancelled") {
			return true, nil
		}
	}
	return false, nil
}
