// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/plugin/forecast"
	"middleware.hc.cn/operator/internal/plugin/read"
	"middleware.hc.cn/operator/internal/plugin/terminal"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// largestFile is how much of a file is read, mostObjects how many objects it may hold.
const largestFile, mostObjects = 4 << 20, 100

func (p *program) plan() *cobra.Command {
	file := ""
	command := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "what a change of RedisClusters in a file would do; nothing is written",
		Long: "Compares the RedisClusters of a file with those of the cluster: which slots would move, which instances would come, go and\n" +
			"restart, which settings change, what is refused. The API server is asked in a dry run; moves and restarts come from the same code\n" +
			"as the operator's, of the plugin's version. For the kinds that charts run: manager render -f FILE --diff.",
		Example: "  kubectl middleware plan -f cache.yaml",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			if file == "" {
				return errors.New("which file? give -f FILE, or -f - for standard input")
			}
			objects, err := p.objectsOf(file)
			if err != nil {
				return err
			}
			return p.foretell(command.Context(), objects)
		},
	}
	p.outputs(command)
	command.Flags().StringVarP(&file, "filename", "f", "", "file with RedisClusters, - for standard input")
	return command
}

// objectsOf reads the RedisClusters of a file.
func (p *program) objectsOf(file string) ([]*unstructured.Unstructured, error) {
	input := p.In
	if file != "-" {
		opened, err := os.Open(file) //nolint:gosec // the person at the command line names it
		if err != nil {
			return nil, err
		}
		defer func() { _ = opened.Close() }() // it was read only
		input = opened
	}
	text, err := io.ReadAll(io.LimitReader(input, largestFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(text) > largestFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", file, largestFile)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		content := map[string]any{}
		err := decoder.Decode(&content)
		if errors.Is(err, io.EOF) {
			if len(all) == 0 {
				return nil, fmt.Errorf("%s holds no object", file)
			}
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if len(content) == 0 {
			continue // only comments
		}
		if len(all) == mostObjects {
			return nil, fmt.Errorf("%s holds more than %d objects", file, mostObjects)
		}
		object := &unstructured.Unstructured{Object: content}
		if object.GroupVersionKind().GroupKind() != read.RedisCluster {
			return nil, fmt.Errorf("%s holds a %s, and this is about RedisClusters: for kinds that charts run, use manager render -f FILE --diff",
				file, cmp.Or(object.GetKind(), "document without a kind"))
		}
		if object.GetName() == "" {
			return nil, fmt.Errorf("%s holds a RedisCluster without metadata.name", file)
		}
		all = append(all, object)
	}
}

func (p *program) foretell(ctx context.Context, objects []*unstructured.Unstructured) error {
	to, namespace, err := p.connection.open()
	if err != nil {
		return err
	}
	if err := p.connection.agrees(objects); err != nil {
		return err
	}
	var all []forecast.Forecast
	refused := false
	for _, object := range objects {
		object.SetNamespace(cmp.Or(object.GetNamespace(), namespace))
		change, err := to.change(ctx, object)
		if err != nil {
			return err
		}
		made, err := forecast.Of(change)
		if err != nil {
			return err
		}
		refused = refused || len(made.Refusals) > 0
		all = append(all, made)
	}
	if err := p.print(all, func(page terminal.Page) string {
		text := ""
		for i, made := range all {
			if i > 0 {
				text += "\n"
			}
			text += made.Text(page)
		}
		return text
	}); err != nil {
		return err
	}
	if refused {
		return ErrFound
	}
	return nil
}

// change is an object as it is, and as the API server would store it: what is not metadata or status takes the place of what was.
func (c *cluster) change(ctx context.Context, object *unstructured.Unstructured) (forecast.Change, error) {
	change := forecast.Change{Now: c.read.Now(), Config: map[string]map[string]string{}}
	if _, err := c.read.Served(read.RedisCluster); err != nil {
		return change, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(object), live)
	next := object
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return change, fmt.Errorf("read RedisCluster %s: %w", client.ObjectKeyFromObject(object), err)
	default:
		if change.Before, err = read.Typed(live); err != nil {
			return change, err
		}
		admission.Default(change.Before)
		next = live.DeepCopy()
		for key, value := range object.Object {
			if key != "metadata" && key != "status" {
				next.Object[key] = value
			}
		}
		next.SetLabels(over(live.GetLabels(), object.GetLabels()))
		next.SetAnnotations(over(live.GetAnnotations(), object.GetAnnotations()))
	}
	if err := c.ask(ctx, next, &change); err != nil {
		return change, err
	}
	if change.After, err = read.Typed(next); err != nil {
		return change, err
	}
	admission.Default(change.After)
	c.configs(ctx, &change)
	return change, nil
}

// noDryRun is what the API server says of a webhook that it does not call in a dry run: no refusal of the change.
var noDryRun = regexp.MustCompile(`^admission webhook "[^"]*" does not support dry run$`)

// ask lets the API server say what it would store, with its defaults, or why it would not.
func (c *cluster) ask(ctx context.Context, next *unstructured.Unstructured, change *forecast.Change) error {
	asked := next.DeepCopy()
	dry := client.NewDryRunClient(c.Client)
	verb, write := "update", func() error { return dry.Update(ctx, asked) }
	if change.Before == nil {
		verb, write = "create", func() error { return dry.Create(ctx, asked) }
	}
	err := write()
	switch {
	case err == nil:
		next.Object = asked.Object
	case apierrors.IsBadRequest(err) && noDryRun.MatchString(err.Error()):
		change.Notes = append(change.Notes, "the API server was not asked in a dry run: "+err.Error())
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		change.Refused = err.Error()
	case apierrors.IsForbidden(err):
		// A webhook of somebody else's, a policy, a quota, or the right to write.
		may, unknown := c.may(ctx, &authorizationv1.ResourceAttributes{Namespace: next.GetNamespace(), Name: next.GetName(), Verb: verb,
			Group: read.RedisCluster.Group, Resource: "redisclusters"})
		if may && unknown == nil {
			change.Refused = err.Error()
			return nil
		}
		change.Notes = append(change.Notes, "the API server was not asked in a dry run, which takes the right to write: "+err.Error())
	default:
		return fmt.Errorf("ask the API server in a dry run: %w", err)
	}
	return nil
}

func over(below, above map[string]string) map[string]string {
	all := maps.Clone(below)
	if all == nil {
		return above
	}
	maps.Copy(all, above)
	return all
}

// configs reads the ConfigMaps that hold settings; one that cannot be read is not known.
func (c *cluster) configs(ctx context.Context, change *forecast.Change) {
	for _, cluster := range []*v1alpha1.RedisCluster{change.Before, change.After} {
		if cluster == nil || cluster.Spec.Template().Configmap == "" {
			continue
		}
		var config corev1.ConfigMap
		name := cluster.Spec.Template().Configmap
		if err := c.Get(ctx, read.Key(cluster.Namespace, name), &config); err != nil {
			continue
		}
		if settings, err := redisconf.ParseConfig(config.Data["redis.conf"]); err == nil {
			change.Config[name] = settings
		}
	}
}
