// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/excerpt"
)

const (
	// certificateWithin is how long cert-manager's webhook may keep a cluster waiting.
	certificateWithin = 5 * time.Second
	// annotationCertificate is by which cert-manager says whose Certificate it keeps in a Secret.
	annotationCertificate = "cert-manager.io/certificate-name"
)

// applyCertificate has cert-manager make the certificate of the instances, or ends that. The Services come first: while somebody else
// has the name of one, no certificate is asked for that holds it.
func (a *Actor) applyCertificate(ctx context.Context, s Subject) error {
	ctx, cancel := context.WithTimeout(ctx, certificateWithin)
	defer cancel()
	if s.Certificate == nil {
		return a.endCertificate(ctx, s.NoCertificate)
	}
	if err := a.freeForCertificate(ctx, s.Cluster); err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	for _, child := range s.Children {
		if child.GetKind() == "Service" && !Outside(s.Cluster, child.GetName()) {
			objects = append(objects, child)
		}
	}
	if _, err := a.Applier.Apply(ctx, s.Cluster, append(objects, s.Certificate)); err != nil {
		return asStall(err)
	}
	return nil
}

// endCertificate deletes the very Certificate that was seen, and with it what cert-manager made for it, but the Secret, which may be in
// use: where that is owned by the Certificate (--enable-certificate-owner-ref), or may be, all of it stays.
func (a *Actor) endCertificate(ctx context.Context, ref *apply.Ref) error {
	if ref == nil {
		return nil
	}
	certificate := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	certificate.SetGroupVersionKind(ref.GroupVersionKind)
	var secret corev1.Secret
	err := a.Client.Get(ctx, client.ObjectKeyFromObject(certificate), &secret)
	owned := err != nil && !apierrors.IsNotFound(err) ||
		slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == ref.UID })
	propagation := client.PropagationPolicy(metav1.DeletePropagationBackground)
	if owned {
		propagation = client.PropagationPolicy(metav1.DeletePropagationOrphan)
	}
	err = a.Client.Delete(ctx, certificate, client.Preconditions{UID: &ref.UID}, propagation)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // else the next look tells
		return fmt.Errorf("delete Certificate %s: %w", ref.Name, err)
	}
	return nil
}

// freeForCertificate makes sure that a Secret over which cert-manager will write, if there is one, is meant for that, and nobody else's.
func (a *Actor) freeForCertificate(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	name := cluster.CertificateName()
	taken := func(format string, args ...any) error {
		return &StallError{Cause: "NameTaken", Message: "spec.tls.issuerRef: " + fmt.Sprintf(format, args...)}
	}
	var secret corev1.Secret
	switch err := a.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &secret); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("look for Secret %s: %w", name, err)
	}
	writer := secret.Annotations[annotationCertificate]
	switch {
	case secret.Labels[v1alpha1.LabelTLS] != "true":
		return taken("Secret %s exists, and cert-manager would write over it: delete it; or, if that is what is wanted: "+
			"kubectl label secret %s --namespace %s %s=true", name, name, cluster.Namespace, v1alpha1.LabelTLS)
	case writer == name:
		return nil // it was written for a Certificate of this name
	case writer != "":
		return taken("cert-manager keeps the certificate of Certificate %s in Secret %s: delete that Certificate, and take the annotation %s "+
			"off the Secret", excerpt.Of(writer, longestName), name, annotationCertificate)
	}
	var clusters v1alpha1.RedisClusterList
	if err := a.Client.List(ctx, &clusters, client.InNamespace(cluster.Namespace)); err != nil {
		return fmt.Errorf("list the RedisClusters: %w", err)
	}
	for i := range clusters.Items {
		other := &clusters.Items[i]
		if tls := other.Spec.TLS; other.UID != cluster.UID && tls != nil &&
			(tls.SecretName == name || tls.CASecretName == name || tls.ClientCASecretName == name) {
			return taken("RedisCluster %s uses Secret %s: name another one there", other.Name, name)
		}
	}
	return nil
}

// longestName is how much is told of a name that somebody wrote, in bytes.
const longestName = 100
