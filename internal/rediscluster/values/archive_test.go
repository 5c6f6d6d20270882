// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// deployments are those that a cluster with an archive becomes.
func deployments(t testing.TB, c *chart.Chart, cr *v1alpha1.RedisCluster, shards int) []*unstructured.Unstructured {
	t.Helper()
	v := values.Build(cr, v1alpha1.Topology{2, 2, 2}, redisconf.AskedFor(cr, nil), redisconf.TLSFor(cr))
	v["archive"] = values.Archive(cr, "operator:1", shards)
	rendered, err := c.Render(v, chart.Release{Name: cr.Name, Namespace: cr.Namespace, Revision: 1, IsInstall: true}, chart.Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Check(rendered, chart.Allowed{Namespace: cr.Namespace, Kinds: append(slices.Clone(kinds), "Deployment"),
		Namespaced: namespaced}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(rendered.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != "Deployment" })
}

// The pod that writes an archive has no identity in Kubernetes, no shell, and none of the labels that Services and budgets select by.
func TestArchiveGolden(t *testing.T) {
	c, cr := loadChart(t), readCluster(t, "testdata/archive.yaml")
	got, path := toYAML(t, deployments(t, c, cr, 3)), filepath.Join("testdata", "archive.golden.yaml")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("rendered objects differ from %s (-want +got); run go test with -update when that is meant:\n%s", path, diff)
	}
}

// No instance restarts for an archive, and what writes it does not for a failover.
func TestArchiveRestartsNothing(t *testing.T) {
	c, cr := loadChart(t), readCluster(t, "testdata/archive.yaml")
	with := cr.DeepCopy()
	cr.Spec.Backup = nil
	before, err := render(c, cr, cr.Spec.Topology(), nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := render(c, with, cr.Spec.Topology(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(podTemplates(before), podTemplates(after)); diff != "" {
		t.Errorf("the pod template changed with spec.backup:\n%s", diff)
	}
	was := deployments(t, c, with, 3)
	with.Status.Nodes = []v1alpha1.NodeStatus{{Name: "cache-0-1", NodeID: "a", Instance: "10.0.0.7:6379", Status: "True"}}
	if diff := cmp.Diff(was, deployments(t, c, with, 3)); diff != "" {
		t.Errorf("the Deployment changed with the instances:\n%s", diff)
	}
}

// Strings stay the arguments that they are, whatever is in them. (Admission refuses nearly all of these.)
func TestStringsOfAnArchive(t *testing.T) {
	c := loadChart(t)
	of := func(text string) appsv1.Deployment {
		cr := readCluster(t, "testdata/archive.yaml")
		cr.Spec.Backup.Store.S3 = &v1alpha1.S3Store{Bucket: text, Prefix: text, Region: text, Endpoint: text, CredentialsSecretName: text,
			CASecretName: "x" + text}
		cr.Spec.Backup.Recipients = []string{text}
		found := deployments(t, c, cr, 3)
		if len(found) != 1 {
			t.Fatalf("%q: %d Deployments", text, len(found))
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(found[0].Object, &d, true); err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := of("plain").Spec.Template.Spec
	for _, attack := range attacks {
		if attack == "\xff" || attack == "" {
			continue // no string of JSON, and none at all
		}
		got := of(attack).Spec.Template.Spec
		if len(got.Containers) != 1 || len(got.Containers[0].Args) != len(want.Containers[0].Args) || len(got.Volumes) != len(want.Volumes) ||
			!cmp.Equal(got.Containers[0].Command, want.Containers[0].Command) ||
			!cmp.Equal(got.Containers[0].SecurityContext, want.Containers[0].SecurityContext) || got.HostNetwork {
			t.Errorf("%q becomes %+v", attack, got)
		}
		if args := got.Containers[0].Args; args[len(args)-1] != "--recipient="+attack {
			t.Errorf("%q becomes the argument %q", attack, args[len(args)-1])
		}
	}
}

// An archive is of one RedisCluster, and of no other of its name.
func TestArchiveHasAPlaceOfItsOwn(t *testing.T) {
	cr := readCluster(t, "testdata/archive.yaml")
	again := cr.DeepCopy()
	again.UID, again.Spec.Backup.Archive.Keep = "another", &metav1.Duration{Duration: time.Hour}
	a, b := cr.ArchiveLocation(), again.ArchiveLocation()
	if a.Name == b.Name || a.Folder() != "production/shop/cache/" || a.Folder() != b.Folder() {
		t.Errorf("%s and %s", a, b)
	}
}

// An archive lies wherever a backup may: in a claim, whose group the platform may choose, and where a pod's identity logs in.
func TestArchiveInOtherStores(t *testing.T) {
	c := loadChart(t)
	of := func(c *chart.Chart, store v1alpha1.BackupStore) corev1.PodTemplateSpec {
		cr := readCluster(t, "testdata/archive.yaml")
		cr.Spec.Backup.Store = store
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(deployments(t, c, cr, 3)[0].Object, &d, true); err != nil {
			t.Fatal(err)
		}
		return d.Spec.Template
	}
	claim := v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: "tape"}}
	for who, c := range map[string]*chart.Chart{"operator": c, "platform": c.WithPlatformUserIDs()} {
		pod := of(c, claim).Spec
		if named := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "tape"
		}); !named || (pod.SecurityContext.FSGroup != nil) != (who == "operator") || !*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("groups by the %s: %+v, volumes %+v", who, pod.SecurityContext, pod.Volumes)
		}
	}
	azure := of(c, v1alpha1.BackupStore{Azure: &v1alpha1.AzureStore{Container: "backups"}, ServiceAccountName: "writer"})
	if azure.Spec.ServiceAccountName != "writer" || *azure.Spec.AutomountServiceAccountToken ||
		azure.Labels["azure.workload.identity/use"] != "true" {
		t.Errorf("with a pod's identity: %+v", azure)
	}
}
