// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

const (
	// restoreRetries is how often a pod that failed to restore is followed by another one, ever later: for ten minutes in all, and the time
	// that the pods take.
	restoreRetries = 6
	// dataDir is the directory of an instance in its pod, identityFile where the private keys are.
	dataDir, identityFile = "/data", "/etc/backup/identity/identity"
)

// restoreShards makes the Jobs and then the claims, which go with them. A claim that was there before is never touched, and keeps all
// Jobs from being made.
func (a *Actor) restoreShards(ctx context.Context, s Subject, step plan.RestoreShards) error {
	claims := make(map[int]*corev1.PersistentVolumeClaim, len(step.Shards))
	for _, shard := range step.Shards {
		claim, err := a.claimToRestore(ctx, s.Cluster, shard)
		if err != nil {
			return err
		}
		claims[shard] = claim
	}
	together, err := a.onOneNode(ctx, s.Cluster.Namespace, step.From.Store)
	if err != nil {
		return err
	}
	return each(ctx, step.Shards, func(ctx context.Context, shard int) error {
		set, err := rendered(s, shard)
		if err != nil {
			return err
		}
		job := restoreJob(s.Cluster, set, step.From, shard, a.BackupImage)
		if together {
			backupjob.Together(&job.Spec.Template.Spec, step.From.Store)
		}
		return a.fill(ctx, s.Cluster, set, shard, claims[shard], job)
	})
}

// onOneNode reports whether the claim of a store is mounted on one node at a time, and stays on one, since an archive is being written
// there: elsewhere, pods would wait for it as long as it is. Without an archive pods wait for each other, and the data of masters comes to
// different nodes.
func (a *Actor) onOneNode(ctx context.Context, namespace string, store v1alpha1.BackupStore) (bool, error) {
	if store.Claim == nil {
		return false, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := a.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: store.Claim.ClaimName}, claim); err != nil {
		return false, fmt.Errorf("read claim %s: %w", store.Claim.ClaimName, err)
	}
	if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) { // what an archive writes to cannot be mounted as ReadOnlyMany meanwhile
		return false, nil
	}
	var pods corev1.PodList
	err := a.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(backupjob.WithClaim(store)),
		client.HasLabels{v1alpha1.LabelArchive})
	if err != nil {
		return false, fmt.Errorf("list the pods that have claim %s: %w", claim.Name, err)
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending
	}), nil
}

// fill makes the claim of a shard's first instance, unless it is there, and the Job that writes into it.
func (a *Actor) fill(ctx context.Context, cluster *v1alpha1.RedisCluster, set *appsv1.StatefulSet, shard int,
	claim *corev1.PersistentVolumeClaim, job *batchv1.Job) error {
	made, err := a.existingJob(ctx, cluster, job)
	if err != nil {
		return err
	}
	if with := goesWith(claim); with != "" && (made == nil || made.UID != with) {
		return fmt.Errorf("claim %s goes with a former Job, and is about to be deleted", claim.Name)
	}
	if claim == nil && made != nil && backupjob.Ended(made) {
		return fmt.Errorf("the claim that Job %s filled is gone", made.Name) // planRestore tells of it next
	}
	if made == nil {
		made = job
		if err := a.Client.Create(ctx, made); err != nil {
			return fmt.Errorf("make Job %s: %w", made.Name, err)
		}
	}
	if claim != nil {
		return nil
	}
	claim = newClaim(cluster, set, shard, made)
	if err := a.Client.Create(ctx, claim); err != nil {
		return fmt.Errorf("make claim %s: %w", claim.Name, err)
	}
	return nil
}

// rendered is the StatefulSet that the chart renders for a shard.
func rendered(s Subject, shard int) (*appsv1.StatefulSet, error) {
	for _, child := range s.Children {
		if child.GetKind() != "StatefulSet" || child.GetName() != s.Cluster.ShardName(shard) {
			continue
		}
		set := &appsv1.StatefulSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(child.Object, set); err != nil {
			return nil, fmt.Errorf("read StatefulSet %s as rendered: %w", child.GetName(), err)
		}
		if len(set.Spec.VolumeClaimTemplates) != 1 {
			return nil, fmt.Errorf("StatefulSet %s is rendered with %d claim templates, and one is restored into", set.Name,
				len(set.Spec.VolumeClaimTemplates))
		}
		return set, nil
	}
	return nil, fmt.Errorf("no StatefulSet is rendered for shard %d", shard)
}

// claimToRestore is the claim that was made for this restore before, past every cache; nil: there is none.
func (a *Actor) claimToRestore(ctx context.Context, cluster *v1alpha1.RedisCluster, shard int) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.ClaimName(shard, 0)}
	err := a.Client.Get(ctx, key, claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read claim %s: %w", key.Name, err)
	case claim.DeletionTimestamp != nil:
		return nil, fmt.Errorf("claim %s is being deleted", key.Name)
	case claim.Annotations[v1alpha1.AnnotationRestoredFor] != string(cluster.UID):
		return nil, &StallError{Cause: "CannotRestore",
			Message: fmt.Sprintf("claim %s exists, and nothing is restored over what may be in it: delete it to restore", key.Name)}
	}
	return claim, nil
}

// existingJob is the Job that was made before in the place of this one, past every cache; nil: there is none.
func (a *Actor) existingJob(ctx context.Context, cluster *v1alpha1.RedisCluster, job *batchv1.Job) (*batchv1.Job, error) {
	found := &batchv1.Job{}
	key := client.ObjectKeyFromObject(job)
	err := a.Client.Get(ctx, key, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Job %s: %w", key.Name, err)
	case found.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the former Job %s is being deleted", key.Name)
	case !ownedBy(cluster, found) || !backupjob.For(found.Spec.Template.Spec, string(cluster.UID),
		backupjob.Of(job.Spec.Template.Spec).Args[0]):
		return nil, &StallError{Cause: "NameTaken",
			Message: fmt.Sprintf("Job %s exists and does not work for this cluster: delete it, or choose another name for the cluster", found.Name)}
	}
	return found, nil
}

// restoreJob is the Job that restores a shard. It runs where the shard's first instance may run, as the user that the instance runs as.
// What the object's author wrote becomes arguments, each of one piece, and no shell sees it.
func restoreJob(cluster *v1alpha1.RedisCluster, set *appsv1.StatefulSet, from v1alpha1.BackupLocation, shard int,
	image string) *batchv1.Job {
	labels := podLabels(cluster, "redisrestore")
	pod := podLike(set, labels)
	shards := len(cluster.Spec.Topology())
	files := cluster.BeginsFromFiles()
	if files != nil {
		shards = len(files.Shards)
	}
	args := []string{backupjob.Restore, from.Name, backupjob.Store(from), backupjob.Request(string(cluster.UID)), backupjob.Listen(),
		"--directory=" + dataDir,
		"--shard=" + strconv.Itoa(shard), "--shards=" + strconv.Itoa(shards)}
	if engine := admission.EngineVersion(cluster.Spec.Image()); engine != "" {
		args = append(args, "--engine="+engine)
	}
	if from.ManifestChecksum != "" {
		args = append(args, "--manifest-checksum="+from.ManifestChecksum)
	}
	if from.Moment != nil {
		args = append(args, "--to="+from.Moment.To(), "--consistent="+strconv.FormatBool(ptr.Deref(from.Moment.Consistent, true)))
	}
	if files != nil {
		args[1] = "files"
		for _, file := range files.Shards {
			args = append(args, "--file="+cmp.Or(file.Slots, slots.All().String())+":"+strings.Join(file.Objects, ","))
		}
	}
	args = append(args, backupjob.Rate(cluster.Restore().MaxBytesPerSecond, shards)...)
	identity := cluster.Restore().IdentitySecretName
	if identity != "" {
		args = append(args, "--identity-file="+identityFile)
	}
	backupjob.Add(&pod, image, from.Store, resources("512Mi"), args...)
	if identity != "" {
		backupjob.Mount(&pod, "identity", identity, v1alpha1.SecretKeyIdentity, identityFile)
	}
	mountClaim(&pod, cluster.ClaimName(shard, 0))
	job := jobOf(cluster, cluster.RestoreJobName(shard), labels, pod)
	job.Annotations = map[string]string{v1alpha1.AnnotationRestoredFrom: from.String()}
	job.Spec.Template.Labels = backupjob.Labels(from.Store, labels)
	return job
}

// podLabels are those of the pods of a Job.
func podLabels(cluster *v1alpha1.RedisCluster, name string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": name, "app.kubernetes.io/instance": cluster.Name, apply.ManagedByLabel: apply.ManagedByValue,
	}
}

// podLike is a pod that runs where instances may, as the user that they run as.
func podLike(set *appsv1.StatefulSet, labels map[string]string) corev1.PodSpec {
	instance := set.Spec.Template.Spec
	return corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: ptr.To(false),
		EnableServiceLinks:           ptr.To(false),
		SecurityContext:              instance.SecurityContext,
		NodeSelector:                 instance.NodeSelector, Tolerations: instance.Tolerations, Affinity: instance.Affinity,
		ImagePullSecrets: instance.ImagePullSecrets, PriorityClassName: instance.PriorityClassName,
		TopologySpreadConstraints: spread(instance.TopologySpreadConstraints, labels),
	}
}

func resources(memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
	}
}

// mountClaim gives the program the claim of an instance.
func mountClaim(pod *corev1.PodSpec, claim string) {
	pod.Volumes = append([]corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}, pod.Volumes...)
	c := backupjob.Of(*pod)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: dataDir})
}

// jobOf is a Job of a cluster.
func jobOf(cluster *v1alpha1.RedisCluster, name string, labels map[string]string, pod corev1.PodSpec) *batchv1.Job {
	own := map[string]string{v1alpha1.LabelCluster: cluster.Name} // not the pods': Services and budgets select by it
	for key, value := range labels {
		own[key] = value
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name, Labels: own,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))}},
		Spec: batchv1.JobSpec{
			BackoffLimit:         ptr.To[int32](restoreRetries),
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// spread are the constraints of the instances as those of the Jobs' pods, which decide where the volumes are: first instances become
// masters, which are to be on different nodes and in different zones. Those within a shard do not concern them.
func spread(of []corev1.TopologySpreadConstraint, labels map[string]string) []corev1.TopologySpreadConstraint {
	var constraints []corev1.TopologySpreadConstraint
	for _, c := range of {
		if c.LabelSelector != nil && c.LabelSelector.MatchLabels[v1alpha1.LabelShard] != "" {
			continue
		}
		c.LabelSelector, c.MatchLabelKeys = &metav1.LabelSelector{MatchLabels: labels}, nil
		constraints = append(constraints, c)
	}
	return constraints
}

// newClaim is the claim that the StatefulSet would make for the shard's first instance. It goes with the Job.
func newClaim(cluster *v1alpha1.RedisCluster, set *appsv1.StatefulSet, shard int, with *batchv1.Job) *corev1.PersistentVolumeClaim {
	template := set.Spec.VolumeClaimTemplates[0]
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.ClaimName(shard, 0), Labels: template.Labels,
			Annotations: map[string]string{v1alpha1.AnnotationRestoredFor: string(cluster.UID)},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: with.Name, UID: with.UID}}},
		Spec: template.Spec,
	}
}

// goesWith is the UID of the Job that a claim goes with; empty: it stays, or there is none.
func goesWith(claim *corev1.PersistentVolumeClaim) types.UID {
	if claim != nil {
		for _, owner := range claim.OwnerReferences {
			if owner.Kind == "Job" {
				return owner.UID
			}
		}
	}
	return ""
}

// keepRestored makes the claims stay when their Jobs go.
func (a *Actor) keepRestored(ctx context.Context, cluster *v1alpha1.RedisCluster, claims []string) error {
	return each(ctx, claims, func(ctx context.Context, name string) error {
		claim := &corev1.PersistentVolumeClaim{}
		if err := a.Client.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name}, claim); err != nil {
			return fmt.Errorf("read claim %s: %w", name, err)
		}
		if claim.Annotations[v1alpha1.AnnotationRestoredFor] != string(cluster.UID) || claim.DeletionTimestamp != nil {
			return fmt.Errorf("claim %s is not the one that was restored into any more", name)
		}
		with := goesWith(claim)
		if with == "" {
			return nil
		}
		patch := client.MergeFromWithOptions(claim.DeepCopy(), client.MergeFromWithOptimisticLock{})
		claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == with })
		if err := a.Client.Patch(ctx, claim, patch); err != nil {
			return fmt.Errorf("keep claim %s: %w", name, err)
		}
		return nil
	})
}

// deleteRestoreJobs deletes the Jobs with their pods.
func (a *Actor) deleteRestoreJobs(ctx context.Context, cluster *v1alpha1.RedisCluster, step plan.DeleteRestoreJobs) error {
	return each(ctx, step.Shards, func(ctx context.Context, shard int) error {
		return a.deleteJob(ctx, cluster, cluster.RestoreJobName(shard))
	})
}

// deleteJob deletes a Job of the cluster's, with its pods.
func (a *Actor) deleteJob(ctx context.Context, cluster *v1alpha1.RedisCluster, name string) error {
	found := &batchv1.Job{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: name}
	if err := a.Client.Get(ctx, key, found); err != nil || !ownedBy(cluster, found) {
		return client.IgnoreNotFound(err)
	}
	err := a.Client.Delete(ctx, found, client.Preconditions{UID: &found.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Job %s: %w", name, err)
	}
	return nil
}
