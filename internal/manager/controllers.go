// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/operator-lib/proxy"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	helmcharts "middleware.hc.cn/operator/helm-charts"
	"middleware.hc.cn/operator/internal/application"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/chartkind"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redisbackup"
	"middleware.hc.cn/operator/internal/redisbackup/schedule"
	"middleware.hc.cn/operator/internal/rediscluster"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/shards"
	"middleware.hc.cn/operator/internal/upgradeable"
	"middleware.hc.cn/operator/internal/watches"
)

// wiring is what a controller is made of.
type wiring struct {
	mgr      ctrl.Manager
	children cache.Cache
	options  Options
	env      Environment
	// shards divides objects among replicas; nil: the leader has all.
	shards *shards.Gate
	leases *leases
	// platformUserIDs: pods get their user IDs from the platform.
	platformUserIDs bool
}

// controller is one row of the table of controllers.
type controller struct {
	// name is what --controllers and --max-concurrent-reconciles call it.
	name string
	gvk  schema.GroupVersionKind
	add  func(w wiring, concurrency int) error
	// reach are the namespaces besides their own in which resources of the kind may have objects; "*" is all.
	reach []string
	// admission reports whether the webhooks have rules for the kind.
	admission bool
	// optional reports whether the operator runs without this controller if its CRD is not installed.
	optional bool
}

// controllers returns the selected controllers: the Go kinds first, then the chart kinds in the order of the watches file.
func (o Options) controllers(env Environment) ([]controller, error) {
	table := []controller{
		{name: "rediscluster", gvk: redisv1alpha1.GroupVersion.WithKind("RedisCluster"), add: addRedisCluster, admission: true},
		{name: "application", gvk: applicationv1.GroupVersion.WithKind("Application"), add: addApplication, admission: true},
	}
	for i := range table { // those that the selection does not name
		table[i].optional = !slices.Contains(o.Controllers, table[i].name)
	}
	charts, err := chartControllers(o.WatchesFile, env)
	if err != nil {
		return nil, err
	}
	table = distinguish(append(table, charts...))
	if err := o.Concurrency.unknown(names(table)); err != nil {
		return nil, err
	}
	selected, err := Select(o.Controllers, names(table))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(table, func(c controller) bool { return !slices.Contains(selected, c.name) }), nil
}

// distinguish gives kinds of the same name their group (application.apps.example.com), all but the first.
func distinguish(table []controller) []controller {
	taken := map[string]bool{}
	for i := range table {
		if taken[table[i].name] {
			table[i].name += "." + table[i].gvk.Group
		}
		taken[table[i].name] = true
	}
	return table
}

func addRedisCluster(w wiring, concurrency int) error {
	files, err := fs.Sub(helmcharts.FS, "rediscluster")
	if err != nil {
		return err
	}
	loaded, err := chart.Load(files)
	if err != nil {
		return err
	}
	image := w.options.RedisCluster.BackupImage
	if image == "" {
		if image, err = ownImage(w.mgr, w.env); err != nil {
			return err
		}
	}
	backups, err := addRedisBackup(w, image)
	if err != nil {
		return err
	}
	err = rediscluster.Add(w.mgr, w.children, rediscluster.Options{
		Backups:                 backups,
		BackupImage:             image,
		Chart:                   w.told(loaded),
		Redis:                   redis.NewPool(redis.Options{}),
		PollInterval:            w.options.RedisCluster.PollInterval,
		InstanceMetrics:         w.options.RedisCluster.InstanceMetrics,
		CreateTimeout:           w.options.RedisCluster.CreateTimeout,
		UpgradeTimeout:          w.options.RedisCluster.UpgradeTimeout,
		Shards:                  w.shards,
		Turns:                   w.turns(),
		Waves:                   w.options.RedisCluster.waves(),
		Version:                 BuildInfo().Version,
		SyncPeriod:              w.options.SyncPeriod,
		MaxConcurrentReconciles: concurrency,
		AllowHostPath:           w.options.AllowHostPath,
		ServiceAnnotations:      w.options.ServiceAnnotationDomains,
		ClusterIssuers:          w.options.ClusterIssuers,
		ClusterDomain:           w.options.clusterDomain(w.env),
		ServiceAccount:          w.env.serviceAccount(),
	})
	if err != nil {
		return err
	}
	return addUpgradeable(w)
}

// addRedisBackup adds the controller of RedisBackups, if their CRD is installed, and reports whether it did.
func addRedisBackup(w wiring, image string) (bool, error) {
	backup := redisv1alpha1.GroupVersion.WithKind("RedisBackup")
	_, err := w.mgr.GetRESTMapper().RESTMapping(backup.GroupKind(), backup.Version)
	if meta.IsNoMatchError(err) {
		w.mgr.GetLogger().Info("No backups are taken: the CRD of RedisBackups is not installed")
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = redisbackup.Add(w.mgr, w.children, redisbackup.Options{
		Image: image, ServiceAccount: w.env.serviceAccount(), PlatformUserIDs: w.platformUserIDs, Shards: w.shards})
	if err != nil {
		return false, err
	}
	return true, addRedisBackupSchedule(w)
}

// addRedisBackupSchedule adds the controller of RedisBackupSchedules, if their CRD is installed.
func addRedisBackupSchedule(w wiring) error {
	of := redisv1alpha1.GroupVersion.WithKind("RedisBackupSchedule")
	_, err := w.mgr.GetRESTMapper().RESTMapping(of.GroupKind(), of.Version)
	if meta.IsNoMatchError(err) {
		w.mgr.GetLogger().Info("No backups are taken by schedules: the CRD of RedisBackupSchedules is not installed")
		return nil
	}
	if err != nil {
		return err
	}
	return schedule.Add(w.mgr, schedule.Options{Selector: w.options.selector(), Shards: w.shards})
}

// ownImage is that of the operator's pod; empty outside of a cluster, or when it may not be read.
func ownImage(mgr ctrl.Manager, env Environment) (string, error) {
	const within = 10 * time.Second
	name := env.Get("POD_NAME")
	if name == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var pod corev1.Pod
	err := mgr.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: env.namespace(), Name: name}, &pod)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		mgr.GetLogger().Info("No backups are taken or restored: the operator's own image is not known", "error", err.Error())
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the operator's own pod: %w", err)
	}
	for _, c := range pod.Spec.Containers {
		if c.Name == "manager" || len(pod.Spec.Containers) == 1 {
			return c.Image, nil
		}
	}
	return "", nil
}

// addUpgradeable tells OLM when it may replace the operator, if OLM is what installed it. Not to be able to is no reason not to run.
func addUpgradeable(w wiring) error {
	if w.env.Get(upgradeable.Variable) == "" {
		return nil
	}
	condition, err := upgradeable.InCluster(w.mgr)
	if err != nil {
		w.mgr.GetLogger().Info("OLM is not told when the operator may be upgraded", "error", err.Error())
		return nil
	}
	return upgradeable.Add(w.mgr, upgradeable.Options{Limits: upgradeable.DefaultLimits(), Condition: condition, Now: time.Now})
}

func addApplication(w wiring, concurrency int) error {
	return application.Add(w.mgr, w.children, application.Options{MaxConcurrentReconciles: concurrency, SyncPeriod: w.options.SyncPeriod,
		Shards: w.shards})
}

// chartControllers returns one controller for each entry of a watches file.
func chartControllers(path string, env Environment) ([]controller, error) {
	entries, err := watches.Load(path, env)
	if err != nil {
		return nil, err
	}
	var table []controller
	for _, entry := range entries {
		table = append(table, controller{
			name:      strings.ToLower(entry.Kind),
			gvk:       entry.GroupVersionKind,
			add:       func(w wiring, concurrency int) error { return addChart(w, entry, concurrency) },
			reach:     entry.Allow.Namespaces,
			admission: chartkind.For(entry.GroupVersionKind).Validate != nil,
		})
	}
	return table, nil
}

func addChart(w wiring, entry watches.Watch, concurrency int) error {
	loaded, err := release.Load(entry)
	if err != nil {
		return err
	}
	kind := chartkind.For(entry.GroupVersionKind)
	return release.Add(w.mgr, w.children, entry, w.told(loaded), release.Options{
		MaxConcurrentReconciles: concurrency,
		MaxHistory:              w.options.MaxReleaseHistory,
		ReconcilePeriod:         w.options.ReconcilePeriod,
		SyncPeriod:              w.options.SyncPeriod,
		Proxy:                   proxy.ReadProxyVarsFromEnv(),
		Validate:                kind.Validate,
		StatusExtras:            kind.StatusExtras,
		Awaits:                  kind.Awaits,
		Waves:                   w.options.RedisCluster.waves(),
		Turns:                   w.turns(),
		ServiceAccount:          w.env.serviceAccount(),
		Shards:                  w.shards,
	})
}

func names(controllers []controller) []string {
	var names []string
	for _, c := range controllers {
		names = append(names, c.name)
	}
	return names
}
