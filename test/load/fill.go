// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

const (
	fillers       = 4
	pipelineItems = 256
	pipelineBytes = 4 << 20
)

type fillResult struct {
	Keys    int     `json:"keys"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// fillAttempts is how often a batch is put in before its error is fill's.
const fillAttempts = 5

// fill puts a data set in. Keys of the set that exist are replaced.
func fill(ctx context.Context, to server, data dataset) (fillResult, error) {
	if err := data.check(); err != nil {
		return fillResult{}, err
	}
	client, err := connect(ctx, to, fillers, &attempts{now: time.Now})
	if err != nil {
		return fillResult{}, err
	}
	defer client.Close()
	result := fillResult{Keys: data.total()}
	for i := range data.total() {
		result.Bytes += int64(data.item(i).size())
	}
	return result, inBatches(ctx, data, func(ctx context.Context, batch []item) error {
		return put(ctx, client, batch)
	})
}

// put writes items. The client library sends a pipeline again whose answers did not come, while a slow server may still be
// at the first one: a list would get elements twice, and an entry of a stream is refused. So what was not put in at one go is
// put in again, from its DEL on.
func put(ctx context.Context, client *redis.ClusterClient, batch []item) error {
	for attempt := 1; ; attempt++ {
		marked, tried := mark(ctx)
		pipe := client.Pipeline()
		for _, it := range batch {
			it.put(marked, pipe)
		}
		_, err := pipe.Exec(marked)
		switch {
		case err == nil && !tried.perhapsTwice():
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case attempt == fillAttempts && err == nil:
			return fmt.Errorf("fill %s and following: not put in at one go in %d attempts", batch[0].key, attempt)
		case attempt == fillAttempts:
			return fmt.Errorf("fill %s and following: %w", batch[0].key, err)
		}
	}
}

// inBatches hands all items of a data set to several workers, in batches for a pipeline.
func inBatches(ctx context.Context, data dataset, handle func(context.Context, []item) error) error {
	group, work := errgroup.WithContext(ctx)
	group.SetLimit(fillers)
	var batch []item
	bytes := 0
	flush := func() {
		full := batch
		group.Go(func() error { return handle(work, full) })
		batch, bytes = nil, 0
	}
	for i := 0; i < data.total() && work.Err() == nil; i++ {
		it := data.item(i)
		batch, bytes = append(batch, it), bytes+it.size()
		if len(batch) == pipelineItems || bytes > pipelineBytes {
			flush()
		}
	}
	if len(batch) > 0 {
		flush()
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// size in bytes of what an item holds.
func (it item) size() int {
	if it.kind == stringKind {
		return it.bytes
	}
	return it.elements * elementBytes
}

const (
	streamGroup    = "group"
	streamConsumer = "consumer"
)

// elementsPerCommand bounds a command's arguments.
const elementsPerCommand = 1000

// put writes an item.
func (it item) put(ctx context.Context, pipe redis.Pipeliner) {
	switch it.kind {
	case stringKind:
		pipe.Set(ctx, it.key, text(it.seed, it.bytes), 0)
	case hashKind, listKind, setKind, sortedSetKind:
		pipe.Del(ctx, it.key)
		for from := 0; from < it.elements; from += elementsPerCommand {
			it.putElements(ctx, pipe, from, min(it.elements, from+elementsPerCommand))
		}
	case streamKind:
		pipe.Del(ctx, it.key)
		for i := range it.elements {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: it.key, ID: streamID(i), Values: []any{"field", it.element(i)}})
		}
		create := pipe.XGroupCreate(ctx, it.key, streamGroup, "0")
		create.SetFirstKeyPos(2)
		// One entry is delivered and never acknowledged: it must stay pending.
		pipe.XReadGroup(ctx, &redis.XReadGroupArgs{Group: streamGroup, Consumer: streamConsumer, Streams: []string{it.key, ">"}, Count: 1,
			Block: -1})
	case kinds:
	}
	if it.expires > 0 {
		pipe.PExpireAt(ctx, it.key, time.UnixMilli(it.expires))
	}
}

func (it item) putElements(ctx context.Context, pipe redis.Pipeliner, from, to int) {
	list := make([]any, 0, 2*(to-from))
	var scored []redis.Z
	for i := from; i < to; i++ {
		switch it.kind {
		case hashKind:
			list = append(list, strconv.Itoa(i), it.element(i))
		case sortedSetKind:
			scored = append(scored, redis.Z{Score: float64(i) / 4, Member: it.element(i)})
		case stringKind, listKind, setKind, streamKind, kinds:
			list = append(list, it.element(i))
		}
	}
	switch it.kind {
	case hashKind:
		pipe.HSet(ctx, it.key, list...)
	case listKind:
		pipe.RPush(ctx, it.key, list...)
	case setKind:
		pipe.SAdd(ctx, it.key, list...)
	case sortedSetKind:
		pipe.ZAdd(ctx, it.key, scored...)
	case stringKind, streamKind, kinds:
	}
}

func streamID(i int) string { return fmt.Sprintf("%d-1", i+1) }
