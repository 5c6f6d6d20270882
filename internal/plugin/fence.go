// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/read"
)

func (p *program) fence() *cobra.Command {
	return &cobra.Command{
		Use:   "fence NAME INSTANCE",
		Short: "have the operator leave an instance alone, so that somebody can look at it",
		Long: "Adds the instance to the annotation " + v1alpha1.AnnotationFenced + ". A master hands over first. Until `unfence` the\n" +
			"operator neither restarts nor replaces nor promotes it, and the Service leads no client to it.",
		Example: "  kubectl middleware fence cache cache-0-1 -n shop",
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.fenced(command.Context(), arguments[0], arguments[1], fenceOne)
		},
		ValidArgsFunction: p.completeInstances(""),
	}
}

func (p *program) unfence() *cobra.Command {
	return &cobra.Command{
		Use:     "unfence NAME [INSTANCE]",
		Short:   "have the operator look after an instance again, or after all",
		Long:    "Takes the instance, or all, out of the annotation " + v1alpha1.AnnotationFenced + ".",
		Example: "  kubectl middleware unfence cache cache-0-1 -n shop",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.fenced(command.Context(), arguments[0], strings.Join(arguments[1:], ""), unfenceOne)
		},
		ValidArgsFunction: p.completeInstances(""),
	}
}

func (p *program) fenced(ctx context.Context, name, instance string, change func(*v1alpha1.RedisCluster, string) (string, error)) error {
	to, namespace, err := p.connection.open()
	if err != nil {
		return err
	}
	key := read.Key(namespace, name)
	value, err := to.setFence(ctx, key, instance, change)
	if err != nil {
		return err
	}
	if value == "" {
		return p.say("RedisCluster %s: no instance is fenced", key)
	}
	return p.say("RedisCluster %s: asked to leave alone %s; %s", key, value,
		p.connection.typed(fmt.Sprintf("kubectl middleware status %s -n %s", key.Name, key.Namespace)))
}

// setFence writes the annotation of the object that was read, and of no later one: somebody else may fence another instance meanwhile.
func (c *cluster) setFence(ctx context.Context, key client.ObjectKey, instance string,
	change func(*v1alpha1.RedisCluster, string) (string, error)) (value string, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := c.read.Object(ctx, read.RedisCluster, key)
		if err != nil {
			return err
		}
		cluster, err := read.Typed(object)
		if err != nil {
			return err
		}
		if value, err = change(cluster, instance); err != nil {
			return fmt.Errorf("RedisCluster %s: %w", key, err)
		}
		var written any = value
		if value == "" {
			written = nil // which takes it away
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": object.GetResourceVersion(),
			"annotations": map[string]any{v1alpha1.AnnotationFenced: written}}})
		if err != nil {
			return err
		}
		changed := &unstructured.Unstructured{}
		changed.SetGroupVersionKind(object.GroupVersionKind())
		changed.SetNamespace(key.Namespace)
		changed.SetName(key.Name)
		if err := c.Patch(ctx, changed, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("change RedisCluster %s: %w", key, err)
		}
		return nil
	})
	return value, err
}

// fenceOne is the annotation with an instance more.
func fenceOne(cluster *v1alpha1.RedisCluster, instance string) (string, error) {
	if !slices.ContainsFunc(cluster.Status.Nodes, func(node v1alpha1.NodeStatus) bool { return node.Name == instance }) {
		return "", fmt.Errorf("%s is none of its instances, which are called such as %s-0-1", instance, cluster.Name)
	}
	names, _ := cluster.Fenced()
	if !slices.Contains(names, instance) {
		names = append(names, instance)
	}
	value := strings.Join(names, ",")
	if len(value) > v1alpha1.LongestFenced {
		return "", fmt.Errorf("the annotation %s would have more than %d characters: unfence an instance first", v1alpha1.AnnotationFenced,
			v1alpha1.LongestFenced)
	}
	return value, nil
}

// unfenceOne is the annotation without an instance; empty: without any.
func unfenceOne(cluster *v1alpha1.RedisCluster, instance string) (string, error) {
	names, _ := cluster.Fenced()
	if instance == "" {
		return "", nil
	}
	if !slices.Contains(names, instance) {
		return "", fmt.Errorf("%s is not fenced", instance)
	}
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == instance }), ","), nil
}
