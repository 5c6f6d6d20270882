// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/overview"
	"middleware.hc.cn/operator/internal/plugin/read"
)

// eventEnd is the reason of the Event by which the operator says what became of a request for a switchover.
const eventEnd = "EndSwitchover"

func (p *program) failover() *cobra.Command {
	wait := 2 * time.Minute
	command := &cobra.Command{
		Use:   "failover NAME INSTANCE",
		Short: "have a replica take over as the master of its shard, without losing a write",
		Long: "Asks the operator for it, by the annotation " + v1alpha1.AnnotationSwitchover + ", and waits until it has said what became of\n" +
			"that. It switches over when the cluster is healthy, after a rollout or a backup, and refuses what spec.spreadMasters would undo.",
		Example: "  kubectl middleware failover cache cache-0-1 -n shop",
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			key := read.Key(namespace, arguments[0])
			asked, err := to.askForSwitchover(command.Context(), key, arguments[1])
			if err != nil {
				return err
			}
			if wait <= 0 {
				return p.say("RedisCluster %s: %s is asked for; %s", key, arguments[1],
					p.connection.typed(fmt.Sprintf("kubectl middleware status %s -n %s --watch", key.Name, key.Namespace)))
			}
			ctx, end := context.WithTimeout(command.Context(), wait)
			defer end()
			said, err := to.awaitSwitchover(ctx, asked, arguments[1])
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return fmt.Errorf("%s is not the master yet: %s; the request stays, and %s takes it back", arguments[1], said,
					p.connection.typed(fmt.Sprintf("kubectl annotate rediscluster %s -n %s %s-", key.Name, key.Namespace,
						v1alpha1.AnnotationSwitchover)))
			}
			if err != nil {
				return err
			}
			return p.say("RedisCluster %s: %s", key, said)
		},
		ValidArgsFunction: p.completeInstances("slave"),
	}
	command.Flags().DurationVar(&wait, "wait", wait, "how long to wait for it, 0: not at all")
	return command
}

// askForSwitchover writes the request, unless it is plain that nothing comes of it, or another one has been made.
func (c *cluster) askForSwitchover(ctx context.Context, key client.ObjectKey, instance string) (cluster *v1alpha1.RedisCluster, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := c.read.Object(ctx, read.RedisCluster, key)
		if err != nil {
			return err
		}
		if cluster, err = read.Typed(object); err != nil {
			return err
		}
		if err := mayTakeOver(cluster, instance); err != nil {
			return fmt.Errorf("RedisCluster %s: %w", key, err)
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": object.GetResourceVersion(),
			"annotations": map[string]any{v1alpha1.AnnotationSwitchover: instance}}})
		if err != nil {
			return err
		}
		written := &unstructured.Unstructured{}
		written.SetGroupVersionKind(object.GroupVersionKind())
		written.SetNamespace(key.Namespace)
		written.SetName(key.Name)
		if err := c.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("change RedisCluster %s: %w", key, err)
		}
		return nil
	})
	return cluster, err
}

// mayTakeOver says why a request would come to nothing, as far as the status says.
func mayTakeOver(cluster *v1alpha1.RedisCluster, instance string) error {
	pending := cluster.Annotations[v1alpha1.AnnotationSwitchover]
	at := slices.IndexFunc(cluster.Status.Nodes, func(node v1alpha1.NodeStatus) bool { return node.Name == instance })
	switch {
	case at < 0:
		return fmt.Errorf("%s is none of its instances, which are called such as %s-0-1", instance, cluster.Name)
	case cluster.Status.Nodes[at].Type == master:
		return fmt.Errorf("%s is the master of shard %d already: name a replica", instance, cluster.Status.Nodes[at].Shard)
	case pending != "" && pending != instance:
		return fmt.Errorf("%s is asked for already, and the operator has not got to it; kubectl annotate rediscluster %s -n %s %s- takes that back",
			pending, cluster.Name, cluster.Namespace, v1alpha1.AnnotationSwitchover)
	case cluster.Spec.Pause:
		return fmt.Errorf("it is paused, and the operator changes nothing: kubectl middleware resume %s -n %s", cluster.Name, cluster.Namespace)
	case cluster.Spec.Hibernate:
		return errors.New("it is to be hibernated (spec.hibernate)")
	}
	return nil
}

// master is the type of a node in the status.
const master = "master"

// looks is how long awaitSwitchover waits between two looks, and settles how long after the request is gone the status may say who is
// the master: it is written a moment later.
const looks, settles = time.Second, 5

// awaitSwitchover waits until the instance is the master, or the request is gone, and says what became of it; when there is no more time,
// what the operator does.
func (c *cluster) awaitSwitchover(ctx context.Context, asked *v1alpha1.RedisCluster, instance string) (said string, err error) {
	key, since := client.ObjectKeyFromObject(asked), c.read.Now()
	said = "the operator has not got to it"
	for gone := 0; ; {
		object, err := c.read.Object(ctx, read.RedisCluster, key)
		if err != nil {
			if end, has := ctx.Deadline(); has && !time.Now().Before(end) {
				<-ctx.Done() // clients refuse what comes too late a moment before
			}
			return said, cmp.Or(ctx.Err(), err)
		}
		cluster, err := read.Typed(object)
		if err != nil {
			return said, err
		}
		if plan := cluster.Status.Plan; plan != nil {
			said = plan.Step + ": " + plan.Reason
		}
		for _, node := range cluster.Status.Nodes {
			if node.Name == instance && node.Type == master {
				return fmt.Sprintf("%s is the master of shard %d", instance, node.Shard), nil
			}
		}
		if cluster.Annotations[v1alpha1.AnnotationSwitchover] != instance {
			if gone++; gone > settles {
				return c.endOfSwitchover(ctx, cluster, since)
			}
		}
		select {
		case <-ctx.Done():
			return said, ctx.Err()
		case <-time.After(looks):
		}
	}
}

// clocks is how far the clocks of this machine and of the operator's may differ.
const clocks = time.Minute

// endOfSwitchover is what the operator said of a request: an error, unless it was carried out.
func (c *cluster) endOfSwitchover(ctx context.Context, cluster *v1alpha1.RedisCluster, since time.Time) (string, error) {
	found, err := c.read.EventsOf(ctx, cluster)
	if err != nil {
		return "", fmt.Errorf("the request was taken away, and it is not known why: %w", err)
	}
	return endOf(found, since)
}

func endOf(found []corev1.Event, since time.Time) (string, error) {
	var last *corev1.Event
	for i := range found {
		e := &found[i]
		if e.Reason == eventEnd && !overview.At(e).Before(since.Add(-clocks)) && (last == nil || overview.At(e).After(overview.At(last))) {
			last = e
		}
	}
	switch {
	case last == nil:
		return "", errors.New("the request was taken away, by the operator or by somebody else, and no Event " + eventEnd + " says why")
	case last.Type == corev1.EventTypeNormal:
		return last.Message, nil
	}
	return "", errors.New(last.Message)
}
