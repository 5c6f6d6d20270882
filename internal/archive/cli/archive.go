// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/archive/report"
)

func newArchive(o *options) *cobra.Command {
	var s source
	var a archive.Archiving
	var listen string
	var objective time.Duration
	command := &cobra.Command{
		Use:   "archive NAME",
		Short: "write an archive of a cluster until stopped, of which any moment can be restored",
		Long: "Follows each shard of a cluster, by replication, and puts what is written into the store every few seconds. It goes on where it\n" +
			"ended when it is started again. One process at a time writes an archive: the former one ends when another one begins.\n\n" + rightsNeeded,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			s.taking.Name = args[0]
			if objective <= 0 {
				return fmt.Errorf("--objective: %s is no time that an archive can keep", objective)
			}
			return s.with(command, o, func(t archive.Taking) error {
				a.Taking, a.Watch = t, &archive.Watch{}
				if listen == "" {
					return a.Run(command.Context())
				}
				w := watched{a.Watch, objective, t.Request}
				return serving(command.Context(), listen, w.handler(), func(ctx context.Context) error { return w.unlessSilent(ctx, a.Run) })
			})
		},
	}
	flags := command.Flags()
	s.add(flags, o, archive.DefaultReattach, "for how long a shard's stream may be lost before its data is read anew")
	flags.StringVar(&s.taking.Request, "request", "", "what the archive is asked for with; one that was asked for otherwise is left alone")
	flags.DurationVar(&a.Interval, "interval", archive.DefaultInterval, "how often what was written is put into the store")
	flags.DurationVar(&a.MarkEvery, "mark-interval", archive.DefaultMarkEvery,
		"how often writes are delayed, so that a moment is one for all shards")
	flags.DurationVar(&a.BaseEvery, "base-interval", archive.DefaultBaseEvery, "how often all data is read anew")
	flags.DurationVar(&a.Keep, "keep", archive.DefaultKeep, "for how long moments can be restored")
	flags.StringVar(&listen, "listen", "", "address to say at how far the archive is, such as :8080; none: nowhere")
	flags.DurationVar(&objective, "objective", archive.DefaultObjective,
		"how far the archive may be behind for /readyz to say that it is well")
	return command
}

// watched is an archive that anybody may ask for how far it is: times and counts, and nothing of what is in it.
type watched struct {
	watch     *archive.Watch
	objective time.Duration
	request   string
}

func (w watched) report() report.Archive {
	r := w.watch.Report(w.objective)
	r.Request = w.request
	return r
}

// longestSilence is how long no instance may answer before the process ends, to be started again: what it knows of passwords and
// certificates may be of before.
const longestSilence = 10 * time.Minute

var errSilent = fmt.Errorf("no instance has answered for %s", longestSilence)

// unlessSilent runs until no instance has answered for too long.
func (w watched) unlessSilent(ctx context.Context, run func(context.Context) error) error {
	ctx, silent := context.WithCancelCause(ctx)
	defer silent(nil)
	go w.watchSilence(ctx, func() { silent(errSilent) })
	err := run(ctx)
	if errors.Is(context.Cause(ctx), errSilent) {
		err = errors.Join(errSilent, err)
	}
	return err
}

// watchSilence calls end when no instance has answered for too long.
func (w watched) watchSilence(ctx context.Context, end func()) {
	look := time.NewTicker(longestSilence / 10)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if w.watch.Silent() > longestSilence {
				end()
			}
		}
	}
}

// handler answers three paths: /status with all that is told, as JSON; /metrics with the same for Prometheus; and /readyz, which fails
// while the archive is further behind than it may be.
func (w watched) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", telling(func() ([]byte, error) { return w.report().Encode() }))
	mux.HandleFunc("GET /metrics", func(to http.ResponseWriter, _ *http.Request) {
		to.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = to.Write([]byte(metrics(w.report()))) // who asked is gone
	})
	mux.HandleFunc("GET /readyz", func(to http.ResponseWriter, _ *http.Request) {
		r := w.report()
		if !r.Ready() {
			http.Error(to, strings.TrimSuffix(fmt.Sprintf("%.0f s behind, with %.0f s allowed: %s", r.Behind, r.Objective, r.Waits), ": "),
				http.StatusServiceUnavailable)
		}
	})
	return mux
}

// metrics is what is told, as Prometheus reads it. What is not known has no line.
func metrics(r report.Archive) string {
	var b strings.Builder
	tell := func(name, kind, help string, value float64) {
		name = "redis_archive_" + name
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s %g\n", name, help, name, kind, name, value)
	}
	if r.Behind >= 0 {
		tell("behind_seconds", "gauge", "For how long nothing that was written since is known to be in the store.", r.Behind)
	}
	tell("objective_seconds", "gauge", "How far the archive may be behind.", r.Objective)
	for _, at := range []struct {
		name, help string
		of         time.Time
	}{
		{"first_moment_timestamp_seconds", "The first moment that can be restored.", r.First},
		{"last_moment_timestamp_seconds", "The last moment that can be restored.", r.Last},
		{"last_consistent_moment_timestamp_seconds", "The last moment that is one for all shards.", r.Consistent},
	} {
		if !at.of.IsZero() {
			tell(at.name, "gauge", at.help, float64(at.of.Unix()))
		}
	}
	tell("waiting_segments", "gauge", "Segments that are not in the store yet.", float64(r.Waiting))
	tell("bases_total", "counter", "Bases that were put into the store.", float64(r.Bases))
	tell("segments_total", "counter", "Segments that were put into the store.", float64(r.Segments))
	tell("stored_bytes_total", "counter", "Bytes that were put into the store.", float64(r.Bytes))
	tell("marks_total", "counter", "Moments that are one for all shards.", float64(r.Marks))
	tell("paused_seconds_total", "counter", "For how long writes were delayed for such moments.", r.Paused)
	return b.String()
}
