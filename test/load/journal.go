// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// journalParts is how many parts the slots are divided into; each writer has a key in every one.
const journalParts = 3

// journalResult is what was written when, so that data which is said to be of a moment can be compared with that moment.
type journalResult struct {
	Writers []journalWriter `json:"writers"`
}

// journalWriter has written 1, 2, 3 and so on to all its keys, one key after the other.
type journalWriter struct {
	Keys []string `json:"keys"`
	// Sent and Acknowledged are, for each key, when each number was, in milliseconds since 1970: that of 1 comes first.
	Sent         [][]int64 `json:"sent"`
	Acknowledged [][]int64 `json:"acknowledged"`
}

func journalCommand(server func() server, out io.Writer) *cobra.Command {
	var writers, rate int
	cmd := &cobra.Command{
		Use: "journal", Short: "Write numbers to keys all over the slots, and tell when each was acknowledged", Args: cobra.NoArgs,
		Long: `Each writer has a key in every third of the slots, and writes 1 to all of them, one after the other, then 2, and so on until
SIGTERM or SIGINT. Prints when each number was sent and acknowledged: data of a moment has the last that was acknowledged before it, and
none that was sent later; and no key may have a number that is higher than that of the key before it. Fails with the first write that
does.`,
		Example: "  load journal --addr cache:6379 --writers 4 --rate 100",
		RunE: func(cmd *cobra.Command, _ []string) error {
			result, err := journal(cmd.Context(), server(), writers, rate)
			if err != nil {
				return err
			}
			return printJSON(out, result)
		},
	}
	cmd.Flags().IntVar(&writers, "writers", 4, "number of writers")
	cmd.Flags().IntVar(&rate, "rate", 100, "writes a second, of all writers")
	return cmd
}

func journal(ctx context.Context, at server, writers, rate int) (journalResult, error) {
	if writers < 1 || rate < 1 {
		return journalResult{}, fmt.Errorf("--writers and --rate must be at least 1")
	}
	client, err := connect(ctx, at, writers, nil)
	if err != nil {
		return journalResult{}, err
	}
	defer client.Close()
	result := journalResult{Writers: make([]journalWriter, writers)}
	group, ctx := errgroup.WithContext(ctx)
	for i := range result.Writers {
		w := newJournalWriter(i)
		group.Go(func() (err error) {
			going, stop := context.WithCancel(ctx)
			defer stop()
			pace(going, rate, writers*journalParts, func() {
				if err != nil {
					return
				}
				if err = w.round(context.WithoutCancel(ctx), client); err != nil {
					stop()
				}
			})
			result.Writers[i] = w
			return err
		})
	}
	return result, group.Wait()
}

func newJournalWriter(number int) journalWriter {
	w := journalWriter{Sent: make([][]int64, journalParts), Acknowledged: make([][]int64, journalParts)}
	for part := range journalParts {
		w.Keys = append(w.Keys, journalKey(number, part))
	}
	return w
}

// journalKey is a writer's key in a part of the slots.
func journalKey(writer, part int) string {
	for n := 0; ; n++ {
		key := "journal:" + strconv.Itoa(writer) + ":{" + strconv.Itoa(n) + "}"
		if int(slots.KeySlot(key))*journalParts/slots.Count == part {
			return key
		}
	}
}

// round writes the next number to all keys.
func (w *journalWriter) round(ctx context.Context, client *redis.ClusterClient) error {
	number := len(w.Sent[0]) + 1
	for part, key := range w.Keys {
		w.Sent[part] = append(w.Sent[part], time.Now().UnixMilli())
		if err := client.Set(ctx, key, number, 0).Err(); err != nil {
			return fmt.Errorf("write %d to %s: %w", number, key, err)
		}
		w.Acknowledged[part] = append(w.Acknowledged[part], time.Now().UnixMilli())
	}
	return nil
}
