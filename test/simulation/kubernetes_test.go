// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
)

func (s *simulation) create(object client.Object) {
	if err := s.kube.Create(s.t.Context(), object); err != nil {
		s.t.Fatal(err)
	}
}

func (s *simulation) labels(shard int) map[string]string {
	return map[string]string{v1alpha1.LabelCluster: s.cluster.Name, v1alpha1.LabelShard: fmt.Sprint(shard)}
}

// setUID is the UID of a shard's StatefulSet: another one has another.
func (s *simulation) setUID(shard int) types.UID {
	return types.UID(fmt.Sprintf("%d-%d", shard, s.made[shard]))
}

func (s *simulation) statefulSet(shard, replicas int) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: s.cluster.ShardName(shard), UID: s.setUID(shard),
			Labels: s.labels(shard),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "RedisCluster", Name: "c", UID: s.cluster.UID, Controller: ptr.To(true)}}},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(replicas))},
	}
}

// statefulSets makes the StatefulSets be as the chart renders them for a topology, and
// starts the pods that they ask for: what the API server and its controllers do. Dormant, they ask for none.
func (s *simulation) statefulSets(topology v1alpha1.Topology, dormant bool) {
	for shard, replicas := range topology {
		if dormant {
			replicas = 0
		}
		set := s.statefulSet(shard, int(replicas))
		if err := s.kube.Get(s.t.Context(), client.ObjectKeyFromObject(set), set); apierrors.IsNotFound(err) {
			s.sweep() // the pods of the one before go first
			s.made[shard]++
			set.UID = s.setUID(shard)
			s.create(set)
		} else if *set.Spec.Replicas != replicas {
			set.Spec.Replicas = ptr.To(replicas)
			if err := s.kube.Update(s.t.Context(), set); err != nil {
				s.t.Fatal(err)
			}
		}
		for ordinal := range int(replicas) {
			if !s.noRoom && s.find(fmt.Sprintf("%s-%d", set.Name, ordinal)) == nil {
				s.start(shard, ordinal)
			}
		}
	}
}

// sweep stops the pods that no StatefulSet asks for.
func (s *simulation) sweep() {
	var sets appsv1.StatefulSetList
	if err := s.kube.List(s.t.Context(), &sets); err != nil {
		s.t.Fatal(err)
	}
	wanted, dormant := map[string]bool{}, map[string]bool{}
	for i := range sets.Items {
		s.countReady(&sets.Items[i])
		dormant[sets.Items[i].Labels[v1alpha1.LabelShard]] = *sets.Items[i].Spec.Replicas == 0
		for ordinal := range int(*sets.Items[i].Spec.Replicas) {
			wanted[fmt.Sprintf("%s-%d", sets.Items[i].Name, ordinal)] = true
		}
	}
	s.instances = slices.DeleteFunc(s.instances, func(in *instance) bool {
		if wanted[in.pod.Name] {
			return false
		}
		s.world.Kill(in.node)
		if dormant[in.pod.Labels[v1alpha1.LabelShard]] {
			s.kept[in.pod.Name] = in.node
		}
		if err := s.kube.Delete(s.t.Context(), in.pod); err != nil {
			s.t.Fatal(err)
		}
		s.say("%s is gone", in.pod.Name)
		return true
	})
}

// countReady writes how many pods of a StatefulSet clients are led to, as its controller does.
func (s *simulation) countReady(set *appsv1.StatefulSet) {
	ready := int32(0)
	for ordinal := range int(*set.Spec.Replicas) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, ordinal)}}
		if s.kube.Get(s.t.Context(), client.ObjectKeyFromObject(pod), pod) == nil &&
			slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == v1alpha1.PodConditionServing && c.Status == corev1.ConditionTrue
			}) {
			ready++
		}
	}
	if set.Status.ReadyReplicas == ready {
		return
	}
	set.Status.ReadyReplicas = ready
	if err := s.kube.Status().Update(s.t.Context(), set); err != nil {
		s.t.Fatal(err)
	}
}

// allowsEviction refuses what a PodDisruptionBudget does not allow: one pod of the cluster may be not ready at a time.
func (s *simulation) allowsEviction(o client.Object) error {
	var pods corev1.PodList
	if err := s.kube.List(s.t.Context(), &pods, client.InNamespace(o.GetNamespace())); err != nil {
		s.t.Fatal(err)
	}
	for i := range pods.Items {
		serves := slices.ContainsFunc(pods.Items[i].Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == v1alpha1.PodConditionServing && c.Status == corev1.ConditionTrue
		})
		if !serves && pods.Items[i].Name != o.GetName() && len(pods.Items[i].Spec.ReadinessGates) > 0 {
			return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget: "+pods.Items[i].Name+
				" is not ready", 0)
		}
	}
	return nil
}

// start makes a pod with a fresh Redis, or with what the one before has left in its claim.
func (s *simulation) start(shard, ordinal int) {
	pod := s.pod(shard, ordinal)
	if node := s.kept[pod.Name]; node != nil {
		delete(s.kept, pod.Name)
		node.SetFile(s.file)
		s.world.Restart(node, pod.Status.PodIP, true)
		s.instances = append(s.instances, &instance{pod: pod, node: node})
		return
	}
	valkey, version := s.engine()
	options := redistest.NodeOptions{IP: pod.Status.PodIP, Valkey: valkey, Version: version, Settings: s.file, Config: s.authFile()}
	if s.outside != nil {
		s.outside.begin(shard, ordinal, &options)
	}
	s.instances = append(s.instances, &instance{pod: pod, node: s.world.AddNode(options)})
}

// engine is what the image of the template holds; an empty version is the default one.
func (s *simulation) engine() (valkey bool, version string) {
	if s.image == "" {
		return s.valkey, ""
	}
	name, version, _ := strings.Cut(path.Base(s.image), ":")
	return name == "valkey", version
}

// authFile is what the operator's Secret has for the file of a pod that starts; empty when there is none.
func (s *simulation) authFile() string {
	secret := &corev1.Secret{}
	if s.kube.Get(s.t.Context(), client.ObjectKey{Namespace: s.cluster.Namespace, Name: s.cluster.AuthSecretName()}, secret) != nil {
		return ""
	}
	return string(secret.Data[v1alpha1.SecretKeyConfig])
}

// render makes the template what a spec asks for.
func (s *simulation) render(cluster *v1alpha1.RedisCluster) {
	if !s.renders || cluster.Spec.Pause {
		return
	}
	s.image = cluster.Spec.Image()
	if revision := fmt.Sprint(s.image, cluster.Spec.Template().Labels); revision != s.template {
		s.retemplate(revision)
	}
}

// pod makes a running pod of the template of now.
func (s *simulation) pod(shard, ordinal int) *corev1.Pod {
	labels := s.labels(shard)
	labels[appsv1.StatefulSetRevisionLabel] = s.template + s.ports
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: fmt.Sprintf("%s-%d", s.cluster.ShardName(shard), ordinal),
			Labels: labels, UID: types.UID(fmt.Sprintf("pod-%d", s.addresses)),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: s.cluster.ShardName(shard), UID: s.setUID(shard),
					Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node%d", (shard+ordinal)%3),
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: v1alpha1.PodConditionServing}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: s.address(),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	s.addTLS(&pod.Spec)
	s.create(pod)
	return pod
}

func (s *simulation) address() string {
	s.addresses++
	return fmt.Sprintf("10.0.%d.%d", s.addresses/250, 1+s.addresses%250)
}

// restart gives a pod a new address, as a deleted pod of a StatefulSet gets.
func (s *simulation) restart(in *instance, keepsData bool) {
	s.move(in, s.address())
	s.world.Restart(in.node, in.pod.Status.PodIP, keepsData)
	s.say("restart %s at %s, data kept: %v", in.pod.Name, in.pod.Status.PodIP, keepsData)
}

// restartForgetful restarts an instance that has lost its nodes.conf, and kept its data.
func (s *simulation) restartForgetful(in *instance, moved bool) {
	if moved {
		s.move(in, s.address())
	}
	s.world.RestartForgetful(in.node, in.pod.Status.PodIP)
	s.say("restart %s at %s without its nodes.conf", in.pod.Name, in.pod.Status.PodIP)
}

// move gives a pod another address.
func (s *simulation) move(in *instance, ip string) {
	if err := s.kube.Get(s.t.Context(), client.ObjectKeyFromObject(in.pod), in.pod); err != nil {
		s.t.Fatal(err)
	}
	in.pod.Status.PodIP = ip
	in.pod.Status.Conditions =
		slices.DeleteFunc(in.pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.PodConditionServing })
	if err := s.kube.Status().Update(s.t.Context(), in.pod); err != nil {
		s.t.Fatal(err)
	}
}
