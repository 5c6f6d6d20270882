// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application is a pod that uses a RedisCluster as any application would: by its
// Service and with its Secret. It runs test/load. The program is copied into a pod of an
// image that every cluster of these tests has anyway, so that no registry is needed.
package application

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// Kubernetes is where pods are.
type Kubernetes struct {
	Config *rest.Config
	Client kubernetes.Interface
}

// Execute runs a program in a container, as kubectl exec does, with an input unless that is
// nil. It returns what the program printed, without white space around it; the error tells
// what it printed too.
func (k Kubernetes) Execute(ctx context.Context, input io.Reader, namespace, pod, container string, command ...string) (string, error) {
	req := k.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdin: input != nil, Stdout: true, Stderr: true},
			scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(k.Config, "GET", req.URL().String())
	if err != nil {
		return "", err
	}
	var out, errOut bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: &out, Stderr: &errOut})
	if err != nil {
		return out.String(), fmt.Errorf("%s in %s: %w: %s%s", command[0], pod, err, out.String(), errOut.String())
	}
	return strings.TrimSpace(out.String()), nil
}
