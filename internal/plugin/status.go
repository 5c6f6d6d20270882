// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/internal/plugin/overview"
	"middleware.hc.cn/operator/internal/plugin/read"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// leastInterval keeps a watch from asking all the time.
const leastInterval = time.Second

func (p *program) status() *cobra.Command {
	everywhere, watch, interval := false, false, 2*time.Second
	command := &cobra.Command{
		Use:   "status [NAME | KIND/NAME]",
		Short: "a RedisCluster as a tree, or a list of all kinds",
		Long: "Shows a RedisCluster: shards with their instances and slots, what the operator does next, what is wrong and what to type.\n" +
			"Without a name it lists the objects of all kinds. What you may not read is left out, and said.",
		Example: "  kubectl middleware status\n  kubectl middleware status cache -n shop --watch\n  kubectl middleware status app/web -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			if watch && p.output != "" && p.output != "text" {
				return errors.New("--watch is for people: without -o")
			}
			show, err := p.shower(arguments, everywhere)
			if err != nil {
				return err
			}
			if !watch {
				return show(command.Context(), p.print)
			}
			return p.watch(command.Context(), max(interval, leastInterval), show)
		},
		ValidArgsFunction: p.completeClusters,
	}
	p.outputs(command)
	command.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list the objects of all namespaces")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show it anew until you interrupt it")
	command.Flags().DurationVar(&interval, "interval", interval, "how often --watch looks")
	return command
}

// printer prints a model.
type printer func(model any, text func(terminal.Page) string) error

// shower reads and prints what the arguments name.
func (p *program) shower(arguments []string, everywhere bool) (func(context.Context, printer) error, error) {
	to, namespace, err := p.connection.open()
	if err != nil {
		return nil, err
	}
	if len(arguments) == 0 {
		if everywhere {
			namespace = ""
		}
		return func(ctx context.Context, print printer) error {
			seen, err := to.read.List(ctx, namespace)
			if err != nil {
				return err
			}
			list := overview.ListOf(seen)
			return print(list, func(page terminal.Page) string { return list.Text(page, seen.Now) })
		}, nil
	}
	if everywhere {
		return nil, errors.New("--all-namespaces is for the list: name an object's namespace with -n")
	}
	kind, name, err := kindOf(arguments[0])
	if err != nil {
		return nil, err
	}
	if kind == read.RedisCluster {
		return func(ctx context.Context, print printer) error {
			seen, err := to.read.Cluster(ctx, read.Key(namespace, name))
			if err != nil {
				return err
			}
			model := p.connection.overview(seen)
			return print(model, func(page terminal.Page) string { return model.Text(page, seen.Now) })
		}, nil
	}
	return func(ctx context.Context, print printer) error {
		object, err := to.read.Object(ctx, kind, read.Key(namespace, name))
		if err != nil {
			return err
		}
		model := overview.ObjectOf(object)
		return print(model, func(page terminal.Page) string { return model.Text(page, to.read.Now()) })
	}, nil
}

// overview is the model of a RedisCluster whose commands to type act in the same cluster.
func (c *connection) overview(seen overview.Seen) overview.Cluster {
	model := overview.Of(seen)
	for i, finding := range model.Findings {
		if finding.Type != "" {
			model.Findings[i].Type = c.typed(finding.Type)
		}
	}
	return model
}

// kindOf is the kind and the name of an argument.
func kindOf(argument string) (schema.GroupKind, string, error) {
	word, name, err := named(argument)
	if err != nil {
		return schema.GroupKind{}, "", err
	}
	var known []string
	for _, kind := range read.Kinds {
		singular := strings.ToLower(kind.Kind)
		known = append(known, singular)
		word, _, _ := strings.Cut(strings.ToLower(word), ".")
		if word == singular || word == singular+"s" || kind == read.RedisCluster && word == "rec" {
			return kind, name, nil
		}
	}
	return schema.GroupKind{}, "", fmt.Errorf("%q is none of the kinds: %s", word, strings.Join(known, ", "))
}

// watch shows it again and again. On a terminal each picture takes the place of the last.
func (p *program) watch(ctx context.Context, interval time.Duration, show func(context.Context, printer) error) error {
	for {
		var text string
		err := show(ctx, func(_ any, render func(terminal.Page) string) error {
			text = render(p.page())
			return nil
		})
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // interrupted
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			return err
		case err != nil:
			text = "cannot look: " + terminal.Clean(err.Error()) + "\n"
		}
		clear := "\n"
		if p.page().Colour {
			clear = "\x1b[H\x1b[2J"
		}
		if _, err := fmt.Fprint(p.Out, clear, time.Now().Format(time.TimeOnly), "\n", text); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// completeInstances completes the name of a RedisCluster, then that of one of its instances of a role (a type of the status; empty: any).
func (p *program) completeInstances(role string) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(arguments) != 1 {
			return p.completeClusters(command, arguments, typed)
		}
		to, namespace, err := p.connection.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		object, err := to.read.Object(command.Context(), read.RedisCluster, read.Key(namespace, arguments[0]))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		if cluster, err := read.Typed(object); err == nil {
			for _, node := range cluster.Status.Nodes {
				if _, _, is := cluster.InstanceOf(node.Name); is && (role == "" || node.Type == role) {
					names = append(names, node.Name)
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeClusters completes the names of RedisClusters.
func (p *program) completeClusters(command *cobra.Command, arguments []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	to, namespace, err := p.connection.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	objects, err := to.read.All(command.Context(), read.RedisCluster, namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range objects {
		names = append(names, objects[i].GetName())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
