// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/standin"
)

// byHand is a StatefulSet that somebody labelled as the operator does.
func byHand(namespace, cluster, name, shard string, replicas int32) *appsv1.StatefulSet {
	labels := map[string]string{"app.kubernetes.io/managed-by": "middleware-operator", v1alpha1.LabelCluster: cluster,
		v1alpha1.LabelShard: shard}
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{
					{Name: "redis", Image: "redis",
						Command: []string{"--cluster-announce-hostname", "$(POD_NAME)." + cluster + "-nodes." + namespace + ".svc"}}}}}}}
}

// foreignObjects are what somebody else puts beside a cluster, labelled as its own.
func foreignObjects(t *testing.T, namespace string) []client.Object {
	t.Helper()
	pod := standin.NewPod(byHand(namespace, "cache", "cache-7", "7", 0), "cache-7-0", 0, "1")
	pod.OwnerReferences = nil
	objects := []client.Object{
		byHand(namespace, "cache", "cache-2000000000", "2000000000", 0), byHand(namespace, "cache", "cache-499", "499", 2), pod,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs", Labels: pod.Labels}},
	}
	for _, object := range objects {
		create(t, object)
	}
	return objects
}

// StatefulSets and pods that others made are not the cluster's, whatever their labels say: they are neither counted nor told
// anything nor deleted, and hold up neither the cluster nor its deletion.
func TestForeignObjectsDoNotCount(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionForeground, v1alpha1.DeletionBackground, v1alpha1.DeletionOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			k := startKubelet(t, namespace)
			foreign := foreignObjects(t, namespace)
			startOperator(t, namespace, k.world)
			cluster := newCluster(namespace, "cache")
			cluster.Spec.Finalizers = policy
			create(t, cluster)
			awaitWhole(t, cluster)
			if len(cluster.Status.Nodes) != 6 || cluster.Status.Replicas != 6 || len(statefulSets(t, cluster)) != 3 {
				t.Errorf("%d nodes, %d replicas, StatefulSets %v", len(cluster.Status.Nodes), cluster.Status.Replicas, statefulSets(t, cluster))
			}
			remove(t, cluster)
			awaitGone(t, cluster.DeepCopy())
			for _, object := range foreign {
				if !get(t, object) || object.GetDeletionTimestamp() != nil || len(object.GetOwnerReferences()) > 0 {
					t.Errorf("%s was touched", object.GetName())
				}
			}
		})
	}
}

// A StatefulSet that is in the way is named, and what runs in it is left alone.
func TestForeignStatefulSetIsInTheWay(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	taken := byHand(namespace, "cache", "cache-1", "1", 1)
	create(t, taken)
	startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	create(t, cluster)
	awaitStalled(t, cluster, "NameTaken", "StatefulSet "+namespace+
		"/cache-1 exists and was not made by this operator: it is left as it is; choose another name, or delete it first")
	if len(cluster.Status.Nodes) > 0 || cluster.Status.Replicas != 0 {
		t.Errorf("the instance of another is counted: %+v", cluster.Status.Nodes)
	}
	remove(t, taken) // and nobody collects its pod
	awaitPhase(t, cluster, v1alpha1.PhaseCreating, "pod cache-1-0 exists and does not belong to its StatefulSet: delete it")
	k.kill(nil, "cache-1-0")
	awaitWhole(t, cluster)
}

// collectOrphans is what the garbage collector does for --cascade=orphan: nothing names its owner any more, and then the
// finalizer goes.
func collectOrphans(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	for _, child := range children(t, cluster) {
		change(t, child, func(o client.Object) { o.SetOwnerReferences(nil) })
	}
	eventually(t, "the garbage collector's finalizer is gone", func() string {
		if !get(t, cluster) || !controllerutil.RemoveFinalizer(cluster, metav1.FinalizerOrphanDependents) {
			return ""
		}
		if err := api.Update(context.Background(), cluster); client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		return ""
	})
}

// Who deletes a cluster with --cascade=orphan keeps what runs, whatever spec.finalizers says, and whoever comes first: the
// garbage collector or the operator. Both end, and a cluster of the same name does not take over what was left.
func TestDeletedWithCascadeOrphan(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionForeground, v1alpha1.DeletionBackground, v1alpha1.DeletionOrphan} {
		for _, collectorFirst := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, collector first %v", policy, collectorFirst), func(t *testing.T) {
				t.Parallel()
				namespace := newNamespace(t)
				k := startKubelet(t, namespace)
				op := startOperator(t, namespace, k.world)
				cluster := newCluster(namespace, "cache")
				cluster.Spec.Finalizers = policy
				create(t, cluster)
				awaitWhole(t, cluster)
				pods := podUIDs(t, namespace)
				if collectorFirst {
					op.stop()
				}
				check(t, api.Delete(context.Background(), cluster.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
				if !collectorFirst {
					eventually(t, "the operator lets go", func() string {
						if get(t, cluster); controllerutil.ContainsFinalizer(cluster, v1alpha1.Finalizer) {
							return strings.Join(cluster.Finalizers, ", ")
						}
						return ""
					})
				}
				collectOrphans(t, cluster)
				if collectorFirst {
					startOperator(t, namespace, k.world)
				}
				awaitGone(t, cluster.DeepCopy())
				wantOrphans(t, cluster)
				if now := podUIDs(t, namespace); fmt.Sprint(now) != fmt.Sprint(pods) {
					t.Errorf("pods %v run on, want %v", now, pods)
				}
				again := newCluster(namespace, "cache")
				create(t, again)
				awaitStalled(t, again, "NameTaken", "was not made by this operator")
				if len(again.Status.Nodes) > 0 {
					t.Errorf("what was left behind is counted: %+v", again.Status.Nodes)
				}
				remove(t, again)
				awaitGone(t, again)
				wantOrphans(t, cluster)
			})
		}
	}
}

func podUIDs(t *testing.T, namespace string) map[string]types.UID {
	t.Helper()
	var pods corev1.PodList
	check(t, api.List(context.Background(), &pods, client.InNamespace(namespace)))
	uids := map[string]types.UID{}
	for i := range pods.Items {
		uids[pods.Items[i].Name] = pods.Items[i].UID
	}
	return uids
}
