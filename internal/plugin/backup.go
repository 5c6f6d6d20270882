// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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

// ofSchedule are the fields that concern the schedule, and none of its backups.
var ofSchedule = []string{"schedule", "timeZone", "suspend", "jitter", "retention", "verify"}

// longestBackup is how long the name of a RedisBackup may be.
const longestBackup = 52

// backupName is the name of a RedisCluster, as much of it as there is room for, with the time.
func backupName(cluster string, now time.Time) string {
	at := now.UTC().Format("20060102-150405")
	return strings.TrimRight(cluster[:min(len(cluster), longestBackup-len("-")-len(at))], "-.") + "-" + at
}

// backupSpec is what a schedule says of how its backups are taken. A field that this version does not know may say more of that: a
// backup without it could be one that nobody can read, or that everybody can.
func backupSpec(schedule map[string]any) (map[string]any, error) {
	spec := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(schedule)) {
		switch {
		case slices.Contains(copied, field):
			spec[field] = schedule[field]
		case !slices.Contains(ofSchedule, field):
			return nil, fmt.Errorf("spec.%s of the RedisBackupSchedule is a field that this version of the plugin does not know: "+
				"use the plugin of the operator's version", field)
		}
	}
	return spec, nil
}

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
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			key := read.Key(namespace, arguments[0])
			if name == "" {
				name = backupName(key.Name, to.read.Now())
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
	if spec, err = backupSpec(spec); err != nil {
		return fmt.Errorf("%s: %w", from.GetName(), err)
	}
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(gvk)
	made.SetNamespace(key.Namespace)
	made.SetName(name)
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
