// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/redis/hostile"
	"middleware.hc.cn/operator/test/process"
)

const (
	hostileRepository = "middleware.hc.cn/hostile"
	hostileVersion    = "7.4.0"
	silentClusters    = 8
	// introducedWithin is how long the operator has to make with its neighbours before the first kill.
	introducedWithin = 90 * time.Second
)

// harm is what killed masters cost alone and beside neighbours that mean harm.
type harm struct {
	Alone  *killed `json:"alone"`
	Beside *killed `json:"beside"`
	// Restarts of the operator's container, and its peak of resident memory in MB (10⁶ bytes).
	Restarts int32   `json:"restarts"`
	PeakMB   float64 `json:"peakMB"`
}

// neighbours kills masters of a cluster, first alone, then beside clusters of another namespace whose author means harm.
func (s *subject) neighbours(ctx context.Context, f *figures) error {
	if !process.Local() {
		return errors.New("only processes of the local cluster can be killed from here")
	}
	if err := s.fill(ctx, f); err != nil {
		return err
	}
	f.Harm = &harm{}
	before, err := s.operatorPod(ctx)
	if err != nil {
		return err
	}
	if f.Harm.Alone, err = s.killMasters(ctx); err != nil {
		return err
	}
	namespace, err := s.makeNamespace(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err := s.removeNamespace(context.WithoutCancel(ctx), namespace); err != nil {
			progress("remove namespace %s: %v", namespace, err)
		}
	}()
	if err := s.meanHarm(ctx, namespace); err != nil {
		return err
	}
	if err := pause(ctx, introducedWithin); err != nil {
		return err
	}
	if f.Harm.Beside, err = s.killMasters(ctx); err != nil {
		return err
	}
	return f.Harm.readOperator(ctx, s.kube, before)
}

// meanHarm makes what an author of one namespace can make: clusters that are silent, one for each hostile reply, one as large as
// admission lets pass, and a StatefulSet that looks like a cluster's.
func (s *subject) meanHarm(ctx context.Context, namespace string) error {
	var objects []client.Object
	for i := range silentClusters {
		objects = append(objects, hostileCluster(namespace, fmt.Sprint("silent-", i), hostile.Silent, 3, 3))
	}
	for i, kind := range hostile.Kinds() {
		objects = append(objects, hostileCluster(namespace, fmt.Sprint("hostile-", i), kind, 3, 3))
	}
	objects = append(objects, foreignSet(namespace, "silent-0"), huge(namespace))
	for _, object := range objects {
		if err := s.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// hostileCluster is one whose image is no Redis.
func hostileCluster(namespace, name string, kind hostile.Kind, shards, instances int32) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RedisClusterSpec{
			Repository: hostileRepository, Version: hostileVersion, Shards: ptr.To(shards), Replicas: ptr.To(instances),
			Finalizers: v1alpha1.DeletionBackground,
			Pod: []v1alpha1.PodTemplate{{
				Volumes: &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir},
				Env:     []corev1.EnvVar{{Name: "HOSTILE", Value: string(kind)}},
			}},
		},
	}
}

// foreignSet is a StatefulSet that nobody but its labels and its name says to be a cluster's.
func foreignSet(namespace, cluster string) *appsv1.StatefulSet {
	const shard = "2000000000"
	labels := map[string]string{apply.ManagedByLabel: apply.ManagedByValue, v1alpha1.LabelCluster: cluster, v1alpha1.LabelShard: shard}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + "-" + shard, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "redis", Image: hostileRepository + ":" + hostileVersion}}},
			},
		},
	}
}

// huge is the largest cluster of 50 shards that admission lets pass. No node takes its pods.
func huge(namespace string) *v1alpha1.RedisCluster {
	const most = 1000
	cluster := hostileCluster(namespace, "huge", hostile.Silent, 50, 50)
	cluster.Spec.Pod[0].NodeSelector = map[string]string{"no": "node"}
	for i := range most {
		before := cluster.DeepCopy()
		cluster.Spec.Pod[0].Tolerations = append(cluster.Spec.Pod[0].Tolerations, corev1.Toleration{
			Key: fmt.Sprint("t", i), Operator: corev1.TolerationOpEqual, Value: strings.Repeat("v", 60), Effect: corev1.TaintEffectNoExecute})
		checked := cluster.DeepCopy()
		admission.Default(checked)
		if len(admission.Validate(checked, admission.Options{})) > 0 {
			return before
		}
	}
	return cluster
}

// operatorPod is the pod of the operator.
func (k kube) operatorPod(ctx context.Context) (*corev1.Pod, error) {
	var list corev1.PodList
	err := k.List(ctx, &list, client.InNamespace(operatorNamespace), client.MatchingLabels{"app.kubernetes.io/name": "middleware-operator"})
	if err != nil {
		return nil, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%d pods of the operator, want one", len(list.Items))
	}
	return &list.Items[0], nil
}

// readOperator reads how often the operator restarted, and the most memory that it ever had.
func (h *harm) readOperator(ctx context.Context, k kube, before *corev1.Pod) error {
	pod, err := k.operatorPod(ctx)
	if err != nil {
		return err
	}
	for _, c := range pod.Status.ContainerStatuses {
		h.Restarts += c.RestartCount
	}
	if pod.UID != before.UID {
		h.Restarts++
	} else {
		for _, c := range before.Status.ContainerStatuses {
			h.Restarts -= c.RestartCount
		}
	}
	found, err := process.Find("manager", string(pod.UID))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d processes of the operator: %w", len(found), err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", found[0]))
	if err != nil {
		return err
	}
	h.PeakMB, err = peak(string(status))
	return err
}

// peak reads VmHWM from a /proc/PID/status (proc(5)), in MB.
func peak(status string) (float64, error) {
	for line := range strings.Lines(status) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kib * 1024 / 1e6, err
		}
	}
	return 0, errors.New("/proc/PID/status lacks VmHWM")
}

// p99 of a sorted list.
func p99(sorted []float64) float64 { return sorted[min(int(0.99*float64(len(sorted))), len(sorted)-1)] }

// harmLines are the report's lines about neighbours.
func (f figures) harmLines() string {
	if f.Harm == nil || f.Harm.Alone == nil || f.Harm.Beside == nil {
		return ""
	}
	shard := func(k kill) float64 { return k.Shard }
	alone, beside := f.Harm.Alone.times(shard), f.Harm.Beside.times(shard)
	if len(alone) == 0 || len(beside) == 0 {
		return ""
	}
	line := func(who string, k *killed, times []float64, ratio, operator string) string {
		return fmt.Sprintf("| %s %s | %s | %s | %s | %s | %d | %d | %d | %s |\n", name(f.Engine), f.Engine.Version, who, k.count(),
			quantiles(times, "%.2f s"), ratio,
			k.Plain.Writes+k.Replicated.Writes, k.Plain.Failed+k.Replicated.Failed, k.Plain.Lost+k.Replicated.Lost, operator)
	}
	return line("none", f.Harm.Alone, alone, "1", "– | –") +
		line(fmt.Sprintf("%d silent clusters, %d that answer with harm, a huge one, a foreign StatefulSet", silentClusters, len(hostile.Kinds())),
			f.Harm.Beside, beside,
			fmt.Sprintf("%.2f ×", p99(beside)/p99(alone)), fmt.Sprintf("%d | %.0f MB", f.Harm.Restarts, f.Harm.PeakMB))
}
