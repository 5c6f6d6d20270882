// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/internal/plugin/load"
	"middleware.hc.cn/operator/internal/plugin/read"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// askEach asks servers how much they do, and writes a mark before what each says. Its arguments are the mark, and addresses and ports. It
// ends by itself.
const askEach = redisAccess + `
mark=$1
shift
end=$(($(date +%s) + 20))
while [ $# -gt 1 ] && [ "$(date +%s)" -lt "$end" ]; do
  printf '\n%s %s %s\n' "$mark" "$1" "$2"
  timeout 2 redis-cli $tls -h "$1" -p "$port" INFO </dev/null | head -c 65536
  shift 2
done`

// Limits of what is asked: mostSaid are the bytes that all servers may say, and askTimeout is for all of them.
const (
	mostSaid   = 16 << 20
	askTimeout = 30 * time.Second
)

func (p *program) top() *cobra.Command {
	watch, interval := false, 2*time.Second
	command := &cobra.Command{
		Use:   "top NAME",
		Short: "what the instances of a RedisCluster do: commands a second, memory, clients, hits",
		Long: "Asks all instances (INFO) from one of them, by `kubectl exec`, with your right to do that. HITS are reads that found their key,\n" +
			"since the server started; OF is maxmemory. Instances that have not answered within 20 s, all together, are left out.",
		Example: "  kubectl middleware top cache -n shop --watch",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			if watch && p.output != "" && p.output != "text" {
				return errors.New("--watch is for people: without -o")
			}
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			show := func(ctx context.Context, print printer) error {
				model, err := p.load(ctx, to, namespace, arguments[0])
				if err != nil {
					return err
				}
				return print(model, model.Text)
			}
			if !watch {
				return show(command.Context(), p.print)
			}
			return p.watch(command.Context(), max(interval, leastInterval), show)
		},
		ValidArgsFunction: p.completeClusters,
	}
	p.outputs(command)
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show it anew until you interrupt it")
	command.Flags().DurationVar(&interval, "interval", interval, "how often --watch looks")
	return command
}

// load asks the instances of a RedisCluster what they do, from its first master that serves.
func (p *program) load(ctx context.Context, to *cluster, namespace, name string) (load.Cluster, error) {
	cluster, err := to.read.TypedCluster(ctx, read.Key(namespace, name))
	if err != nil {
		return load.Cluster{}, err
	}
	from, err := servingMaster(cluster)
	if err != nil {
		return load.Cluster{}, err
	}
	pods, err := to.read.Instances(ctx, read.Key(namespace, name))
	if err != nil {
		return load.Cluster{}, err
	}
	if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Name == from && load.Own(cluster, &pod) }) {
		return load.Cluster{}, fmt.Errorf("%s is a master by the status of RedisCluster %s/%s, and no StatefulSet of it has such a pod", from,
			namespace, name)
	}
	ctx, end := context.WithTimeout(ctx, askTimeout)
	defer end()
	var said, wrong bounded   // by servers and a shell of the image of others: none of it reaches the terminal as it is
	mark := "@" + rand.Text() // no server knows it
	given := append([]string{mark}, load.Addresses(cluster, pods)...)
	if err := p.run(ctx, &said, &wrong, p.execArguments(namespace, from, nil, askEach, given)); err != nil {
		return load.Cluster{}, fmt.Errorf("ask from %s: %w: %s", from, err, terminal.Clean(wrong.String()))
	}
	return load.Of(cluster, mark, said.String()), nil
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	_, err := b.Buffer.Write(slices.Clone(p[:min(len(p), max(mostSaid-b.Len(), 0))]))
	return len(p), err
}
