// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

type verifyResult struct {
	Keys          int      `json:"keys"`
	Wrong         int      `json:"wrong"`
	Samples       []string `json:"samples,omitempty"`
	KeysOnMasters int64    `json:"keysOnMasters"` // sum of DBSIZE: a key that is on two masters counts twice
	Seconds       float64  `json:"seconds"`
}

func (r verifyResult) failure() error {
	if r.Wrong > 0 {
		return fmt.Errorf("%d of %d keys are missing or differ: %s", r.Wrong, r.Keys, strings.Join(r.Samples, "; "))
	}
	return nil
}

// verify checks every key of a data set.
func verify(ctx context.Context, at server, data dataset) (verifyResult, error) {
	if err := data.check(); err != nil {
		return verifyResult{}, err
	}
	client, err := connect(ctx, at, fillers, nil)
	if err != nil {
		return verifyResult{}, err
	}
	defer client.Close()
	result := verifyResult{Keys: data.total()}
	var mu sync.Mutex
	err = inBatches(ctx, data, func(ctx context.Context, batch []item) error {
		wrong, err := check(ctx, client, batch)
		mu.Lock()
		defer mu.Unlock()
		result.Wrong += len(wrong)
		result.Samples = append(result.Samples, wrong[:min(len(wrong), samplesKept-min(samplesKept, len(result.Samples)))]...)
		return err
	})
	if err != nil {
		return result, err
	}
	var total atomic.Int64
	err = client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		n, err := node.DBSize(ctx).Result()
		total.Add(n)
		return err
	})
	result.KeysOnMasters = total.Load()
	return result, err
}

// check says what is wrong with items, a sentence each.
func check(ctx context.Context, client *redis.ClusterClient, batch []item) ([]string, error) {
	pipe := client.Pipeline()
	judges := make([]func() error, len(batch))
	for i, it := range batch {
		judges[i] = it.ask(ctx, pipe)
	}
	if _, err := pipe.Exec(ctx); err != nil && !answered(err) {
		return nil, fmt.Errorf("read %s and following: %w", batch[0].key, err)
	}
	var wrong []string
	for i, judge := range judges {
		if err := judge(); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s %s: %v", kindNames[batch[i].kind], batch[i].key, err))
		}
	}
	return wrong, nil
}

// answered tells an answer about a key (there is none, it is of another type) from a
// failure to ask.
func answered(err error) bool {
	return errors.Is(err, redis.Nil) || strings.HasPrefix(err.Error(), "WRONGTYPE") || strings.HasPrefix(err.Error(), "NOGROUP")
}

// ask queues the reads of an item and returns what judges the answers.
func (it item) ask(ctx context.Context, pipe redis.Pipeliner) func() error {
	expires := pipe.PExpireTime(ctx, it.key)
	content := it.askContent(ctx, pipe)
	return func() error {
		if err := content(); err != nil {
			return err
		}
		return judgeExpiry(expires.Val().Milliseconds(), it.expires, it.slack)
	}
}

// judgeExpiry compares times in milliseconds since 1970; slack is how far they may be apart.
func judgeExpiry(got, want, slack int64) error {
	if want == 0 && got > 0 {
		return fmt.Errorf("it expires at %d, want never", got)
	}
	if want > 0 && (got < want-slack || got > want+slack) {
		return fmt.Errorf("it expires at %d, want %d", got, want)
	}
	return nil
}

var errContent = errors.New("its content differs")

func (it item) askContent(ctx context.Context, pipe redis.Pipeliner) func() error {
	switch it.kind {
	case stringKind:
		got := pipe.Get(ctx, it.key)
		return func() error { return same(got.Val() == text(it.seed, it.bytes), got.Err()) }
	case hashKind:
		got := pipe.HGetAll(ctx, it.key)
		return func() error {
			equal := len(got.Val()) == it.elements
			for i := range it.elements {
				equal = equal && got.Val()[strconv.Itoa(i)] == it.element(i)
			}
			return same(equal, got.Err())
		}
	case listKind:
		got := pipe.LRange(ctx, it.key, 0, -1)
		return func() error { return same(slices.Equal(got.Val(), it.all()), got.Err()) }
	case setKind:
		got := pipe.SMembers(ctx, it.key)
		return func() error {
			want := it.all()
			slices.Sort(want)
			members := got.Val()
			slices.Sort(members)
			return same(slices.Equal(members, want), got.Err())
		}
	case sortedSetKind:
		got := pipe.ZRangeWithScores(ctx, it.key, 0, -1)
		return func() error {
			equal := len(got.Val()) == it.elements
			for i, z := range got.Val() {
				equal = equal && z.Score == float64(i)/4 && z.Member == it.element(i)
			}
			return same(equal, got.Err())
		}
	case streamKind:
		return it.askStream(ctx, pipe)
	case kinds:
	}
	return func() error { return fmt.Errorf("no such kind %d", it.kind) }
}

func (it item) askStream(ctx context.Context, pipe redis.Pipeliner) func() error {
	got := pipe.XRange(ctx, it.key, "-", "+")
	pending := pipe.XPending(ctx, it.key, streamGroup)
	return func() error {
		equal := len(got.Val()) == it.elements
		for i, message := range got.Val() {
			equal = equal && message.ID == streamID(i) && message.Values["field"] == it.element(i)
		}
		if err := same(equal, got.Err()); err != nil {
			return err
		}
		if err := pending.Err(); err != nil {
			return fmt.Errorf("its group: %w", err)
		}
		if pending.Val().Count != 1 || pending.Val().Consumers[streamConsumer] != 1 {
			return fmt.Errorf("its group's pending entries are %+v, want one of the consumer", pending.Val())
		}
		return nil
	}
}

// all lists an item's elements in order.
func (it item) all() []string {
	list := make([]string, it.elements)
	for i := range list {
		list[i] = it.element(i)
	}
	return list
}

func same(equal bool, err error) error {
	if errors.Is(err, redis.Nil) {
		return errors.New("it is missing")
	}
	if err != nil {
		return err
	}
	if !equal {
		return errContent
	}
	return nil
}
