// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transitions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	helmcharts "middleware.hc.cn/operator/helm-charts"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/chartkind"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
)

// renderers say what the operator makes of a stored object, by kind. Application is not among them: its template is what is made.
type renderers map[string]func(context.Context, *unstructured.Unstructured) ([]*unstructured.Unstructured, error)

// errInvalid: the operator says of an object that it is invalid.
var errInvalid = errors.New("invalid")

func newRenderers(root string) (renderers, error) {
	entries, err := watches.Load(root+"/watches.yaml", func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, err
	}
	all := renderers{}
	for _, entry := range entries {
		loaded, err := release.Load(entry)
		if err != nil {
			return nil, err
		}
		own := chartkind.For(entry.GroupVersionKind)
		in := release.Cluster{Namespaced: func(schema.GroupVersionKind) (bool, error) { return true, nil },
			Capabilities: func() (chart.Capabilities, error) {
				return chart.Capabilities{KubeVersion: "v1.37.2", APIVersions: []string{"gateway.networking.k8s.io/v1/HTTPRoute"}}, nil
			}}
		all[entry.Kind] = func(ctx context.Context, object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
			f, err := release.Foresee(ctx, object, entry, loaded, release.Options{Validate: own.Validate, Awaits: own.Awaits}, in)
			switch {
			case err != nil:
				return nil, err
			case len(f.Invalid) > 0:
				return nil, fmt.Errorf("%w: %w", errInvalid, f.Invalid.ToAggregate())
			case f.Failure != nil:
				return nil, f.Failure
			}
			return f.Rendered.Objects, nil
		}
	}
	files, err := fs.Sub(helmcharts.FS, "rediscluster")
	if err != nil {
		return nil, err
	}
	loaded, err := chart.Load(files)
	all["RedisCluster"] = func(_ context.Context, object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
		return renderRedis(loaded, object)
	}
	return all, err
}

// renderRedis renders the first shard of a cluster: the others differ in their number alone.
func renderRedis(loaded *chart.Chart, object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	cluster := &redisv1alpha1.RedisCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, cluster); err != nil {
		return nil, err
	}
	admission.Default(cluster)
	desired := plan.DesiredFor(cluster, &snapshot.Snapshot{}, plan.Options{})
	if len(desired.Problems) > 0 {
		return nil, fmt.Errorf("%w: %v", errInvalid, desired.Problems)
	}
	v := values.OneShard(values.Build(cluster, desired.Topology, redisconf.AskedFor(cluster, nil), redisconf.TLSFor(cluster)))
	rendered, err := loaded.Render(v, chart.Release{Name: cluster.Name, Namespace: cluster.Namespace, Revision: 1, IsInstall: true},
		chart.Capabilities{})
	if err != nil {
		return nil, err
	}
	return rendered.Objects, nil
}
