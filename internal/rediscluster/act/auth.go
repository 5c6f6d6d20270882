// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// maxPassword is the length in bytes up to which a password is taken.
const maxPassword = 512

// createAuth makes the operator's own Secret: the password as it is, for clients, and as
// redis.conf lines, for instances. Its password is the one of spec.auth.secretName, or a
// random one.
func (a *Actor) createAuth(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	password, err := a.choosePassword(ctx, cluster)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: cluster.AuthSecretName(),
			Labels: map[string]string{apply.ManagedByLabel: apply.ManagedByValue, v1alpha1.LabelCluster: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			v1alpha1.SecretKeyPassword: []byte(password),
			v1alpha1.SecretKeyConfig:   []byte(authConfig(password)),
		},
	}
	err = a.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return &StallError{Cause: "NameTaken", Message: fmt.Sprintf("Secret %s exists and was not made for this cluster: delete it, or choose another name for the cluster", secret.Name)}
	}
	if err != nil {
		return fmt.Errorf("create the Secret of the password: %w", err)
	}
	return nil
}

func (a *Actor) choosePassword(ctx context.Context, cluster *v1alpha1.RedisCluster) (string, error) {
	name := cluster.Spec.Auth.SecretName
	if name == "" {
		return rand.Text(), nil
	}
	var secret corev1.Secret
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return "", &StallError{Cause: "PasswordUnavailable", Message: fmt.Sprintf("spec.auth.secretName: Secret %s does not exist in namespace %s: create it with the key %s, or remove the field", name, cluster.Namespace, v1alpha1.SecretKeyPassword)}
	}
	if err != nil {
		return "", fmt.Errorf("read Secret %s: %w", name, err)
	}
	if secret.Labels[v1alpha1.LabelAuth] != "true" {
		return "", &StallError{Cause: "PasswordUnavailable", Message: fmt.Sprintf("spec.auth.secretName: Secret %s is not meant for this: who may label it allows it with: kubectl label secret %s --namespace %s %s=true", name, name, cluster.Namespace, v1alpha1.LabelAuth)}
	}
	password := secret.Data[v1alpha1.SecretKeyPassword]
	if len(password) == 0 || len(password) > maxPassword {
		return "", &StallError{Cause: "PasswordUnavailable", Message: fmt.Sprintf("spec.auth.secretName: the key %s of Secret %s must hold 1 to %d bytes, and holds %d", v1alpha1.SecretKeyPassword, name, maxPassword, len(password))}
	}
	return string(password), nil
}

// authConfig is the password as redis.conf lines. Whatever bytes the password holds, they
// stay one argument.
func authConfig(password string) string {
	quoted := values.Quote(password)
	return "requirepass " + quoted + "\nmasterauth " + quoted + "\n"
}
