// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
)

// slowStore is how many bytes a second a store takes and gives where something is to happen in the middle.
const slowStore = 8 << 20

// telling is a process that says how far it is, as the operator asks it.
type telling struct {
	*exec.Cmd
	t       testing.TB
	address string
	problem bytes.Buffer
	ended   chan error
}

func (c command) telling(t testing.TB, limit int64, args ...string) *telling {
	t.Helper()
	p := &telling{t: t, address: fmt.Sprintf("127.0.0.1:%d", freePort(t)), ended: make(chan error, 1)}
	p.Cmd = c.process(t.Context(), t, append(args, "--listen", p.address, "--max-bytes-per-second", strconv.FormatInt(limit, 10))...)
	p.Stderr = &p.problem
	must(t, p.Start())
	go func() { p.ended <- p.Wait() }()
	return p
}

// until waits until the process is in a stage of which something is done, or has ended.
func (p *telling) until(stage report.Stage) (said report.Progress) {
	p.t.Helper()
	eventually(p.t, func() error {
		select {
		case err := <-p.ended:
			p.ended <- err
			return nil
		default:
		}
		text, err := backupjob.Asker(report.Most)(p.t.Context(), p.address)
		if err != nil {
			return err
		}
		if said, err = report.ParseProgress(text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		return want(said.Stage == stage && (said.Bytes > 0 || stage == report.StageMarking), "it is at %+v", said)
	})
	return said
}

// kill ends the process as a lost node does.
func (p *telling) kill() {
	p.t.Helper()
	_ = p.Process.Kill()                // it may have ended
	p.t.Logf("it ended: %v", <-p.ended) // which is what counts
}

// TestBackupThatIsKilled: wherever the process ends that takes a backup, there is a whole one or none; the next one takes it, or finds that
// it is there; and nothing is left when it is deleted. While it lasts, it says how far it is.
func TestBackupThatIsKilled(t *testing.T) {
	t.Parallel()
	m, c := startMinIO(t), startCluster(t, engines(t)[0], 2, 2, 0)
	fillLarge(c, "base", severalParts/2)
	c.taking("", nil) // the user
	program, store := m.command(m.root()), m.store(m.root(), archive.Keys{})
	take := []string{"take", "backup", "--request", "asked", "--from", c.servers[0].addr(), "--user", "backup", "--password-file",
		c.backupPassword(), "--pause", timeout.String()}
	for _, stage := range []report.Stage{report.StageReading, report.StageMarking, report.StageReadingBack} {
		p := program.telling(t, slowStore, take...)
		said := p.until(stage)
		p.kill()
		if stage != report.StageMarking && (said.Request != "asked" || len(said.Shards) != 2 || said.Of < said.Bytes) {
			t.Errorf("%s: it says %+v", stage, said)
		}
		if manifest, err := store.Manifest(t.Context(), "backup"); err == nil {
			must(t, store.Verify(t.Context(), manifest))
		} else if !errors.Is(err, archive.ErrNotFound) {
			t.Error(err)
		}
		_, err := program.run(t, take...)
		must(t, err)
		_, err = program.run(t, take...) // nobody heard of it
		must(t, err)
		manifest, err := store.Manifest(t.Context(), "backup")
		must(t, err)
		must(t, store.Verify(t.Context(), manifest))
		if stored, _ := manifest.Bytes(); stage == report.StageReadingBack && said.Of != stored {
			t.Errorf("%d bytes were to be read back, and %d are stored", said.Of, stored)
		}
		must(t, store.DeleteRequested(t.Context(), "backup", "asked"))
		if left := m.objects(); len(left) > 0 {
			t.Errorf("%s: %q are left", stage, left)
		}
	}
}

// TestRestoreThatIsKilled: a restore that ended in the middle is finished by the next one, and an instance starts with all of the data.
func TestRestoreThatIsKilled(t *testing.T) {
	t.Parallel()
	e := engines(t)[0]
	m, c := startMinIO(t), startCluster(t, e, 1, 1, 0)
	fillLarge(c, "base", severalParts/2)
	program, store := m.command(m.root()), m.store(m.root(), archive.Keys{})
	manifest, err := c.taking("backup", store).Take(t.Context())
	must(t, err)
	_, plain := manifest.Bytes()
	again := startRestored(t, e, manifest, func(_ int, dir string) {
		restore := []string{"restore", "backup", "--request", "asked", "--directory", dir}
		for range 2 {
			p := program.telling(t, slowStore, restore...)
			if said := p.until(report.StageRestoring); said.Of != plain || said.Bytes > plain || len(said.Shards) != 1 {
				t.Errorf("of %d bytes it says %+v", plain, said)
			}
			p.kill()
		}
		for range 2 { // the second time nobody has heard of the first
			_, err := program.run(t, restore...)
			must(t, err)
		}
	})
	if keys := again.view(0).Keys; keys != c.view(0).Keys {
		t.Errorf("%d keys were restored", keys)
	}
}

// TestArchiveThatIsKilled: wherever the process ends that writes an archive, the next one goes on, and what was acknowledged before a
// moment is there.
func TestArchiveThatIsKilled(t *testing.T) {
	t.Parallel()
	e := engines(t)[0]
	m, c := startMinIO(t), startCluster(t, e, 3, 3, 3)
	ch := startChain(c)
	c.taking("", nil) // the user
	program := m.command(m.root())
	a := &archived{c: c, store: m.store(m.root(), archive.Keys{})}
	for i := range 4 {
		process := program.process(t.Context(), t, "archive", "archive", "--request", "asked", "--from", c.servers[0].addr(), "--user", "backup",
			"--password-file", c.backupPassword(), "--pause", timeout.String(), "--interval", "100ms", "--mark-interval", "200ms")
		must(t, process.Start())
		a.after(time.Now())
		time.Sleep(time.Duration(i) * 70 * time.Millisecond) // somewhere else each time
		must(t, process.Process.Kill())
		_ = process.Wait() // it was killed
	}
	before := ch.acknowledged()
	last := startArchive(archive.Archiving{Taking: withRequest(c.taking("archive", a.store)), Interval: 100 * time.Millisecond,
		MarkEvery: 200 * time.Millisecond}, c)
	whole := last.after(time.Now())
	ch.end()
	must(t, last.end())
	must(t, a.store.Verify(t.Context(), whole))
	ch.wantWhole(t, restored(t, e, a.store, whole).client(), before)
}

func withRequest(t archive.Taking) archive.Taking {
	t.Request = "asked"
	return t
}

// TestBackupWhoseSourceDies: when the instance dies that sends its data, the backup fails and leaves nothing; the next one takes another.
func TestBackupWhoseSourceDies(t *testing.T) {
	t.Parallel()
	c := startCluster(t, engines(t)[0], 1, 1, 1)
	m := startMinIO(t)
	fillLarge(c, "base", severalParts/2)
	store := m.store(m.root(), archive.Keys{})
	store.Limit(slowStore)
	eventually(t, func() error { return want(c.view(1).MasterLinkUp, "the replica is not in sync") })
	taking := c.taking("backup", store)
	taking.Meter = &archive.Meter{}
	var wait sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	wait.Go(func() {
		for ctx.Err() == nil && taking.Meter.Report().Bytes < 1<<20 {
			time.Sleep(time.Millisecond)
		}
		c.servers[1].kill()
	})
	_, err := taking.Take(t.Context())
	cancel()
	wait.Wait()
	wantError(t, err, "shard 0")
	if left := m.objects(); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	manifest, err := taking.Take(t.Context())
	must(t, err)
	must(t, store.Verify(t.Context(), manifest))
}

// TestEstimateOfABackup: how much data there is going to be is told from the keys that the instance has sent, to a factor of two, and stays
// told when it has sent all.
func TestEstimateOfABackup(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		const keys = 1_000_000 // much more than buffers on the way take
		c, store := startCluster(t, e, 1, 1, 0), newStore(t)
		fill(t, c.client(), keys)
		store.Limit(1 << 20) // compressed
		taking := c.taking("backup", store)
		taking.Meter = &archive.Meter{}
		ctx, cancel := context.WithCancel(t.Context())
		var samples []report.Progress
		var wait sync.WaitGroup
		wait.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
				if p := taking.Meter.Report(); p.Stage == report.StageReading && p.Bytes > 0 {
					samples = append(samples, p)
				}
			}
		})
		manifest, err := taking.Take(t.Context())
		cancel()
		wait.Wait()
		must(t, err)
		must(t, want(len(samples) > 0, "nothing was told while data came"))
		is, last := manifest.Shards[0].Base.PlainSize, samples[len(samples)-1].Of
		t.Logf("of %d bytes, the first estimate is %d, the last %d", is, samples[0].Of, last)
		if last < is/2 || last > 2*is {
			t.Errorf("the last estimate of %d bytes is %d", is, last)
		}
	})
}

// clutter puts objects into the store until it takes no more.
func (m *minio) clutter() {
	m.t.Helper()
	const largest, least, of = 4 << 20, 256, 4
	n := 0
	for size := largest; size >= least; size /= of {
		var err error
		for ; err == nil; n++ {
			_, err = m.client(m.root()).PutObject(m.t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucketName),
				Key: aws.String(fmt.Sprint("clutter/", n)), Body: bytes.NewReader(make([]byte, size))})
		}
	}
}

// tidy deletes them.
func (m *minio) tidy() {
	m.t.Helper()
	for _, key := range m.objects() {
		if strings.HasPrefix(key, "clutter/") {
			_, err := m.client(m.root()).DeleteObject(m.t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucketName), Key: aws.String(key)})
			must(m.t, err)
		}
	}
}

// TestArchiveThroughStoreFaults: credentials that are revoked for a while, a store that is down, and one that is full: the archive waits,
// and says for what, and goes on with nothing missing and without new bases.
func TestArchiveThroughStoreFaults(t *testing.T) {
	t.Parallel()
	e := engines(t)[0]
	for name, tt := range map[string]struct {
		room       string
		fail, mend func(m *minio, c *cluster)
	}{
		"the credentials are revoked": {"", func(m *minio, _ *cluster) { m.kill(); m.secret = "another-secret"; m.run() },
			func(m *minio, _ *cluster) { m.kill(); m.secret = storeSecret; m.run() }},
		"it is down": {"", func(m *minio, _ *cluster) { m.kill() }, func(m *minio, _ *cluster) { m.run() }},
		"it is full": {"64m", func(m *minio, _ *cluster) { m.clutter() }, func(m *minio, _ *cluster) { m.tidy() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMinIO(t)
			m.room = tt.room
			m.start()
			c := startCluster(t, e, 1, 1, 1)
			ch := startChain(c)
			archiving := c.archiving(m.store(m.root(), archive.Keys{}))
			archiving.Watch = &archive.Watch{}
			a := startArchive(archiving, c)
			before := a.after(time.Now())
			tt.fail(m, c)
			at := time.Now()
			eventually(t, func() error {
				said := archiving.Watch.Report(time.Second)
				return want(said.Waits == report.WaitStore && !said.Ready() && said.Last.Before(at), "it says %+v", said)
			})
			tt.mend(m, c)
			acknowledged := ch.acknowledged()
			after := a.after(time.Now())
			ch.end()
			must(t, a.end())
			if after.Shards[0].Base != before.Shards[0].Base {
				t.Error("it needed a new base")
			}
			must(t, a.store.Verify(t.Context(), after))
			ch.wantWhole(t, restored(t, e, a.store, after).client(), acknowledged)
		})
	}
}

// TestArchiveWhoseStoreIsAwayForLong: when a store is away for longer than instances keep what was written, the archive says so by having
// no moment of that time: it goes on with new bases, and has all that was acknowledged before the next moment.
func TestArchiveWhoseStoreIsAwayForLong(t *testing.T) {
	t.Parallel()
	e := engines(t)[0]
	m, c := startMinIO(t), startCluster(t, e, 1, 1, 1)
	ch := startChain(c)
	archiving := c.archiving(m.store(m.root(), archive.Keys{}))
	archiving.Timeout = 2 * time.Second // how long a stream may be lost
	a := startArchive(archiving, c)
	before := a.after(time.Now())
	m.kill()
	away := time.Now()
	eventually(t, func() error { // what waits in memory is as much as may: the stream is left
		fillLarge(c, "stream", severalParts/4)
		following := 0
		for i := range c.servers {
			stats, err := c.direct(i).InfoMap(t.Context(), "replication").Result()
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(stats["Replication"]["connected_slaves"])
			if err != nil {
				return err
			}
			following += n
		}
		return want(following == 1, "%d follow, the replica among them", following)
	})
	fillLarge(c, "stream", severalParts/2) // more than the backlog has
	m.run()
	acknowledged := ch.acknowledged()
	after := a.after(time.Now())
	ch.end()
	must(t, a.end())
	if after.Shards[0].Base == before.Shards[0].Base {
		t.Error("it needed no new base")
	}
	must(t, a.store.Verify(t.Context(), after))
	ch.wantWhole(t, restored(t, e, a.store, after).client(), acknowledged)
	meanwhile, err := a.store.At(t.Context(), "archive", away.Add(time.Millisecond), false)
	must(t, err)
	must(t, a.store.Verify(t.Context(), meanwhile))
	if meanwhile.Marked.After(away.Add(time.Millisecond)) || meanwhile.Shards[0].Base != before.Shards[0].Base {
		t.Errorf("the moment before is %s, and the store was away from %s on", meanwhile.Marked, away)
	}
}
