// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/read"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// restoring is what the user says of a restore.
type restoring struct {
	// backup is the RedisBackup, name that of the RedisCluster to be made, like that of the one whose spec it gets.
	backup, name, like string
	// identity is the Secret with the private keys; empty: none.
	identity string
}

func (p *program) restore() *cobra.Command {
	asked, dry := restoring{}, false
	command := &cobra.Command{
		Use:   "restore BACKUP --to NAME",
		Short: "make a new RedisCluster that begins with a backup",
		Long: "Makes a RedisCluster with the spec of the one that was backed up, and spec.bootstrap.restore of the RedisBackup. It is never one\n" +
			"that exists: look at the data in the new one, and lead clients there. The archive of the spec (spec.backup) is left out.",
		Example: "  kubectl middleware restore monday --to again -n shop --dry-run\n  kubectl middleware restore monday --to again -n shop",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			asked.backup = arguments[0]
			made, err := to.restored(command.Context(), namespace, asked)
			if err != nil {
				return err
			}
			if dry {
				p.output = "yaml"
				return p.print(made.Object, func(terminal.Page) string { return "" })
			}
			if err := to.Create(command.Context(), made); err != nil {
				return notMade(made, err)
			}
			return p.say("RedisCluster %s/%s is made; %s", namespace, asked.name,
				p.connection.typed(fmt.Sprintf("kubectl middleware status %s -n %s --watch", asked.name, namespace)))
		},
	}
	command.Flags().StringVar(&asked.name, "to", "", "name of the RedisCluster to be made")
	command.Flags().StringVar(&asked.like, "like", "", "RedisCluster whose spec it gets (default: the one that was backed up)")
	command.Flags().StringVar(&asked.identity, "identity", "", "Secret with the age private keys, for a backup that is encrypted")
	command.Flags().BoolVar(&dry, "dry-run", false, "print the manifest, and make nothing")
	_ = command.MarkFlagRequired("to") // the flag is there
	return command
}

func notMade(made *unstructured.Unstructured, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("RedisCluster %s/%s exists: a backup is restored into a new one, say another name with --to", made.GetNamespace(),
			made.GetName())
	}
	return fmt.Errorf("make RedisCluster %s/%s: %w", made.GetNamespace(), made.GetName(), err)
}

// restored is the RedisCluster to be made.
func (c *cluster) restored(ctx context.Context, namespace string, asked restoring) (*unstructured.Unstructured, error) {
	backup, err := c.read.Object(ctx, backupKind, read.Key(namespace, asked.backup))
	if err != nil {
		return nil, err
	}
	of, err := restorable(backup, asked.identity)
	if err != nil {
		return nil, fmt.Errorf("RedisBackup %s/%s: %w", namespace, asked.backup, err)
	}
	if asked.like == "" {
		asked.like = of
	}
	like, err := c.read.Object(ctx, read.RedisCluster, read.Key(namespace, asked.like))
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil, fmt.Errorf("RedisCluster %s/%s, whose spec the new one would get, is gone: name another one with --like, or write the new "+
			"one yourself, with spec.bootstrap.restore.redisBackup: %s", namespace, asked.like, asked.backup)
	}
	if err != nil {
		return nil, err
	}
	return restoredLike(like, asked)
}

// restorable is the RedisCluster that a backup is of; the error says why it cannot be restored.
func restorable(backup *unstructured.Unstructured, identity string) (of string, err error) {
	phase, _, _ := unstructured.NestedString(backup.Object, "status", "phase")
	if phase != string(v1alpha1.BackupCompleted) {
		reason, _, _ := unstructured.NestedString(backup.Object, "status", "reason")
		return "", fmt.Errorf("it is %q, and only one that is Completed can be restored: %s", phase, reason)
	}
	recipients, _, err := unstructured.NestedStringSlice(backup.Object, "spec", "recipients")
	switch {
	case err != nil:
		return "", fmt.Errorf("spec.recipients: %w", err)
	case len(recipients) > 0 && identity == "":
		return "", errors.New("it is encrypted: name the Secret with a private key with --identity")
	case len(recipients) == 0 && identity != "":
		return "", errors.New("it is not encrypted, and with --identity such a backup is refused: leave that out")
	}
	of, _, err = unstructured.NestedString(backup.Object, "spec", "cluster")
	return of, err
}

// left out of the spec: what says how a cluster begins, stops or is archived is not the new one's.
var notCopied = []string{"bootstrap", "pause", "hibernate", "backup"}

func restoredLike(like *unstructured.Unstructured, asked restoring) (*unstructured.Unstructured, error) {
	spec, _, err := unstructured.NestedMap(like.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("the spec of %s: %w", like.GetName(), err)
	}
	if spec == nil {
		spec = map[string]any{}
	}
	for _, field := range notCopied {
		delete(spec, field)
	}
	restore := map[string]any{"redisBackup": asked.backup}
	if asked.identity != "" {
		restore["identitySecretName"] = asked.identity
	}
	spec["bootstrap"] = map[string]any{"restore": restore}
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(like.GroupVersionKind())
	made.SetNamespace(like.GetNamespace())
	made.SetName(asked.name)
	return made, nil
}
