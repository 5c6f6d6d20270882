// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/plugin/read"
)

var (
	backupKind   = schema.GroupKind{Group: read.RedisCluster.Group, Kind: "RedisBackup"}
	scheduleKind = schema.GroupKind{Group: read.RedisCluster.Group, Kind: "RedisBackupSchedule"}
)

// copied are the fields of a schedule that say how its backups are taken.
var copied = []string{"cluster", "store", "recipients", "timeout", "maxBytesPerSecond"}

func (p *program) backup() *cobra.Command {
	schedule, name := "", ""
	command := &cobra.Command{
		Use:   "backup NAME",
		Short: "take a backup of a RedisCluster now, as its RedisBackupSchedule says",
		Long: "Makes a RedisBackup with the store, the recipients and the limits of the RedisBackupSchedule of the RedisCluster. The schedule\n" +
			"does not count it, and never deletes it.",
		Example: "  kubectl middleware backup cache -n shop",
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
			if name == "" {
				name = key.Name + "-" + strings.ToLower(to.read.Now().UTC().Format("20060102-150405"))
			}
			if err := to.backup(command.Context(), key, schedule, name); err != nil {
				return err
			}
			return p.say("RedisBackup %s/%s is made; %s", namespace, name,
				p.connection.typed(fmt.Sprintf("kubectl get redisbackup %s -n %s --watch", name, namespace)))
		},
		ValidArgsFunction: p.completeClusters,
	}
	command.Flags().StringVar(&schedule, "schedule", "", "the RedisBackupSchedule (default: the only one of the RedisCluster)")
	command.Flags().StringVar(&name, "name", "", "name of the RedisBackup (default: that of the RedisCluster with the time)")
	return command
}

func (c *cluster) backup(ctx context.Context, key client.ObjectKey, schedule, name string) error {
	from, err := c.schedule(ctx, key, schedule)
	if err != nil {
		return err
	}
	gvk, err := c.read.Served(backupKind)
	if err != nil {
		return err
	}
	spec, _, err := unstructured.NestedMap(from.Object, "spec")
	if err != nil {
		return fmt.Errorf("the spec of %s: %w", from.GetName(), err)
	}
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	made.SetGroupVersionKind(gvk)
	made.SetNamespace(key.Namespace)
	made.SetName(name)
	for _, field := range copied {
		if value, set := spec[field]; set {
			if err := unstructured.SetNestedField(made.Object, value, "spec", field); err != nil {
				return err
			}
		}
	}
	if err := c.Create(ctx, made); err != nil {
		return fmt.Errorf("make RedisBackup %s/%s: %w", key.Namespace, name, err)
	}
	return nil
}

// schedule is the one that was named, else the only one of the RedisCluster.
func (c *cluster) schedule(ctx context.Context, key client.ObjectKey, name string) (*unstructured.Unstructured, error) {
	all, err := c.read.All(ctx, scheduleKind, key.Namespace)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for i := range all {
		cluster, _, _ := unstructured.NestedString(all[i].Object, "spec", "cluster")
		if cluster == key.Name && (name == "" || name == all[i].GetName()) {
			found = append(found, &all[i])
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case name != "":
		return nil, fmt.Errorf("there is no RedisBackupSchedule %s of RedisCluster %s", name, key)
	case len(found) == 0:
		return nil, fmt.Errorf("RedisCluster %s has no RedisBackupSchedule, which says where backups go: make one, or a RedisBackup yourself",
			key)
	}
	return nil, errors.New("the RedisCluster has several RedisBackupSchedules: say which with --schedule")
}
