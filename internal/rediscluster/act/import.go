// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
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
)

// Where the program finds what leads to the server outside, and what the cluster's instances show and ask for.
const (
	sourcePasswordFile      = "/etc/import/source/password" //nolint:gosec // a path
	sourceTrustFile         = "/etc/import/trust/ca.crt"
	ownPasswordFile         = "/etc/import/own/password" //nolint:gosec // a path
	ownCertFile, ownKeyFile = "/etc/import/cert/tls.crt", "/etc/import/key/tls.key"
)

// prepareImport makes the Service and the Job of the relay, and the claim of the first instance with the Job that writes into it whom the
// instance follows. A claim that was there before is never touched, and keeps all from being made. The Service is what stays: an
// instance knows its master by an address.
func (a *Actor) prepareImport(ctx context.Context, s Subject, relayOnly bool) error {
	cluster := s.Cluster
	claim, err := a.claimToRestore(ctx, cluster, 0)
	if err != nil && !relayOnly {
		return err
	}
	set, err := rendered(s, 0)
	if err != nil {
		return err
	}
	ip, err := a.relayAddress(ctx, cluster)
	if err != nil {
		return err
	}
	relay := relayJob(cluster, set, a.BackupImage)
	found, err := a.existingJob(ctx, cluster, relay)
	if err != nil {
		return err
	}
	if found == nil {
		if err := a.Client.Create(ctx, relay); err != nil {
			return fmt.Errorf("make Job %s: %w", relay.Name, err)
		}
	}
	if relayOnly {
		return nil
	}
	return a.fill(ctx, cluster, set, 0, claim, followJob(cluster, set, ip, a.BackupImage))
}

// relayAddress is the address of the relay's Service, which is made unless it is there.
func (a *Actor) relayAddress(ctx context.Context, cluster *v1alpha1.RedisCluster) (string, error) {
	service := relayService(cluster)
	err := a.Client.Create(ctx, service)
	if apierrors.IsAlreadyExists(err) {
		service = &corev1.Service{}
		key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.ImportName()}
		if err := a.Client.Get(ctx, key, service); err != nil {
			return "", fmt.Errorf("read Service %s: %w", key.Name, err)
		}
		if !ownedBy(cluster, service) {
			return "", &StallError{Cause: "NameTaken",
				Message: fmt.Sprintf("Service %s exists and was not made for this cluster: delete it, or choose another name for the cluster",
					key.Name)}
		}
	} else if err != nil {
		return "", fmt.Errorf("make Service %s: %w", service.Name, err)
	}
	if service.DeletionTimestamp != nil || net.ParseIP(service.Spec.ClusterIP) == nil {
		return "", fmt.Errorf("service %s has no address, or is being deleted", service.Name)
	}
	return service.Spec.ClusterIP, nil
}

// relayLabels are those of the relay's pod.
func relayLabels(cluster *v1alpha1.RedisCluster) map[string]string {
	labels := podLabels(cluster, "redisimport")
	labels[v1alpha1.LabelRelay] = "true"
	return labels
}

func relayService(cluster *v1alpha1.RedisCluster) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.ImportName(), Labels: podLabels(cluster, "redisimport"),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{v1alpha1.LabelRelay: "true", "app.kubernetes.io/instance": cluster.Name},
			Ports:    []corev1.ServicePort{{Name: "redis", Port: v1alpha1.PortRedis, TargetPort: intstr.FromInt32(v1alpha1.PortRedis)}},
		},
	}
}

// sourceArguments are what the program reaches the server outside with. What the object's author wrote becomes arguments, each of one
// piece, and no shell sees it.
func sourceArguments(cluster *v1alpha1.RedisCluster) []string {
	from := cluster.Import()
	args := []string{backupjob.Request(string(cluster.UID)), "--from=" + from.Address}
	if from.User != "" {
		args = append(args, "--user="+from.User)
	}
	if from.CredentialsSecretName != "" {
		args = append(args, "--password-file="+sourcePasswordFile)
	}
	if from.TLS != nil {
		args = append(args, "--ca-file="+sourceTrustFile)
		if from.TLS.ServerName != "" {
			args = append(args, "--server-name="+from.TLS.ServerName)
		}
	}
	return args
}

// mountSource gives the program what leads to the server outside.
func mountSource(pod *corev1.PodSpec, from *v1alpha1.Import) {
	if from.CredentialsSecretName != "" {
		backupjob.Mount(pod, "source", from.CredentialsSecretName, v1alpha1.SecretKeyPassword, sourcePasswordFile)
	}
	if from.TLS != nil {
		backupjob.Mount(pod, "trust", from.TLS.CASecretName, backupjob.KeyTrusted, sourceTrustFile)
	}
}

// relayJob is the Job of the relay. Its pod is made anew for as long as the import takes.
func relayJob(cluster *v1alpha1.RedisCluster, set *appsv1.StatefulSet, image string) *batchv1.Job {
	args := append([]string{backupjob.Relay}, sourceArguments(cluster)...)
	if cluster.AuthEnabled() {
		args = append(args, "--accept-password-file="+ownPasswordFile)
	}
	if cluster.Spec.TLS != nil {
		args = append(args, "--cert-file="+ownCertFile, "--key-file="+ownKeyFile)
	}
	labels := relayLabels(cluster)
	pod := podLike(set, labels)
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	backupjob.Add(&pod, image, v1alpha1.BackupStore{}, resources("256Mi"), args...)
	c := backupjob.Of(pod)
	c.Ports = []corev1.ContainerPort{{Name: "redis", ContainerPort: v1alpha1.PortRedis, Protocol: corev1.ProtocolTCP}}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 2,
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("redis")}}}
	mountSource(&pod, cluster.Import())
	if cluster.AuthEnabled() {
		backupjob.Mount(&pod, "own", cluster.AuthSecretName(), v1alpha1.SecretKeyPassword, ownPasswordFile)
	}
	if cluster.Spec.TLS != nil {
		backupjob.Mount(&pod, "cert", cluster.Spec.TLS.SecretName, corev1.TLSCertKey, ownCertFile)
		backupjob.Mount(&pod, "key", cluster.Spec.TLS.SecretName, corev1.TLSPrivateKeyKey, ownKeyFile)
	}
	job := jobOf(cluster, cluster.ImportName(), labels, pod)
	job.Spec.BackoffLimit = ptr.To[int32](math.MaxInt32)
	job.Spec.PodReplacementPolicy = ptr.To(batchv1.TerminatingOrFailed) // two may run for a while, and a pod on a lost node holds up nothing
	return job
}

// followJob is the Job that asks the server whether it can be imported, and writes into the first instance's claim that it follows the
// relay.
func followJob(cluster *v1alpha1.RedisCluster, set *appsv1.StatefulSet, relay, image string) *batchv1.Job {
	args := append([]string{backupjob.Follow}, sourceArguments(cluster)...)
	args = append(args, "--directory="+dataDir, "--master-id="+cluster.ImportMasterID(),
		"--master="+net.JoinHostPort(relay, strconv.Itoa(int(v1alpha1.PortRedis))))
	if engine := admission.EngineVersion(cluster.Spec.Image()); engine != "" {
		args = append(args, "--engine="+engine)
	}
	labels := podLabels(cluster, "redisrestore")
	pod := podLike(set, labels)
	backupjob.Add(&pod, image, v1alpha1.BackupStore{}, resources("128Mi"), args...)
	mountSource(&pod, cluster.Import())
	mountClaim(&pod, cluster.ClaimName(0, 0))
	return jobOf(cluster, cluster.RestoreJobName(0), labels, pod)
}

// endImport deletes what was made for an import; the Jobs last, by which it is seen that there is something left.
func (a *Actor) endImport(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	service := &corev1.Service{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.ImportName()}
	err := a.Client.Get(ctx, key, service)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read Service %s: %w", key.Name, err)
	case err == nil && ownedBy(cluster, service):
		if err := a.Client.Delete(ctx, service, client.Preconditions{UID: &service.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Service %s: %w", key.Name, err)
		}
	}
	return each(ctx, []string{cluster.RestoreJobName(0), cluster.ImportName()}, func(ctx context.Context, name string) error {
		return a.deleteJob(ctx, cluster, name)
	})
}
