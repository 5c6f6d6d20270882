// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/pause"
	"middleware.hc.cn/operator/internal/plugin/read"
)

func (p *program) pause() *cobra.Command {
	return p.paused(true, "pause", "have the operator change nothing of an object, and say what it would do")
}

func (p *program) resume() *cobra.Command {
	return p.paused(false, "resume", "have the operator go on with an object that is paused")
}

func (p *program) paused(asked bool, verb, short string) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " NAME | KIND/NAME",
		Short: short,
		Long: "Sets spec.pause of a RedisCluster, and the annotation " + pause.Annotation + " of the other kinds.\n" +
			"A RedisCluster that is paused says in status.plan what would be done.",
		Example: "  kubectl middleware " + verb + " cache -n shop\n  kubectl middleware " + verb + " app/web",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			kind, name, err := kindOf(arguments[0])
			if err != nil {
				return err
			}
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			if err := to.setPause(command.Context(), kind, read.Key(namespace, name), asked); err != nil {
				return err
			}
			done := map[bool]string{true: "is paused", false: "goes on"}[asked]
			return p.say("%s %s/%s %s", kind.Kind, namespace, name, done)
		},
		ValidArgsFunction: p.completeClusters,
	}
}

// setPause writes as little as says it: no field of anybody else's goes back to what it was.
func (c *cluster) setPause(ctx context.Context, kind schema.GroupKind, key client.ObjectKey, asked bool) error {
	gvk, err := c.read.Served(kind)
	if err != nil {
		return err
	}
	content := map[string]any{"spec": map[string]any{"pause": asked}}
	if kind != read.RedisCluster {
		var value any // null removes it
		if asked {
			value = strconv.FormatBool(true)
		}
		content = map[string]any{"metadata": map[string]any{"annotations": map[string]any{pause.Annotation: value}}}
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("change %s %s: %w", kind.Kind, key, err)
	}
	return nil
}
