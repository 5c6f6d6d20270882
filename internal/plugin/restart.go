// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/plugin/read"
)

// restartedAt is an annotation of the pod template. That of `kubectl rollout restart` is below kubernetes.io, where admission takes none
// from the author of a RedisCluster; a name without a domain is the user's own.
const restartedAt = "restartedAt"

func (p *program) restart() *cobra.Command {
	return &cobra.Command{
		Use:   "restart NAME",
		Short: "restart the instances of a RedisCluster: one at a time, replicas first, masters after switching over",
		Long: "Sets the annotation " + restartedAt + " in spec.pod[0].annotations to the time: the operator then restarts the instances as\n" +
			"with any other change of their template. If the spec comes from a repository, change it there.",
		Example: "  kubectl middleware restart cache -n shop",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			to, err := p.connection.open()
			if err != nil {
				return err
			}
			namespace, err := p.connection.namespace()
			if err != nil {
				return err
			}
			key := read.Key(namespace, arguments[0])
			if err := to.restart(command.Context(), key, to.read.Now()); err != nil {
				return err
			}
			return p.say("RedisCluster %s: its instances restart; %s", key,
				p.connection.typed(fmt.Sprintf("kubectl middleware status %s -n %s --watch", key.Name, key.Namespace)))
		},
		ValidArgsFunction: p.completeClusters,
	}
}

// restart changes the RedisCluster that was read, and no later one: the list of templates is written as a whole.
func (c *cluster) restart(ctx context.Context, key client.ObjectKey, now time.Time) error {
	object, err := c.read.Object(ctx, read.RedisCluster, key)
	if err != nil {
		return err
	}
	if err := annotate(object, now); err != nil {
		return err
	}
	err = c.Update(ctx, object)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("RedisCluster %s was changed in this moment: try again", key)
	}
	if err != nil {
		return fmt.Errorf("change RedisCluster %s: %w", key, err)
	}
	return nil
}

func annotate(object *unstructured.Unstructured, now time.Time) error {
	templates, _, err := unstructured.NestedSlice(object.Object, "spec", "pod")
	if err != nil {
		return fmt.Errorf("spec.pod is of a form that this version of the plugin does not know: %w", err)
	}
	if len(templates) == 0 {
		templates = []any{map[string]any{}}
	}
	template, is := templates[0].(map[string]any)
	if !is {
		return fmt.Errorf("spec.pod[0] is of a form that this version of the plugin does not know")
	}
	if err := unstructured.SetNestedField(template, now.UTC().Format(time.RFC3339), "annotations", restartedAt); err != nil {
		return fmt.Errorf("spec.pod[0].annotations: %w", err)
	}
	return unstructured.SetNestedSlice(object.Object, templates, "spec", "pod")
}
