// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Options name what the Keeper works on. Its rights can be limited to exactly these names.
type Options struct {
	// Secret is where the certificates are kept, in the operator's own namespace. It is made when missing.
	Secret types.NamespacedName
	// DNSNames are the names under which the API server calls the webhooks, at least one.
	DNSNames []string
	// Configuration is the name of both the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration that are
	// told which authority to trust. One that does not exist is left alone until it appears.
	Configuration string
	Clock         clock.PassiveClock
}

// Keeper keeps the certificates valid, announces them and serves them. Every replica runs one: replicas agree through the
// Secret, whose resource version decides who writes first.
type Keeper struct {
	Options
	client client.Client
	served atomic.Pointer[tls.Certificate]
}

// NewKeeper prepares a Keeper, whose GetCertificate may be given to a server at once. Add makes it work.
func NewKeeper(o Options) *Keeper { return &Keeper{Options: o} }

// GetCertificate serves the current certificate, for tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.served.Load(); c != nil {
		return c, nil
	}
	return nil, errNotReady
}

var errNotReady = errors.New("the webhooks' certificate is not made or not announced yet")

// Ready is a readiness check: it passes once the API server was told to trust what is served.
func (k *Keeper) Ready(*http.Request) error {
	if k.served.Load() == nil {
		return errNotReady
	}
	return nil
}

// Add starts the Keeper with the manager, with watches of nothing but the named objects.
func (k *Keeper) Add(mgr ctrl.Manager) error {
	byName := func(name string) cache.ByObject {
		return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)}
	}
	// A cluster of its own, because the manager starts a cluster's cache, unlike a mere cache, without waiting for the election:
	// every replica serves webhooks, also those that do not lead.
	own, err := cluster.New(mgr.GetConfig(), func(o *cluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.Cache.ByObject = map[client.Object]cache.ByObject{
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{k.Secret.Namespace: {}},
				Field:      fields.OneTermEqualSelector("metadata.name", k.Secret.Name),
			},
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: byName(k.Configuration),
			&admissionregistrationv1.MutatingWebhookConfiguration{}:   byName(k.Configuration),
		}
	})
	if err != nil {
		return fmt.Errorf("webhook certificates: making a cache: %w", err)
	}
	if err := mgr.Add(own); err != nil {
		return fmt.Errorf("webhook certificates: adding the cache: %w", err)
	}
	// Reads go to the API server: they are rare, and a write must not be based on a stale cache.
	k.client, err =
		client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("webhook certificates: making a client: %w", err)
	}
	c, err := controller.New("webhook-certificates", mgr, controller.Options{
		Reconciler: k, MaxConcurrentReconciles: 1, NeedLeaderElection: ptr.To(false),
	})
	if err != nil {
		return fmt.Errorf("webhook certificates: %w", err)
	}
	return errors.Join(
		c.Watch(source.Func(k.first)),
		watch(c, own.GetCache(), &corev1.Secret{}, k.request()),
		watch(c, own.GetCache(), &admissionregistrationv1.ValidatingWebhookConfiguration{}, k.request()),
		watch(c, own.GetCache(), &admissionregistrationv1.MutatingWebhookConfiguration{}, k.request()),
	)
}

// first asks for the reconciliation that makes the Secret where there is none to watch yet.
func (k *Keeper) first(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(k.request())
	return nil
}

func (k *Keeper) request() reconcile.Request { return reconcile.Request{NamespacedName: k.Secret} }

func watch[T client.Object](c controller.Controller, in cache.Cache, object T, request reconcile.Request) error {
	always := func(context.Context, T) []reconcile.Request { return []reconcile.Request{request} }
	return c.Watch(source.Kind(in, object, handler.TypedEnqueueRequestsFromMapFunc(always)))
}

// Reconcile brings the Secret up to date, announces its authorities, then serves its certificate, in this order: what is served
// is always announced.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	set, recheck, err := k.keepSecret(ctx)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// Another replica was faster; its write is an event here.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := k.announce(ctx, set.Authorities); err != nil {
		return reconcile.Result{}, err
	}
	certificate, err := tls.X509KeyPair(set.Certificate, set.Key)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the serving certificate of Secret %s: %w", k.Secret, err)
	}
	k.served.Store(&certificate)
	return reconcile.Result{RequeueAfter: recheck.Sub(k.Clock.Now())}, nil
}

func (k *Keeper) keepSecret(ctx context.Context) (Set, time.Time, error) {
	secret := &corev1.Secret{}
	err := k.client.Get(ctx, k.Secret, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return Set{}, time.Time{}, fmt.Errorf("reading the webhook certificates: %w", err)
	}
	current := FromSecret(secret.Data)
	next, recheck, err := Next(k.Clock.Now(), current, k.DNSNames)
	if err != nil {
		return Set{}, time.Time{}, err
	}
	if missing {
		log.FromContext(ctx).Info("Making webhook certificates", "secret", k.Secret)
		secret.Name, secret.Namespace = k.Secret.Name, k.Secret.Namespace
		secret.Labels = map[string]string{"app.kubernetes.io/name": "middleware-operator"}
		secret.Data = next.Data()
		return next, recheck, k.client.Create(ctx, secret)
	}
	if bytes.Equal(current.Certificate, next.Certificate) && bytes.Equal(current.Authorities, next.Authorities) {
		return next, recheck, nil
	}
	log.FromContext(ctx).Info("Rotating webhook certificates", "secret", k.Secret)
	secret.Data = next.Data()
	return next, recheck, k.client.Update(ctx, secret)
}

// announce writes the authorities into both configurations, where they differ.
func (k *Keeper) announce(ctx context.Context, authorities []byte) error {
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	return errors.Join(
		k.trust(ctx, authorities, validating, func() (configs []*admissionregistrationv1.WebhookClientConfig) {
			for i := range validating.Webhooks {
				configs = append(configs, &validating.Webhooks[i].ClientConfig)
			}
			return configs
		}),
		k.trust(ctx, authorities, mutating, func() (configs []*admissionregistrationv1.WebhookClientConfig) {
			for i := range mutating.Webhooks {
				configs = append(configs, &mutating.Webhooks[i].ClientConfig)
			}
			return configs
		}),
	)
}

func (k *Keeper) trust(ctx context.Context, authorities []byte, object client.Object,
	clients func() []*admissionregistrationv1.WebhookClientConfig) error {
	err := k.client.Get(ctx, types.NamespacedName{Name: k.Configuration}, object)
	if apierrors.IsNotFound(err) {
		log.FromContext(ctx).Info("There is no webhook configuration to announce certificates to", "kind", fmt.Sprintf("%T", object), "name",
			k.Configuration)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading webhook configuration %s: %w", k.Configuration, err)
	}
	changed := false
	for _, c := range clients() {
		changed = changed || !bytes.Equal(c.CABundle, authorities)
		c.CABundle = authorities
	}
	if !changed {
		return nil
	}
	if err := k.client.Update(ctx, object); err != nil {
		return fmt.Errorf("announcing certificates to webhook configuration %s: %w", k.Configuration, err)
	}
	return nil
}
