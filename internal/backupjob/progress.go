// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
)

// StatusPort is where pods that run the program say how far they are.
const StatusPort = 8090

// Listen is the argument by which they do.
func Listen() string { return fmt.Sprintf("--listen=:%d", StatusPort) }

const (
	// askEvery is how often a pod is asked at most, askAgain after how long one that did not answer, askWithin how long it may take.
	askEvery, askAgain, askWithin = 10 * time.Second, time.Minute, time.Second
	// forgetAfter is how old what a pod said may be.
	forgetAfter = time.Minute
)

// Ask asks a pod how far it is, by its address.
type Ask func(ctx context.Context, address string) ([]byte, error)

// Asker asks over HTTP. It follows no redirection, and reads no more than most bytes, and one by which it is told that there is more.
func Asker(most int64) Ask {
	const mostHeaders = 4 << 10
	asker := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: mostHeaders},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, address string) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/status", http.NoBody)
		if err != nil {
			return nil, err
		}
		answer, err := asker.Do(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = answer.Body.Close() }() // it was read, or there is an error
		if answer.StatusCode != http.StatusOK {
			return nil, errors.New(answer.Status)
		}
		return io.ReadAll(io.LimitReader(answer.Body, most+1))
	}
}

// Listener is what is remembered of how far the pod of a Job is. The zero value remembers nothing.
type Listener struct {
	pod   types.UID
	next  time.Time // it is not asked before
	heard *report.Heard
}

// Hear asks a pod that works for somebody, if it is time to, and returns what it said last, nil when that is not known. What it says is
// for people: it is anybody's who may make pods in the namespace.
func (l *Listener) Hear(ctx context.Context, ask Ask, pod *corev1.Pod, request string, now time.Time) *report.Heard {
	if pod == nil || ask == nil {
		*l = Listener{}
		return nil
	}
	if l.pod != pod.UID {
		*l = Listener{pod: pod.UID}
	}
	if !now.Before(l.next) {
		if said, err := hear(ctx, ask, pod.Status.PodIP, request); err != nil {
			l.next = now.Add(askAgain)
		} else {
			l.next, l.heard = now.Add(askEvery), &report.Heard{Progress: said, At: now}
		}
	}
	if l.heard != nil && now.Sub(l.heard.At) > forgetAfter {
		l.heard = nil
	}
	return l.heard
}

func hear(ctx context.Context, ask Ask, ip, request string) (report.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	text, err := ask(ctx, net.JoinHostPort(ip, strconv.Itoa(StatusPort)))
	if err != nil {
		return report.Progress{}, err
	}
	said, err := report.ParseProgress(text)
	if err == nil && said.Request != request {
		err = errors.New("it works for somebody else")
	}
	return said, err
}

// Running is the newest pod of a Job that runs, by its owner and what it runs, at an address of its own; nil: there is none.
func Running(ctx context.Context, cache client.Reader, job *batchv1.Job) (*corev1.Pod, error) {
	var list corev1.PodList
	if err := cache.List(ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return nil, fmt.Errorf("list the pods of Job %s: %w", job.Name, err)
	}
	var newest *corev1.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		if metav1.IsControlledBy(pod, job) && Runs(pod, job) && !pod.Spec.HostNetwork && pod.Status.PodIP != "" &&
			pod.Status.Phase == corev1.PodRunning && (newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	return newest, nil
}

// Progress is what a status says of how far a container is; nil when that is not known.
func Progress(heard *report.Heard) *v1alpha1.TransferProgress {
	if heard == nil {
		return nil
	}
	p := &v1alpha1.TransferProgress{Stage: string(heard.Stage), Bytes: heard.Bytes, ExpectedBytes: heard.Of}
	if share, known := heard.Share(); known {
		p.Percent = Percent(share)
	}
	if end := heard.End(); !end.IsZero() {
		p.EstimatedEnd = &metav1.Time{Time: end.UTC().Truncate(time.Second)}
	}
	for _, s := range heard.Shards {
		shard := int32(s.Shard) //nolint:gosec // at most 16384
		p.Shards = append(p.Shards, v1alpha1.ShardProgress{Shard: shard, Bytes: s.Bytes, ExpectedBytes: s.Of})
	}
	return p
}

// Percent is a share as a status has it: what has not ended is not at 100.
func Percent(share float64) *int32 {
	const all = 100
	percent := min(int32(share*all), all-1)
	return &percent
}
