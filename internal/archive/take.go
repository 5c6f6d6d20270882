// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Masterminds/semver/v3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis"
)

// Taking is a backup to be taken.
type Taking struct {
	// Name is that of the backup; Cluster says for people whose data it is.
	Name, Cluster string
	Store         *Store
	// Pool and Credentials reach the instances. The user needs Rights.
	Pool        *redis.Pool
	Credentials redis.Credentials
	// Seeds are addresses of instances (ip:port, or name:port, such as that of a Service), of which one has to answer.
	Seeds []string
	// Nodes are node IDs of the cluster. An instance that knows none of them is of another one, which has the address by now; empty: that
	// is not asked.
	Nodes []string
	// Pause is for how long writes may be delayed at most while the mark is set, by default DefaultPause. An attempt that does not come to its
	// end by then sets no mark, and is repeated.
	Pause time.Duration
	// Timeout is how long a condition may last that keeps the mark from being set, or a shard from being followed, such as slots that
	// move or a failover, by default DefaultTimeout.
	Timeout time.Duration
	// SlotsStay says that somebody else sees to it that no slots move, so that nobody is asked for the engine's own jobs that move them:
	// the user needs Rights alone. Slots that move key by key are noticed all the same.
	SlotsStay bool
	// Request is what the backup was asked for with. One that is complete and has the same is the one that was asked for; empty: none is.
	Request string
	// Report is told what is done, and what is waited for; nil: nobody. It is called by several goroutines.
	Report func(Progress)
	// Meter counts how far it is; nil: nobody does.
	Meter *Meter

	known *seeds
}

// Progress is how far a backup has come.
type Progress struct {
	// Shard is the number of the shard, from 0; -1: it is about all.
	Shard int
	// What is said in words, such as "slots move".
	What string
	// Bytes were read of the shard's base.
	Bytes int64
}

// Rights are what the user who takes backups needs; RightsValkey9 besides, from that version on.
const (
	Rights        = redis.RightsToBackUp
	RightsValkey9 = redis.RightToSeeJobs
)

// DefaultPause and DefaultTimeout are those of Taking.
const (
	DefaultPause   = 200 * time.Millisecond
	DefaultTimeout = 5 * time.Minute
)

const (
	leastPause      = 10 * time.Millisecond
	betweenAttempts = time.Second
	// atOnce is how many bases are read at a time: each costs the server a fork, and this process some 35 MiB.
	atOnce = 4
)

var errNoSeeds = errors.New("no address of an instance is given (--from)")

func (t Taking) withDefaults() Taking {
	if t.Pause <= 0 {
		t.Pause = DefaultPause
	}
	t.Pause = max(leastPause, t.Pause.Truncate(time.Millisecond))
	if t.Timeout <= 0 {
		t.Timeout = DefaultTimeout
	}
	t.known = &seeds{given: t.Seeds, within: t.Timeout}
	if t.Report == nil {
		t.Report = func(Progress) {}
	}
	return t
}

// Take takes the backup. It is complete when this returns without an error: every byte was read back from the store. What it wrote is
// deleted if it fails. A backup that is complete is not written again.
func (t Taking) Take(ctx context.Context) (*Manifest, error) {
	t = t.withDefaults()
	switch there, err := t.Store.Manifest(ctx, t.Name); {
	case err == nil && t.Request != "" && there.Request == t.Request:
		return there, t.recognise(ctx, there) // it came to its end before, and nobody heard
	case err == nil:
		return nil, fmt.Errorf("backup %s exists", t.Name)
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	if _, err := t.Store.newest(ctx, t.Name, false); !errors.Is(err, ErrNotFound) {
		return nil, errors.Join(fmt.Errorf("%s is an archive, or cannot be looked at, and no backup is written there", t.Name), err)
	}
	if len(t.Seeds) == 0 {
		return nil, errNoSeeds
	}
	var now topology
	err := t.retry(ctx, func() (err error) {
		now, err = t.look(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	m := &Manifest{Format: Format, Name: t.Name, Attempt: newAttempt(t.Request), Request: t.Request, Cluster: t.Cluster, Engine: now.engine,
		Version: now.version,
		Started: time.Now().UTC(), Compression: compressionName, Shards: make([]Shard, len(now.shards))}
	if len(t.Store.keys.Recipients) > 0 {
		m.Encryption = encryptionName
	}
	if err := t.write(ctx, m, now); err != nil {
		return t.settle(ctx, m, err)
	}
	return m, nil
}

// recognise looks at a backup that is complete as one does that has just written it.
func (t Taking) recognise(ctx context.Context, there *Manifest) error {
	if (there.Encryption != "") != (len(t.Store.keys.Recipients) > 0) {
		return fmt.Errorf("backup %s is there, with the encryption %q, which is not what is asked for", there.Name, there.Encryption)
	}
	return t.readBack(ctx, there)
}

// settle deletes what a backup that failed wrote. If the manifest is there, its answer was lost, and the backup is complete; if that
// cannot be told, nothing is deleted.
func (t Taking) settle(ctx context.Context, m *Manifest, failed error) (*Manifest, error) {
	const within = time.Minute
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	there, err := t.Store.Manifest(ctx, m.Name)
	switch {
	case err == nil && there.Attempt == m.Attempt && errors.Is(failed, ErrDamaged):
		return nil, errors.Join(failed, t.Store.Delete(ctx, m.Name))
	case err == nil && there.Attempt == m.Attempt:
		return there, nil
	case err == nil, errors.Is(err, ErrNotFound):
		return nil, errors.Join(failed, t.Store.deleteObjects(ctx, m.Name, only(m.Attempt)))
	}
	return nil, errors.Join(failed, fmt.Errorf("what was written is left: %w", err))
}

// write writes all of the backup, and describes it in the manifest.
func (t Taking) write(ctx context.Context, m *Manifest, now topology) error {
	flows := make([]*flow, len(now.shards))
	t.Meter.begin(report.StageReading, 0, make([]int64, len(flows))...)
	for i, s := range now.shards {
		flows[i] = newFlow(t, i, s)
	}
	turns := semaphore.NewWeighted(atOnce)
	group, following := errgroup.WithContext(ctx)
	for i, f := range flows {
		group.Go(func() error { return f.run(following, m, &m.Shards[i], turns) })
	}
	group.Go(func() error { return t.setMark(following, m, flows) })
	if err := group.Wait(); err != nil {
		return err
	}
	t.Report(Progress{Shard: -1, What: "reading back what was written"})
	if err := t.readBack(ctx, m); err != nil {
		return err
	}
	return t.Store.complete(ctx, m)
}

// readBack compares what lies in the store with what was written. What is encrypted is not decrypted: the key to that is not here.
func (t Taking) readBack(ctx context.Context, m *Manifest) error {
	stored := make([]int64, len(m.Shards))
	for i, s := range m.Shards {
		stored[i] = s.Base.Size + s.Stream.Size
	}
	t.Meter.begin(report.StageReadingBack, 0, stored...)
	for i, s := range m.Shards {
		for key, o := range map[string]Object{m.baseKey(i): s.Base, m.streamKey(i): s.Stream} {
			if err := t.Store.readBack(ctx, key, o, t.Meter.of(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// retry repeats what fails for a reason that may pass.
func (t Taking) retry(ctx context.Context, try func() error) error {
	until := time.Now().Add(t.Timeout)
	for {
		err := try()
		var passing *obstacle
		if err == nil || !errors.As(err, &passing) || time.Now().After(until) {
			return err
		}
		t.Report(Progress{Shard: passing.shard, What: passing.why})
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(betweenAttempts):
		}
	}
}

// obstacle is a reason to wait.
type obstacle struct {
	shard int
	why   string
}

func (o *obstacle) Error() string { return o.why }

func blocked(shard int, format string, arguments ...any) error {
	return &obstacle{shard, fmt.Sprintf(format, arguments...)}
}

// canPause reports whether writes of an engine may be delayed for a mark. In versions between, a blocking command that a client sends
// during a pause never times out, or is not known to. Seen on Valkey 8.1.1, not on Redis 7.0.15 and 8.0.6 and Valkey 9.1.2; the rest was
// read (https://github.com/valkey-io/valkey/pull/2109, https://github.com/redis/redis/pull/14165).
func canPause(engine redis.Engine, version string) bool {
	v, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	first, mended := "7.2.0", "8.0.4"
	if engine == redis.EngineValkey {
		mended = "8.1.3"
	}
	return v.LessThan(semver.MustParse(first)) || !v.LessThan(semver.MustParse(mended))
}
