// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/keys"
	"middleware.hc.cn/operator/internal/plugin/load"
	"middleware.hc.cn/operator/internal/plugin/read"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// askForKeys is a redis-cli that reads commands, for so many seconds at most.
const askForKeys = redisAccess + `
exec timeout "$1" redis-cli $tls -p "$port" --no-raw`

const (
	// mastersAtOnce is how many masters are asked at once, each by a kubectl.
	mastersAtOnce = 8
	// mostKeys is how many keys are shown at most.
	mostKeys = 100
	// longestLook is for how long a shard may be looked at; toEnd is what it has besides, to say what was found.
	longestLook, toEnd = time.Hour, 15 * time.Second
)

func (p *program) keys() *cobra.Command {
	most, limit := 10, 30*time.Second
	command := &cobra.Command{
		Use:   "keys NAME",
		Short: "the largest keys of a RedisCluster, and those used most",
		Long: "Looks at all keys of each master (SCAN, MEMORY USAGE), 500 at a time, by `kubectl exec` into its pod, with your right to do\n" +
			"that: whoever has it reads and writes all data. How often keys are used is known with a maxmemory-policy of LFU alone. Names\n" +
			"are shown as redis-cli writes them. BYTES of a key with many elements are an estimate.",
		Example: "  kubectl middleware keys cache -n shop\n  kubectl middleware keys cache -n shop --for=10m --number=50 -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			switch {
			case most < 1 || most > mostKeys:
				return fmt.Errorf("--number: %d is not from 1 to %d", most, mostKeys)
			case limit < time.Second || limit > longestLook:
				return fmt.Errorf("--for: %s is not from 1s to %s", limit, longestLook)
			}
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			model, err := p.look(command.Context(), to, namespace, arguments[0], most, limit)
			if err != nil {
				return err
			}
			return p.print(model, model.Text)
		},
		ValidArgsFunction: p.completeClusters,
	}
	p.outputs(command)
	command.Flags().IntVar(&most, "number", most, "how many keys are shown, 1 to 100")
	command.Flags().DurationVar(&limit, "for", limit, "for how long each shard is looked at, at most")
	return command
}

// look looks at the keys of each shard of a RedisCluster. It fails if none says anything.
func (p *program) look(ctx context.Context, to *cluster, namespace, name string, most int, limit time.Duration) (keys.Cluster, error) {
	cluster, err := to.read.TypedCluster(ctx, read.Key(namespace, name))
	if err != nil {
		return keys.Cluster{}, err
	}
	masters, err := servingMasters(cluster)
	if err != nil {
		return keys.Cluster{}, err
	}
	pods, err := to.read.Instances(ctx, read.Key(namespace, name))
	if err != nil {
		return keys.Cluster{}, err
	}
	looks, failed := make([]*keys.Look, len(masters)), make([]error, len(masters))
	var group errgroup.Group
	group.SetLimit(mastersAtOnce)
	for i, node := range masters {
		shard := keys.Shard{Shard: node.Shard, Instance: node.Name}
		group.Go(func() error {
			if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Name == node.Name && load.Own(cluster, &pod) }) {
				failed[i] = fmt.Errorf("%s is a master by the status, and no StatefulSet of the RedisCluster has such a pod", node.Name)
				looks[i] = keys.NewLook(shard, most, "", nil, nil)
			} else {
				looks[i], failed[i] = p.lookAt(ctx, namespace, shard, most, limit)
			}
			if failed[i] != nil {
				looks[i].Shard.Error = terminal.Clean(failed[i].Error())
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is told of its shard
	for _, shard := range unserved(cluster, masters) {
		looks = append(looks, keys.NewLook(keys.Shard{Shard: shard, Error: "no master of it serves"}, most, "", nil, nil))
	}
	if err := ctx.Err(); err != nil {
		return keys.Cluster{}, err
	}
	if !slices.Contains(failed, nil) {
		return keys.Cluster{}, failed[0]
	}
	return keys.Merge(namespace, name, looks, most), nil
}

// unserved are the shards of which no master serves.
func unserved(cluster *v1alpha1.RedisCluster, serving []v1alpha1.NodeStatus) []int32 {
	var shards []int32
	for _, node := range cluster.Status.Nodes {
		_, _, is := cluster.InstanceOf(node.Name)
		if is && !slices.Contains(shards, node.Shard) &&
			!slices.ContainsFunc(serving, func(master v1alpha1.NodeStatus) bool { return master.Shard == node.Shard }) {
			shards = append(shards, node.Shard)
		}
	}
	return shards
}

// lookAt looks at the keys of one master, in its pod.
func (p *program) lookAt(ctx context.Context, namespace string, of keys.Shard, most int, limit time.Duration) (*keys.Look, error) {
	ctx, end := context.WithTimeout(ctx, limit+toEnd)
	defer end()
	seconds := strconv.Itoa(int((limit + toEnd).Seconds()))
	mark := rand.Text() // no server knows it
	look := keys.NewLook(of, most, mark, nil, nil)
	command, err := p.kubectl(ctx, p.execArguments(namespace, of.Instance, []string{"-i"}, askForKeys, []string{seconds}))
	if err != nil {
		return look, err
	}
	commands, err := command.StdinPipe()
	if err != nil {
		return look, err
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		return look, err
	}
	var wrong bounded
	command.Stderr = &wrong
	if err := command.Start(); err != nil {
		return look, err
	}
	look = keys.NewLook(of, most, mark, commands, answers)
	until := time.Now().Add(limit)
	err = look.Run(func() bool { return time.Now().After(until) })
	_ = commands.Close()
	if err != nil {
		end() // who does not answer as expected may not end either
	}
	_ = command.Wait() // what it has told counts
	if err != nil && wrong.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, wrong.String())
	}
	return look, err
}
