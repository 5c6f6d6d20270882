// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"middleware.hc.cn/operator/internal/plugin/journal"
	"middleware.hc.cn/operator/internal/plugin/read"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// logsOf is which part of the logs is asked for.
type logsOf struct {
	container string
	tail      int64
	since     time.Duration
	previous  bool
}

// How much of the logs is read: of all pods together, and of one.
const mostLogs, mostOfPod = 64 << 20, 1 << 20

// allLines is the tail of a log without a beginning.
const allLines = -1

// atOnce is how many logs are read at a time.
const atOnce = 8

func (p *program) logs() *cobra.Command {
	of := logsOf{}
	command := &cobra.Command{
		Use:     "logs NAME",
		Short:   "the logs of all instances of a RedisCluster, merged by time",
		Long:    "Prints the last lines of the logs of all instances, in the order of their times, each with its pod.",
		Example: "  kubectl middleware logs cache -n shop --since=10m",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			if of.tail < allLines {
				return fmt.Errorf("--tail: %d is neither a number of lines nor -1, for all", of.tail)
			}
			pods, err := to.read.Instances(command.Context(), read.Key(namespace, arguments[0]))
			if err != nil {
				return err
			}
			lines, unread, err := to.logs(command.Context(), pods, of)
			if err != nil {
				return err
			}
			for _, one := range unread {
				fmt.Fprintln(p.Err, "not shown:", terminal.Clean(one))
			}
			_, err = io.WriteString(p.Out, journal.Text(p.page(), lines))
			return err
		},
		ValidArgsFunction: p.completeClusters,
	}
	command.Flags().StringVarP(&of.container, "container", "c", "redis", "the container of each pod")
	command.Flags().Int64Var(&of.tail, "tail", 100, "lines of each pod, -1 for all")
	command.Flags().DurationVar(&of.since, "since", 0, "only what is newer, such as 10m")
	command.Flags().BoolVar(&of.previous, "previous", false, "of the container before the one that runs")
	return command
}

// logs reads the logs of pods. Unread are those that could not be read, or not as a whole; the error is for the one reason that concerns
// all.
func (c *cluster) logs(ctx context.Context, pods []corev1.Pod, of logsOf) (lines []journal.Line, unread []string, err error) {
	cfg := rest.CopyConfig(c.config)
	cfg.GroupVersion, cfg.APIPath, cfg.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", scheme.Codecs.WithoutConversion()
	core, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("reach the cluster: %w", err)
	}
	limit := min(mostOfPod, mostLogs/max(int64(len(pods)), 1))
	options := &corev1.PodLogOptions{Container: of.container, Timestamps: true, LimitBytes: &limit, Previous: of.previous}
	if of.tail != allLines {
		options.TailLines = &of.tail
	}
	if of.since > 0 {
		seconds := max(int64(of.since/time.Second), 1)
		options.SinceSeconds = &seconds
	}
	logs := make([][]journal.Line, len(pods))
	var mutex sync.Mutex
	failed := 0
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range pods {
		group.Go(func() error {
			text, cut, err := newest(ctx, core, types.NamespacedName{Namespace: pods[i].Namespace, Name: pods[i].Name}, *options)
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				failed++
				unread = append(unread, fmt.Sprintf("%s: %v", pods[i].Name, err))
				return nil
			}
			if cut != "" {
				unread = append(unread, pods[i].Name+": "+cut)
			}
			logs[i] = journal.Parse(pods[i].Name, text)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	if len(pods) > 0 && failed == len(pods) {
		return nil, nil, fmt.Errorf("no log could be read: %s", unread[0])
	}
	return journal.Merge(logs...), unread, nil
}

// newest is a log that ends with its newest line. A limit of bytes counts from the beginning of the tail, so that what is longer loses
// its end: a tail of half the lines that came is asked for then, until it fits. Cut says what was left out.
func newest(ctx context.Context, core rest.Interface, pod types.NamespacedName,
	options corev1.PodLogOptions) (text, cut string, err error) {
	for {
		text, err = logOf(ctx, core, pod, &options)
		if err != nil || int64(len(text)) < *options.LimitBytes {
			return text, cut, err
		}
		lines := int64(strings.Count(text, "\n"))
		if options.TailLines != nil {
			lines = min(lines, *options.TailLines-1)
		}
		if lines < 1 {
			return text, fmt.Sprintf("its last line is cut off at %d bytes", *options.LimitBytes), nil
		}
		tail := max(lines/2, 1)
		options.TailLines = &tail
		cut = fmt.Sprintf("cut off at %d bytes: all but its last %d lines", *options.LimitBytes, tail)
	}
}

func logOf(ctx context.Context, core rest.Interface, pod types.NamespacedName, options *corev1.PodLogOptions) (string, error) {
	stream, err := core.Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("log").
		VersionedParams(options, scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }() // what was read counts
	text, err := io.ReadAll(io.LimitReader(stream, *options.LimitBytes))
	return string(text), err
}
