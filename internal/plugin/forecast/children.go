// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	helmcharts "middleware.hc.cn/operator/helm-charts"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

const statefulSet = "StatefulSet"

// children are what the chart says before and after: another pod template restarts pods, other settings are set live.
func (f *Forecast) children(c Change) error {
	files, err := fs.Sub(helmcharts.FS, "rediscluster")
	if err != nil {
		return err
	}
	loaded, err := chart.Load(files)
	if err != nil {
		return fmt.Errorf("load the chart: %w", err)
	}
	before := map[string]*unstructured.Unstructured{}
	if c.Before != nil {
		if before, err = render(loaded, c.Before, f.config(c, c.Before)); err != nil {
			return fmt.Errorf("render the chart for the RedisCluster as it is: %w", err)
		}
	}
	after, err := render(loaded, c.After, f.config(c, c.After))
	if err != nil {
		return fmt.Errorf("render the chart for the RedisCluster as it is to be: %w", err)
	}
	for name, object := range after {
		was, there := before[name]
		switch {
		case !there:
			f.Objects = append(f.Objects, name+" is made")
		case object.GetKind() == statefulSet:
			f.restarts(c, was, object)
		case !equality.Semantic.DeepEqual(was.Object, object.Object):
			f.Objects = append(f.Objects, name+" changes")
		}
	}
	for name, object := range before {
		if _, stays := after[name]; !stays && object.GetKind() != statefulSet {
			f.Objects = append(f.Objects, name+" is deleted")
		}
	}
	slices.Sort(f.Objects)
	slices.SortFunc(f.Restarts, compareNames)
	if c.Before != nil {
		f.live(f.config(c, c.Before), f.config(c, c.After), c)
	}
	f.OnDelete = len(f.Restarts) > 0 && c.After.Spec.Template().UpdateStrategy.Type == v1alpha1.OnDelete
	return nil
}

func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return slices.Compare([]byte(a), []byte(b))
}

// config is what the user's ConfigMap sets.
func (f *Forecast) config(c Change, cluster *v1alpha1.RedisCluster) map[string]string {
	name := cluster.Spec.Template().Configmap
	if name == "" {
		return nil
	}
	settings, known := c.Config[name]
	note := "the ConfigMap " + name + " could not be read, so its settings are left out"
	if !known && !slices.Contains(f.Notes, note) {
		f.Notes = append(f.Notes, note)
	}
	return settings
}

// render is the objects of the chart by kind and name, for the topology of the spec.
func render(loaded *chart.Chart, cluster *v1alpha1.RedisCluster, config map[string]string) (map[string]*unstructured.Unstructured, error) {
	v := values.Build(cluster, cluster.Spec.Topology(), redisconf.AskedFor(cluster, config), redisconf.TLSFor(cluster))
	release := chart.Release{Name: cluster.Name, Namespace: cluster.Namespace, Revision: 1, IsInstall: true}
	rendered, err := loaded.AllowStructuredValues().Render(v, release, chart.Capabilities{})
	if err != nil {
		return nil, err
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, object := range rendered.Objects {
		objects[object.GetKind()+" "+object.GetName()] = object
	}
	return objects, nil
}

// restarts are the pods of a shard that stay and get another template.
func (f *Forecast) restarts(c Change, before, after *unstructured.Unstructured) {
	was, _, _ := unstructured.NestedMap(before.Object, "spec", "template")
	is, _, _ := unstructured.NestedMap(after.Object, "spec", "template")
	shard, ours := c.After.ShardOf(after.GetName())
	if !ours || equality.Semantic.DeepEqual(was, is) {
		return
	}
	for ordinal := range min(at(c.Before.Spec.Topology(), shard), at(c.After.Spec.Topology(), shard)) {
		f.Restarts = append(f.Restarts, fmt.Sprintf("%s-%d", after.GetName(), ordinal))
	}
}

// live are the settings that running instances are told.
func (f *Forecast) live(before, after map[string]string, c Change) {
	was := map[string]string{}
	for _, s := range redisconf.AskedFor(c.Before, before) {
		was[s.Name] = s.Value()
	}
	for _, s := range redisconf.AskedFor(c.After, after) {
		value, there := was[s.Name]
		if delete(was, s.Name); !redisconf.NeedsRestart(s.Name) && (!there || !redisconf.Equal(s.Name, value, s.Value())) {
			f.Live = append(f.Live, Field{Path: s.Name, Before: value, After: s.Value()})
		}
	}
	for name, value := range was {
		if !redisconf.NeedsRestart(name) {
			f.Live = append(f.Live, Field{Path: name, Before: value})
		}
	}
	slices.SortFunc(f.Live, func(a, b Field) int { return slices.Compare([]byte(a.Path), []byte(b.Path)) })
}
