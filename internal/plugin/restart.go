// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
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
			"with any other change of their template. With updateStrategy OnDelete it waits for you to delete pods, while paused it does\n" +
			"nothing. If the spec comes from a repository, change it there: spec.pod is written as a whole, and an apply from there\n" +
			"conflicts with that, or takes the annotation away and restarts the instances again.",
		Example: "  kubectl middleware restart cache -n shop",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			key := read.Key(namespace, arguments[0])
			written, err := to.restart(command.Context(), key, to.read.Now())
			if err != nil {
				return err
			}
			for _, line := range outcome(written) {
				if err := p.say("%s", line); err != nil {
					return err
				}
			}
			return p.say("%s", p.connection.typed(fmt.Sprintf("kubectl middleware status %s -n %s --watch", key.Name, key.Namespace)))
		},
		ValidArgsFunction: p.completeClusters,
	}
}

// restart changes the RedisCluster that was read, and no later one: the list of templates is written as a whole. One that was changed
// in between, be it by the operator's status, is read again.
func (c *cluster) restart(ctx context.Context, key client.ObjectKey, now time.Time) (written *unstructured.Unstructured, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if written, err = c.read.Object(ctx, read.RedisCluster, key); err != nil {
			return err
		}
		if err := annotate(written, now); err != nil {
			return err
		}
		err := c.Update(ctx, written)
		if err != nil {
			return fmt.Errorf("change RedisCluster %s: %w", key, err)
		}
		return nil
	})
	return written, err
}

// outcome is what follows from the annotation, and who takes it back.
func outcome(written *unstructured.Unstructured) []string {
	name := "RedisCluster " + written.GetNamespace() + "/" + written.GetName() + ": "
	does := name + "its instances restart, one at a time"
	templates, _, _ := unstructured.NestedSlice(written.Object, "spec", "pod")
	if len(templates) > 0 {
		template, _ := templates[0].(map[string]any)
		if kind, _, _ := unstructured.NestedString(template, "updateStrategy", "type"); kind == string(v1alpha1.OnDelete) {
			does = name + "its instances restart when you delete their pods: updateStrategy is OnDelete"
		}
	}
	if paused, _, _ := unstructured.NestedBool(written.Object, "spec", "pause"); paused {
		does += "; not before kubectl middleware resume: it is paused"
	}
	return []string{does, "spec.pod was written as a whole: an apply of the spec from a repository conflicts with that, or takes " +
		"the annotation away and restarts the instances again; change it there as well"}
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
