// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe reads what a RedisCluster is: Kubernetes objects from the cache of
// children, and every instance's own view from Redis. It writes nothing.
package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/pods"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

const (
	// describeAtOnce bounds how many instances are asked at the same time.
	describeAtOnce = 16
	// redisContainer is the container of Redis in its pod; an exporter may run beside it.
	redisContainer = "redis"
)

// Observer reads.
type Observer struct {
	// Children reads pods and StatefulSets that carry the operator's label.
	Children client.Reader
	// Backups reads RedisBackups; nil: there are none.
	Backups client.Reader
	// Clusters reads RedisClusters: the operator lists them, and may not get one by one.
	Clusters client.Reader
	// Secrets reads the Secret of the password and the user's ConfigMap by name, past
	// every cache.
	Secrets client.Reader
	// Watched tells whether Secrets and ConfigMaps are as they were read; nil: nobody does.
	Watched byname.Watcher
	// Age is how old what was read by name may be where nobody tells; 0 is byname.Age.
	Age time.Duration
	// ServiceAccount is the operator's own, namespace:name, for messages about missing
	// rights.
	ServiceAccount string
	// BackupImage has the program that restores backups and writes archives; empty: not known.
	BackupImage string
	// Ask asks pods that write an archive, or restore a shard, how far they are; nil: nobody does.
	Ask backupjob.Ask
	// Redis connects to instances.
	Redis *redis.Pool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

func (o *Observer) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// Observe reads a cluster, and remembers of it what the next reconciliation needs. timeout is how long an instance may take
// to answer: one that does not, or was not asked because others took too long, is in the snapshot without its Redis view. held
// is how long instances kept the operator waiting. An error means that Kubernetes could not be read: nothing is known.
func (o *Observer) Observe(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, timeout time.Duration) (_ *snapshot.Snapshot,
	held time.Duration, _ error) {
	s := &snapshot.Snapshot{
		Formed:   meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionFormed),
		RolledAt: rolledAt(cluster),
		Scaling:  cluster.Status.Phase == v1alpha1.PhaseScaling,
		Rolling:  cluster.Status.Rollout != nil,
		Goal:     goal(cluster.Status.Migration),
		Stalled:  stalled(cluster), DataVolumes: cluster.Status.DataVolumes, PlacedOn: cluster.Status.PlacedOn,
		SlotsAssigned: cluster.Status.SlotsAssigned, Restored: cluster.Status.Restored,
		Certificate: cluster.Status.Certificate,
		Settings:    settingsOf(cluster), Refusals: refusals(cluster, o.now()),
	}
	if was := cluster.Status.TLS; was != nil {
		s.TLSStage, s.TLSMode = redisconf.TLSStageNamed(was.Stage), was.Mode
		s.ClientCertificates, s.LoadedAuthorities = was.ClientCertificates, was.Authorities
	}
	sets, err := o.shards(ctx, cluster, s)
	if err != nil {
		return nil, 0, err
	}
	s.Hibernated = hibernated(cluster, s.Shards)
	if err := o.pods(ctx, cluster, sets, s); err != nil {
		return nil, 0, err
	}
	m.noteMounted(cluster, s)
	if err := o.claims(ctx, cluster, s); err != nil {
		return nil, 0, err
	}
	if s.Backup, err = o.backup(ctx, cluster); err != nil {
		return nil, 0, err
	}
	var heldByPods time.Duration
	if s.Restore, heldByPods, err = o.restore(ctx, cluster, s, m); err != nil {
		return nil, 0, err
	}
	if s.Import, err = o.importing(ctx, cluster, s); err != nil {
		return nil, 0, err
	}
	if s.Config, err = o.config(ctx, cluster, m); err != nil {
		return nil, 0, err
	}
	if s.Auth, err = o.auth(ctx, cluster, m); err != nil {
		return nil, 0, err
	}
	if s.TLS, err = o.tls(ctx, cluster, m); err != nil {
		return nil, 0, err
	}
	s.TLS.Known = s.TLS.Known || len(s.Instances) > 0 && (!m.mounted || m.plainly)
	var heldByArchive time.Duration
	if s.Archive, heldByArchive, err = o.archive(ctx, cluster, m); err != nil {
		return nil, 0, err
	}
	var heldByGateways time.Duration
	if s.External, heldByGateways, err = o.external(ctx, cluster, s, m); err != nil {
		return nil, 0, err
	}
	if s.Auth.Known && s.TLS.Known {
		held = o.ask(ctx, cluster, m, s, timeout)
		o.askSources(ctx, cluster, m, s, timeout)
	}
	held += heldByArchive + heldByPods + heldByGateways
	m.certificate.noteLoads(s)
	m.expireRefusedPassword(s)
	s.Seen = m.noteIDs(cluster, s)
	m.noteRedirected(s, o.now())
	m.noteRoles(s, o.now())
	m.noteDisowned(s, o.now())
	return s, held, nil
}

// stalled is the cause of the stall that was told last; empty when there was none.
func stalled(cluster *v1alpha1.RedisCluster) string {
	if c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// rolledAt is when the rollout of the present spec last made progress.
func rolledAt(cluster *v1alpha1.RedisCluster) time.Time {
	if cluster.Status.Rollout == nil || cluster.Status.ObservedGeneration != cluster.Generation {
		return time.Time{}
	}
	return cluster.Status.Rollout.LastProgressTime.Time
}

// ExistingShards is how many shards a cluster has, as far as their StatefulSets say: the number of the last, and one.
func (o *Observer) ExistingShards(ctx context.Context, cluster *v1alpha1.RedisCluster) (int32, error) {
	var s snapshot.Snapshot
	if _, err := o.shards(ctx, cluster, &s); err != nil || len(s.Shards) == 0 {
		return 0, err
	}
	return int32(s.Shards[len(s.Shards)-1].Index) + 1, nil //nolint:gosec // at most 500 shards
}

// shards reads the StatefulSets, and returns their UIDs by shard. One counts by its owner and its
// name: labels are anybody's to write, and an index is believed only as far as the API goes.
func (o *Observer) shards(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) (map[int]types.UID, error) {
	var sets appsv1.StatefulSetList
	if err := o.Children.List(ctx, &sets, onlyRead(cluster)...); err != nil {
		return nil, fmt.Errorf("list the StatefulSets: %w", err)
	}
	ours := map[int]types.UID{}
	for i := range sets.Items {
		set := &sets.Items[i]
		index, named := cluster.ShardOf(set.Name)
		if !named || !metav1.IsControlledBy(set, cluster) {
			continue // what is in the way is told when the children are compared
		}
		ours[index], s.HasOwnedChildren = set.UID, true
		shard := snapshot.Shard{Index: index, Name: set.Name, UID: string(set.UID), Version: set.ResourceVersion,
			CreatedAt: set.CreationTimestamp.Time, Terminating: set.DeletionTimestamp != nil,
			UpdateRevision: set.Status.UpdateRevision, ClaimSize: claimSize(set)}
		if set.Spec.Replicas != nil {
			shard.Replicas = min(max(*set.Spec.Replicas, 0), v1alpha1.MaxReplicas) // anybody may scale it
		}
		shard.Hibernated = hibernatedBy(set)
		if set.Status.ObservedGeneration < set.Generation {
			shard.UpdateRevision, shard.Unobserved = "", true // not computed yet
		}
		s.Shards = append(s.Shards, shard)
	}
	slices.SortFunc(s.Shards, func(a, b snapshot.Shard) int { return cmp.Compare(a.Index, b.Index) })
	return ours, nil
}

func ofCluster(cluster *v1alpha1.RedisCluster) []client.ListOption {
	return []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}}
}

// onlyRead lists children of a cluster as the cache has them, without a copy: whoever lists so changes nothing in them, and keeps no part.
func onlyRead(cluster *v1alpha1.RedisCluster) []client.ListOption {
	return append(ofCluster(cluster), client.UnsafeDisableDeepCopy)
}

// pods reads the instances of the StatefulSets that are the cluster's.
func (o *Observer) pods(ctx context.Context, cluster *v1alpha1.RedisCluster, sets map[int]types.UID, s *snapshot.Snapshot) error {
	var pods corev1.PodList
	if err := o.Children.List(ctx, &pods, onlyRead(cluster)...); err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if in, ok := instance(cluster, sets, pod); ok {
			s.Instances = append(s.Instances, in)
		} else if shard, ordinal, named := cluster.InstanceOf(pod.Name); named && sets[shard] != "" && pod.DeletionTimestamp == nil {
			s.Taken = append(s.Taken, snapshot.Instance{Name: pod.Name, Shard: shard, Ordinal: ordinal})
		}
	}
	slices.SortFunc(s.Instances, func(a, b snapshot.Instance) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return nil
}

// instance reads a pod; false when it is none of the StatefulSets': what runs in another is
// switchover nothing, least of all a password. The pods of a StatefulSet that is gone are on their
// way out, or about to be adopted by its successor.
func instance(cluster *v1alpha1.RedisCluster, sets map[int]types.UID, pod *corev1.Pod) (snapshot.Instance, bool) {
	shard, ordinal, named := cluster.InstanceOf(pod.Name)
	owner := metav1.GetControllerOf(pod)
	if uid, ours := sets[shard]; !named || !ours || owner == nil || owner.Kind != "StatefulSet" || owner.UID != uid {
		return snapshot.Instance{}, false
	}
	in := snapshot.Instance{
		Name: pod.Name, UID: string(pod.UID), Shard: shard, Ordinal: ordinal,
		IP: pod.Status.PodIP, NodeName: pod.Spec.NodeName, Zone: pod.Labels[corev1.LabelTopologyZone], HostIP: pod.Status.HostIP,
		DomainName: fmt.Sprintf("%s.%s.%s.svc", pod.Name, cluster.HeadlessServiceName(), pod.Namespace),
		Ready:      pods.Ready(pod), Terminating: pod.DeletionTimestamp != nil, Waiting: cmp.Or(pods.Why(pod, redisContainer), ended(pod)),
		Revision: pod.Labels[appsv1.StatefulSetRevisionLabel], Modules: pod.Annotations[values.AnnotationModules],
	}
	readContainer(&in, pod)
	var trusted string
	trusted, in.HasCertificate = trustedSecret(pod)
	in.OtherAuthorities = in.HasCertificate && trusted != cluster.TLSClientTrustSecretName()
	in.ExporterShowsNone = in.HasCertificate && !in.TwoPorts && !exporterShows(pod)
	in.TerminationMessage = terminationMessage(pod)
	if pod.DeletionTimestamp != nil {
		in.StopBy = pod.DeletionTimestamp.Time // the API server has added the grace period
	}
	if why := pods.Why(pod); in.Waiting == "" && why != pods.Starting {
		in.SidecarFailure = cmp.Or(why, pods.Unready(pod, redisContainer))
	}
	in.Initializing = pods.Initializing(pod, redisContainer)
	in.Failing = in.Waiting != "" && in.Waiting != pods.Starting
	if pod.DeletionTimestamp == nil {
		in.Stopped, in.StoppedAt = stopped(pod)
	}
	in.Ended = over(pod)
	in.Restarts, in.LastEnd = restarts(pod)
	readGate(&in, pod)
	in.OnNode = slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "data" && v.HostPath != nil })
	in.Unplaced = slices.Contains(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: v1alpha1.SchedulingGateNode})
	return in, true
}

// ended says how a pod came to its end without a complaint, as one does that was evicted or
// whose node shut down. Its status keeps an address that has been given back: whoever has it
// now is not to be told the password.
func ended(pod *corev1.Pod) string {
	if over(pod) {
		return strings.TrimSuffix("the pod has ended: "+pod.Status.Reason, ": ")
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == redisContainer && c.State.Terminated != nil {
			return "container redis has ended"
		}
	}
	return ""
}

// over reports whether nothing of a pod runs again.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// stopped reports whether a pod's Redis is known not to run, and since when: the pod is on no node yet,
// or its kubelet says so of the container.
func stopped(pod *corev1.Pod) (yes bool, since time.Time) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != redisContainer {
			continue
		}
		ended := c.State.Terminated
		if ended == nil {
			ended = c.LastTerminationState.Terminated
		}
		if c.State.Running == nil && ended != nil {
			since = ended.FinishedAt.Time
		}
		return c.State.Running == nil, since
	}
	return pod.Spec.NodeName == "", time.Time{}
}

// restarts is how often a pod's Redis was started again, and how it ended last.
func restarts(pod *corev1.Pod) (times int32, lastEnd string) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != redisContainer {
			continue
		}
		if times = c.RestartCount; c.LastTerminationState.Terminated != nil {
			const longestReason = 40
			ended := c.LastTerminationState.Terminated
			lastEnd = fmt.Sprintf("%s, exit code %d", excerpt.Of(ended.Reason, longestReason), ended.ExitCode)
		}
	}
	return times, lastEnd
}

// readGate reads whether clients are led to the instance.
func readGate(in *snapshot.Instance, pod *corev1.Pod) {
	in.HasReadinessGate = slices.Contains(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: v1alpha1.PodConditionServing})
	for _, c := range pod.Status.Conditions {
		if c.Type == v1alpha1.PodConditionServing {
			in.InEndpoints = c.Status == corev1.ConditionTrue
			if !in.InEndpoints {
				in.RemovedFromEndpointsAt = c.LastTransitionTime.Time
			}
		}
	}
}
