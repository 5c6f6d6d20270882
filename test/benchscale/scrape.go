// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// scraped is what it costs to be scraped, by way of HTTP without TLS and without the review of a token.
type scraped struct {
	// Series are the lines of one answer that have a value, OfInstances those of them that are about one instance of a RedisCluster.
	Series      int `json:"series"`
	OfInstances int `json:"seriesOfInstances"`
	// Bytes of an answer, and how many of them pass when it is compressed, which Prometheus asks for.
	Bytes      int `json:"bytes"`
	Compressed int `json:"compressedBytes"`
	// Seconds are those from the request to the last byte of compressed answers, one after the other.
	Seconds []float64 `json:"seconds"`
	// CPU and CPUCompressed are the operator's processor seconds for an answer, without what it uses at rest.
	CPU           float64 `json:"cpuSeconds"`
	CPUCompressed float64 `json:"cpuSecondsCompressed"`
	// Every is what the operator uses in all while it is scraped at intervals.
	Every []atIntervals `json:"every"`
}

// atIntervals is the operator at rest that is scraped.
type atIntervals struct {
	Seconds float64 `json:"intervalSeconds"`
	CPU     float64 `json:"cpuSecondsAMinute"`
	// Ratio is that to the processor time of the same operator at rest that nobody scrapes.
	Ratio float64 `json:"ratio"`
}

// scrapeIntervals are those of config/prometheus, and half of that.
var scrapeIntervals = []time.Duration{30 * time.Second, 15 * time.Second}

// scrape measures what scrapes cost while all is at rest.
func (r *run) scrape(ctx context.Context, m *result) error {
	if r.scrapes == 0 {
		return nil
	}
	progress("%d scrapes, plain and compressed", r.scrapes)
	s := &scraped{}
	m.Scraped = s
	answer, err := r.answer(ctx, false)
	if err != nil {
		return err
	}
	s.Bytes = len(answer)
	for line := range strings.Lines(string(answer)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		s.Series++
		if strings.HasPrefix(line, "middleware_operator_rediscluster_instance_") {
			s.OfInstances++
		}
	}
	if answer, err = r.answer(ctx, true); err != nil {
		return err
	}
	s.Compressed = len(answer)
	if s.CPU, _, err = r.burst(ctx, false, m.CPU); err != nil {
		return err
	}
	if s.CPUCompressed, s.Seconds, err = r.burst(ctx, true, m.CPU); err != nil {
		return err
	}
	for _, interval := range scrapeIntervals {
		progress("a scrape every %s", interval)
		cpu, err := r.scrapedEvery(ctx, interval)
		if err != nil {
			return err
		}
		s.Every = append(s.Every, atIntervals{Seconds: interval.Seconds(), CPU: cpu, Ratio: cpu / m.CPU})
	}
	return nil
}

// burst scrapes again and again: processor seconds each, of which those at rest are none, and seconds of all.
func (r *run) burst(ctx context.Context, compressed bool, restAMinute float64) (cpu float64, seconds []float64, err error) {
	before, err := r.cpuSeconds()
	if err != nil {
		return 0, nil, err
	}
	began := time.Now()
	for range r.scrapes {
		asked := time.Now()
		if _, err := r.answer(ctx, compressed); err != nil {
			return 0, nil, err
		}
		seconds = append(seconds, time.Since(asked).Seconds())
	}
	minutes := time.Since(began).Minutes()
	after, err := r.cpuSeconds()
	return (after - before - restAMinute*minutes) / float64(r.scrapes), seconds, err
}

// scrapedEvery is the operator's processor seconds a minute while it is scraped at an interval, twice at the least.
func (r *run) scrapedEvery(ctx context.Context, interval time.Duration) (float64, error) {
	before, err := r.cpuSeconds()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for n := range max(2, int(r.rest/interval)) {
		if _, err := r.answer(ctx, true); err != nil {
			return 0, err
		}
		select {
		case <-time.After(time.Until(began.Add(time.Duration(n+1) * interval))):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	minutes := time.Since(began).Minutes()
	after, err := r.cpuSeconds()
	return (after - before) / minutes, err
}

// answer is one scrape, as it passes.
func (r *run) answer(ctx context.Context, compressed bool) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.operators[0].metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", map[bool]string{true: "gzip", false: "identity"}[compressed]) // said here, it is not undone
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK || (response.Header.Get("Content-Encoding") == "gzip") != compressed {
		return nil, fmt.Errorf("metrics: %s, encoded as %q", response.Status, response.Header.Get("Content-Encoding"))
	}
	var body bytes.Buffer
	_, err = io.Copy(&body, response.Body)
	return body.Bytes(), err
}
