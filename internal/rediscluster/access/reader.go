// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Reader reads the Secrets of a RedisCluster by name.
type Reader struct {
	// Client reads past every cache: Secrets are neither listed nor watched.
	Client client.Reader
	// ServiceAccount is the operator's own, namespace:name, for messages about missing
	// rights.
	ServiceAccount string
}

// Reading is what the Secrets hold.
type Reading struct {
	// State is what the operator's own Secret holds; nil when that could not be used.
	State *State
	// Absent reports whether the operator's own Secret was seen not to exist.
	Absent bool
	// Problem says why State is nil, with a remedy; empty when Absent.
	Problem string
	// Asked is what the spec and its Secrets ask for.
	Asked Asked
	// AskedProblem says, with a remedy, which of the spec's Secrets cannot be used. Asked
	// repeats State in its place.
	AskedProblem string
	// Secret is the operator's own, for an update.
	Secret *corev1.Secret
	// Generation is the generation of the spec that was read for.
	Generation int64
}

// Read reads the operator's Secret and those that the spec names. An error means that
// nothing is known.
func (r Reader) Read(ctx context.Context, cluster *v1alpha1.RedisCluster) (Reading, error) {
	secret, problem, err := r.get(ctx, cluster.Namespace, cluster.AuthSecretName())
	if err != nil {
		return Reading{}, err
	}
	reading := Reading{Generation: cluster.Generation, Problem: problem, Absent: secret == nil && problem == ""}
	asked := Asked{Token: cluster.Spec.Auth.Rotate}
	if secret == nil {
		return r.spec(ctx, cluster, reading, asked, State{})
	}
	if why := foreign(secret, cluster); why != "" {
		// Its lines must not become configuration, nor its password a password of Redis.
		reading.Problem = why
		return reading, nil
	}
	state, edited, stale, err := parse(secret)
	if err != nil {
		reading.Problem = fmt.Sprintf("the Secret %s %v: restore them, or delete the Secret so that it is made anew", secret.Name, err)
		return reading, nil
	}
	asked.Password, asked.Stale = edited, stale
	reading.State, reading.Secret = &state, secret
	return r.spec(ctx, cluster, reading, asked, state)
}

// spec reads the Secrets that the spec names.
func (r Reader) spec(ctx context.Context, cluster *v1alpha1.RedisCluster, reading Reading, asked Asked, state State) (Reading, error) {
	asked.Users = state.Users
	if name := cluster.Spec.Auth.SecretName; name != "" && reading.Problem == "" {
		secret, problem, err := r.allowed(ctx, cluster.Namespace, "spec.auth.secretName", name)
		if err != nil {
			return Reading{}, err
		}
		asked.Password = state.Password
		if state.Next != "" {
			asked.Password = state.Next
		}
		if problem == "" {
			asked.Password, problem = givenPassword(secret, asked.Password)
		}
		reading.AskedProblem = problem
	}
	if name := cluster.Spec.Auth.ACLSecretName; name != "" && reading.Problem == "" {
		secret, problem, err := r.allowed(ctx, cluster.Namespace, "spec.auth.aclSecretName", name)
		if err != nil {
			return Reading{}, err
		}
		if problem == "" {
			if asked.Users, err = ParseUsers(secret.Data); err != nil {
				asked.Users, problem = state.Users, fmt.Sprintf("spec.auth.aclSecretName: Secret %s: %v", name, err)
			}
		}
		if reading.AskedProblem == "" {
			reading.AskedProblem = problem
		}
	} else if name == "" {
		asked.Users = nil
	}
	reading.Asked = asked
	return reading, nil
}

// Mountable says, with a remedy, why the operator's Secret may not go into pods; empty when it
// exists and was made for the cluster.
func (r Reader) Mountable(ctx context.Context, cluster *v1alpha1.RedisCluster) (problem string, err error) {
	secret, problem, err := r.get(ctx, cluster.Namespace, cluster.AuthSecretName())
	switch {
	case err != nil || problem != "":
		return problem, err
	case secret == nil:
		return fmt.Sprintf("Secret %s is gone; it is made again", cluster.AuthSecretName()), nil
	}
	return foreign(secret, cluster), nil
}

// BackupReady says, with a remedy, why a pod that takes a backup may not be given the password of BackupUser; empty when it may.
func (r Reader) BackupReady(ctx context.Context, cluster *v1alpha1.RedisCluster) (problem string, err error) {
	secret, problem, err := r.get(ctx, cluster.Namespace, cluster.AuthSecretName())
	switch {
	case err != nil || problem != "":
		return problem, err
	case secret == nil:
		return fmt.Sprintf("Secret %s is gone; it is made again", cluster.AuthSecretName()), nil
	case len(secret.Data[KeyBackup]) == 0:
		return fmt.Sprintf("Secret %s has no %s yet; it comes with the next reconciliation of RedisCluster %s, unless that is paused",
			secret.Name, KeyBackup, cluster.Name), nil
	}
	return foreign(secret, cluster), nil
}

// foreign says why a Secret of the operator's name is not its own; empty when it is.
func foreign(secret *corev1.Secret, cluster *v1alpha1.RedisCluster) string {
	if secret.Labels[v1alpha1.LabelCluster] == cluster.Name {
		return ""
	}
	return fmt.Sprintf("Secret %s exists and was not made for this cluster: delete it, or choose another name for the cluster", secret.Name)
}

// givenPassword is what the user's Secret holds, or the present password and why not.
func givenPassword(secret *corev1.Secret, present string) (password, problem string) {
	given := secret.Data[v1alpha1.SecretKeyPassword]
	if len(given) == 0 || len(given) > MaxPassword {
		return present, fmt.Sprintf("spec.auth.secretName: the key %s of Secret %s must hold 1 to %d bytes, and holds %d",
			v1alpha1.SecretKeyPassword, secret.Name, MaxPassword, len(given))
	}
	return string(given), ""
}

// allowed reads a Secret of the user's, which must carry a label: who may write
// RedisClusters may not read every Secret.
func (r Reader) allowed(ctx context.Context, namespace, path, name string) (*corev1.Secret, string, error) {
	secret, problem, err := r.get(ctx, namespace, name)
	switch {
	case err != nil || problem != "":
		return nil, problem, err
	case secret == nil:
		return nil, fmt.Sprintf("%s: Secret %s does not exist in namespace %s: create it, or remove the field", path, name, namespace), nil
	case secret.Labels[v1alpha1.LabelAuth] != "true":
		return nil, fmt.Sprintf(
			"%s: Secret %s is not meant for this: who may label it allows it with: kubectl label secret %s --namespace %s %s=true", path, name, name,
			namespace, v1alpha1.LabelAuth), nil
	}
	return secret, "", nil
}

// get reads a Secret; nil without a problem when it does not exist.
func (r Reader) get(ctx context.Context, namespace, name string) (*corev1.Secret, string, error) {
	var secret corev1.Secret
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case apierrors.IsForbidden(err):
		return nil, r.Forbidden(namespace), nil
	case err != nil:
		return nil, "", fmt.Errorf("read Secret %s: %w", name, err)
	}
	return &secret, "", nil
}

// Forbidden says how to let the operator keep Secrets in a namespace.
func (r Reader) Forbidden(namespace string) string {
	return fmt.Sprintf(
		"the operator may not keep Secrets in namespace %s; allow it with: kubectl create rolebinding middleware-operator --namespace %s --clusterrole middleware-operator-namespace --serviceaccount %s",
		namespace, namespace, r.ServiceAccount)
}
