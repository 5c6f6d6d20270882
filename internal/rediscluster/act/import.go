// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Where the program finds what leads to the server outside, and what the cluster's instances show and ask for.
const (
	sourcePasswordFile      = "/etc/import/source/password" //nolint:gosec // a path
	sourceTrustFile         = "/etc/import/trust/ca.crt"
	ownPasswordFile         = "/etc/import/own/password" //nolint:gosec // a path
	ownCertFile, ownKeyFile = "/etc/import/cert/tls.crt", "/etc/import/key/tls.key"
)

// prepareImport makes the Service of each shard's relay, the claim of its first instance with the Job that writes into it whom the instance
// follows, and the relays. A claim that was there before is never touched, and keeps all from being made. The Services are what stays: an
// instance knows its master by an address.
func (a *Actor) prepareImport(ctx context.Context, s Subject, step plan.PrepareImport) error {
	cluster := s.Cluster
	claims := make(map[int]*corev1.PersistentVolumeClaim, len(step.Instances))
	for _, shard := range step.Instances {
		claim, err := a.claimToRestore(ctx, cluster, shard)
		if err != nil {
			return err
		}
		claims[shard] = claim
	}
	err := each(ctx, step.Instances, func(ctx context.Context, shard int) error {
		set, err := rendered(s, shard)
		if err != nil {
			return err
		}
		ip, err := a.relayAddress(ctx, cluster, shard, true)
		if err != nil {
			return err
		}
		return a.fill(ctx, cluster, set, shard, claims[shard], followJob(cluster, set, step, shard, ip, a.BackupImage))
	})
	if err != nil {
		return err
	}
	return each(ctx, step.Relays, func(ctx context.Context, relay plan.Relay) error {
		set, err := rendered(s, relay.Shard)
		if err != nil {
			return err
		}
		if err := a.sameAddress(ctx, cluster, relay.Shard); err != nil {
			return err
		}
		job := relayJob(cluster, set, step.From, relay, a.BackupImage)
		found, err := a.existingJob(ctx, cluster, job)
		if err != nil || found != nil {
			return err
		}
		if err := a.Client.Create(ctx, job); err != nil {
			return fmt.Errorf("make Job %s: %w", job.Name, err)
		}
		return nil
	})
}

// relayAddress is the address of a relay's Service, which is made unless it is there: with the address that the shard's first instance was
// told, if it was told one. Only one that was told none can be told any.
func (a *Actor) relayAddress(ctx context.Context, cluster *v1alpha1.RedisCluster, shard int, anyAddress bool) (string, error) {
	service := relayService(cluster, shard)
	key := client.ObjectKeyFromObject(service)
	err := a.Client.Get(ctx, key, service)
	if apierrors.IsNotFound(err) {
		service = relayService(cluster, shard)
		if service.Spec.ClusterIP, err = a.toldAddress(ctx, cluster, shard); err != nil {
			return "", err
		}
		if service.Spec.ClusterIP == "" && !anyAddress {
			return "", lostAddress(cluster, "Service %s is gone, and so is Job %s, which knew its address", key.Name, cluster.RestoreJobName(shard))
		}
		err = a.Client.Create(ctx, service)
		switch lost := apierrors.IsInvalid(err) && service.Spec.ClusterIP != ""; {
		case lost && anyAddress:
			return "", &StallError{Cause: "CannotImport", Message: fmt.Sprintf(
				"Service %s is gone, and its address %s is another's now: delete Job %s to prepare the instance anew, which has not started",
				key.Name, service.Spec.ClusterIP, cluster.RestoreJobName(shard))}
		case lost:
			return "", lostAddress(cluster, "Service %s is gone, and its address %s is another's now", key.Name, service.Spec.ClusterIP)
		}
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("read or make Service %s: %w", key.Name, err)
	case !ownedBy(cluster, service):
		return "", &StallError{Cause: "NameTaken",
			Message: fmt.Sprintf("Service %s exists and was not made for this cluster: delete it, or choose another name for the cluster", key.Name)}
	case service.DeletionTimestamp != nil || net.ParseIP(service.Spec.ClusterIP) == nil:
		return "", fmt.Errorf("service %s has no address, or is being deleted", key.Name)
	}
	return service.Spec.ClusterIP, nil
}

// sameAddress makes sure that a relay is where the shard's first instance was told.
func (a *Actor) sameAddress(ctx context.Context, cluster *v1alpha1.RedisCluster, shard int) error {
	ip, err := a.relayAddress(ctx, cluster, shard, false)
	if err != nil {
		return err
	}
	told, err := a.toldAddress(ctx, cluster, shard)
	if err == nil && told != "" && told != ip {
		return lostAddress(cluster, "Service %s is at %s, and the instance was told %s", cluster.RelayName(shard), ip, told)
	}
	return err
}

func lostAddress(cluster *v1alpha1.RedisCluster, format string, args ...any) error {
	return &StallError{Cause: "CannotImport", Message: fmt.Sprintf(format, args...) +
		fmt.Sprintf(": the instances cannot follow any more; delete RedisCluster %s and its claims, and import anew", cluster.Name)}
}

// toldAddress is the address of its relay that the shard's first instance was told; empty: it was told none.
func (a *Actor) toldAddress(ctx context.Context, cluster *v1alpha1.RedisCluster, shard int) (string, error) {
	job := &batchv1.Job{}
	err := a.Client.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.RestoreJobName(shard)}, job)
	if err != nil || !ownedBy(cluster, job) || !backupjob.For(job.Spec.Template.Spec, string(cluster.UID), backupjob.Follow) {
		return "", client.IgnoreNotFound(err)
	}
	return backupjob.MasterIP(job.Spec.Template.Spec), nil
}

// relayLabels are those of the relay's pod.
func relayLabels(cluster *v1alpha1.RedisCluster, shard int) map[string]string {
	labels := podLabels(cluster, "redisimport")
	labels[v1alpha1.LabelRelay], labels[labelRelayOf] = "true", cluster.ShardName(shard)
	return labels
}

// labelRelayOf tells the relays of a cluster apart.
const labelRelayOf = "app.kubernetes.io/component"

func relayService(cluster *v1alpha1.RedisCluster, shard int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.RelayName(shard), Labels: podLabels(cluster, "redisimport"),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{v1alpha1.LabelRelay: "true", "app.kubernetes.io/instance": cluster.Name,
				labelRelayOf: cluster.ShardName(shard)},
			Ports: []corev1.ServicePort{{Name: "redis", Port: v1alpha1.PortRedis, TargetPort: intstr.FromInt32(v1alpha1.PortRedis)}},
		},
	}
}

// sourceArguments are what the program reaches the server outside with. What the object's author wrote becomes arguments, each of one
// piece, and no shell sees it.
func sourceArguments(cluster *v1alpha1.RedisCluster, from snapshot.ImportFrom) []string {
	args := []string{backupjob.Request(string(cluster.UID)), backupjob.From(from.Address)}
	if from.User != "" {
		args = append(args, "--user="+from.User)
	}
	if from.PasswordSecret != "" {
		args = append(args, "--password-file="+sourcePasswordFile)
	}
	if from.TrustSecret != "" {
		args = append(args, "--ca-file="+sourceTrustFile)
		if from.ServerName != "" {
			args = append(args, "--server-name="+from.ServerName)
		}
	}
	if from.ShownSecret != "" {
		args = append(args, backupjob.Show()...)
	}
	return args
}

// mountSource gives the program what leads to the server outside.
func mountSource(pod *corev1.PodSpec, from snapshot.ImportFrom) {
	if from.PasswordSecret != "" {
		backupjob.Mount(pod, "source", from.PasswordSecret, from.PasswordKey, sourcePasswordFile)
	}
	if from.TrustSecret != "" {
		backupjob.Mount(pod, "trust", from.TrustSecret, backupjob.KeyTrusted, sourceTrustFile)
	}
	if from.ShownSecret != "" {
		backupjob.MountShown(pod, from.ShownSecret)
	}
}

// relayJob is the Job of a relay. Its pod is made anew for as long as the import takes.
func relayJob(cluster *v1alpha1.RedisCluster, set *appsv1.StatefulSet, from snapshot.ImportFrom, relay plan.Relay,
	image string) *batchv1.Job {
	args := append([]string{backupjob.Relay}, sourceArguments(cluster, from)...)
	args = append(args, "--slots="+relay.Slots.String())
	if cluster.AuthEnabled() {
		args = append(args, "--accept-password-file="+ownPasswordFile)
	}
	if cluster.TLSMode() == v1alpha1.TLSRequired {
		args = append(args, "--cert-file="+ownCertFile, "--key-file="+ownKeyFile)
	}
	labels := relayLabels(cluster, relay.Shard)
	pod := podLike(set, labels)
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	backupjob.Add(&pod, image, v1alpha1.BackupStore{}, resources("256Mi"), args...)
	c := backupjob.Of(pod)
	c.Ports = []corev1.ContainerPort{{Name: "redis", ContainerPort: v1alpha1.PortRedis, Protocol: corev1.ProtocolTCP}}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 2,
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("redis")}}}
	mountSource(&pod, from)
	if cluster.AuthEnabled() {
		backupjob.Mount(&pod, "own", cluster.AuthSecretName(), v1alpha1.SecretKeyPassword, ownPasswordFile)
	}
	if cluster.TLSMode() == v1alpha1.TLSRequired {
		backupjob.Mount(&pod, "cert", cluster.TLSSecretName(), corev1.TLSCertKey, ownCertFile)
		backupjob.Mount(&pod, "key", cluster.TLSSecretName(), corev1.TLSPrivateKeyKey, ownKeyFile)
	}
	job := jobOf(cluster, cluster.RelayName(relay.Shard), labels, pod)
	job.Annotations = map[string]string{v1alpha1.AnnotationImportedFrom: cluster.Source()}
	job.Spec.BackoffLimit = ptr.To[int32](math.MaxInt32)
	job.Spec.PodReplacementPolicy = ptr.To(batchv1.TerminatingOrFailed) // two may run for a while, and a pod on a lost node holds up nothing
	return job
}

// followJob is the Job that asks the server whether it can be imported, and writes into the claim of a shard's first instance that it
// follows the relay.
func followJob(cluster *v1alpha1.RedisCluster, set *appsv1.StatefulSet, step plan.PrepareImport, shard int, relay,
	image string) *batchv1.Job {
	args := append([]string{backupjob.Follow}, sourceArguments(cluster, step.From)...)
	args = append(args, "--directory="+dataDir, "--master-id="+v1alpha1.ImportMasterID(cluster.UID, shard),
		backupjob.Master(net.JoinHostPort(relay, strconv.Itoa(int(v1alpha1.PortRedis)))), "--shard="+strconv.Itoa(shard))
	if step.Shards > 0 {
		args = append(args, "--shards="+strconv.Itoa(step.Shards))
	}
	if engine := admission.EngineVersion(cluster.Spec.Image()); engine != "" {
		args = append(args, "--engine="+engine)
	}
	labels := podLabels(cluster, "redisrestore")
	pod := podLike(set, labels)
	backupjob.Add(&pod, image, v1alpha1.BackupStore{}, resources("128Mi"), args...)
	mountSource(&pod, step.From)
	mountClaim(&pod, cluster.ClaimName(shard, 0))
	job := jobOf(cluster, cluster.RestoreJobName(shard), labels, pod)
	job.Annotations = map[string]string{v1alpha1.AnnotationImportedFrom: cluster.Source()}
	return job
}

// endImport deletes what was made for an import.
func (a *Actor) endImport(ctx context.Context, cluster *v1alpha1.RedisCluster, step plan.EndImport) error {
	shards := make([]int, step.Shards)
	for i := range shards {
		shards[i] = i
	}
	return each(ctx, shards, func(ctx context.Context, shard int) error {
		service := &corev1.Service{}
		key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.RelayName(shard)}
		err := a.Client.Get(ctx, key, service)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("read Service %s: %w", key.Name, err)
		case err == nil && ownedBy(cluster, service):
			if err := a.Client.Delete(ctx, service, client.Preconditions{UID: &service.UID}); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete Service %s: %w", key.Name, err)
			}
		}
		return errors.Join(a.deleteJob(ctx, cluster, cluster.RestoreJobName(shard)), a.deleteJob(ctx, cluster, cluster.RelayName(shard)))
	})
}
