// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
)

const (
	podName   = "application"
	container = "load"
	program   = "/work/load"
	image     = "docker.io/library/redis:7.0.15"
)

// Application is a running pod.
type Application struct {
	kubernetes         Kubernetes
	namespace, cluster string
}

// Start makes the pod for the RedisCluster of that name, whose password is in secret, and
// returns when it runs. The pod goes with its namespace.
func Start(ctx context.Context, k Kubernetes, namespace, cluster, secret string) (*Application, error) {
	path, err := build(ctx, k)
	if err != nil {
		return nil, err
	}
	binary, err := os.Open(path) //nolint:gosec // built above
	if err != nil {
		return nil, err
	}
	defer binary.Close()
	if err := create(ctx, k, namespace, pod(secret)); err != nil {
		return nil, fmt.Errorf("create the application's pod: %w", err)
	}
	phase := corev1.PodPhase("")
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		pod, err := k.Client.CoreV1().Pods(namespace).Get(ctx, podName, metav1.GetOptions{})
		if err == nil {
			phase = pod.Status.Phase
		}
		return phase == corev1.PodRunning, err
	})
	if err != nil {
		return nil, fmt.Errorf("the application's pod is %s: %w", phase, err)
	}
	_, err = k.Execute(ctx, binary, namespace, podName, container, "sh", "-c", "cat >"+program+" && chmod +x "+program)
	return &Application{kubernetes: k, namespace: namespace, cluster: cluster}, err
}

// create makes the pod in place of an earlier one, which may have been told another password.
func create(ctx context.Context, k Kubernetes, namespace string, pod *corev1.Pod) error {
	pods, now := k.Client.CoreV1().Pods(namespace), int64(0)
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err == nil, err
		}
		err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return false, err
	})
}

func pod(secret string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), FSGroup: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Volumes: []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: container, Image: image, Command: []string{"sleep", "86400"},
				VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: filepath.Dir(program)}},
				Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				Env: []corev1.EnvVar{{Name: "REDIS_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "password"}}}},
			}},
		},
	}
}

var built struct {
	sync.Mutex
	path string
}

// build compiles test/load once for the architecture of the nodes. It runs in a folder of
// this module.
func build(ctx context.Context, k Kubernetes) (string, error) {
	built.Lock()
	defer built.Unlock()
	if built.path != "" {
		return built.path, nil
	}
	nodes, err := k.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("ask a node's architecture: %w", err)
	}
	if len(nodes.Items) == 0 {
		return "", errors.New("the cluster has no nodes")
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("middleware-operator-load-%d", os.Getpid()))
	//nolint:gosec // nothing of it comes from outside
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path,
		"middleware.hc.cn/operator/test/load")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+nodes.Items[0].Status.NodeInfo.Architecture)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build test/load: %w: %s", err, out)
	}
	built.path = path
	return path, nil
}

func (a *Application) execute(ctx context.Context, command ...string) (string, error) {
	return a.kubernetes.Execute(ctx, nil, a.namespace, podName, container, command...)
}

// SecuredAddress is where it finds the cluster by TLS, by a name that certificates hold.
func (a *Application) SecuredAddress(namespace string) string {
	return a.cluster + "." + namespace + ".svc:6380"
}

// Address is where an application finds the cluster.
func (a *Application) Address() string { return a.cluster + ":6379" }
