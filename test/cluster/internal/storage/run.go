// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"middleware.hc.cn/operator/test/cluster/internal/config"
)

// retryAfter is the pause after a run that failed.
const retryAfter = time.Second

// Run provisions until ctx ends. members is where the folders of the nodes'
// members are.
func Run(ctx context.Context, kubeconfig, members string) error {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	rest.UserAgent = "storage-provisioner"
	client, err := corev1client.NewForConfig(rest)
	if err != nil {
		return err
	}
	p := provisioner{client: client, members: members, changed: make(chan struct{}, 1)}
	p.claims, err = p.watch(ctx, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	if p.volumes, err = p.watch(ctx, "persistentvolumes", &corev1.PersistentVolume{}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.changed:
		}
		if err := p.pass(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			time.AfterFunc(retryAfter, p.trigger)
		}
	}
}

type provisioner struct {
	client          *corev1client.CoreV1Client
	members         string
	claims, volumes cache.Store
	changed         chan struct{}
}

func (p *provisioner) trigger() {
	select {
	case p.changed <- struct{}{}:
	default: // a run is due already
	}
}

// watch keeps a copy of all objects of a resource, of the type of object.
func (p *provisioner) watch(ctx context.Context, resource string, object runtime.Object) (cache.Store, error) {
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(p.client.RESTClient(), resource, corev1.NamespaceAll, fields.Everything()),
		ObjectType:    object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { p.trigger() },
			UpdateFunc: func(any, any) { p.trigger() },
			DeleteFunc: func(any) { p.trigger() },
		},
	})
	go controller.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
		return nil, fmt.Errorf("stopped before %s were read", resource)
	}
	return store, nil
}

func (p *provisioner) pass(ctx context.Context) error {
	var claims []*corev1.PersistentVolumeClaim
	for _, o := range p.claims.List() {
		claims = append(claims, o.(*corev1.PersistentVolumeClaim))
	}
	var volumes []*corev1.PersistentVolume
	for _, o := range p.volumes.List() {
		volumes = append(volumes, o.(*corev1.PersistentVolume))
	}
	var failed error
	for _, s := range plan(claims, volumes, config.Volumes) {
		var err error
		switch {
		case s.provision != nil:
			err = p.provision(ctx, s.provision, s.claim)
		case s.remove != nil:
			err = p.remove(ctx, s.remove)
		case s.expand != nil:
			err = p.expand(ctx, s.expand, s.claim)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// folder is the volume's, as seen from the control plane.
func (p *provisioner) folder(node, volume string) string {
	return filepath.Join(config.VolumesOf(filepath.Join(p.members, node)), volume)
}

func (p *provisioner) provision(ctx context.Context, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	dir := p.folder(claim.Annotations[annSelectedNode], pv.Name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("provisioning %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { // whatever the umask
		return fmt.Errorf("provisioning %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	_, err := p.client.PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("provisioning %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	fmt.Fprintf(os.Stderr, "provisioned %s for %s/%s\n", pv.Name, claim.Namespace, claim.Name)
	return nil
}

func (p *provisioner) remove(ctx context.Context, pv *corev1.PersistentVolume) error {
	node, err := nodeOf(pv)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(p.folder(node, pv.Name)); err != nil {
		return fmt.Errorf("removing %s: %w", pv.Name, err)
	}
	err = p.client.PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing %s: %w", pv.Name, err)
	}
	fmt.Fprintf(os.Stderr, "removed %s\n", pv.Name)
	return nil
}

func nodeOf(pv *corev1.PersistentVolume) (string, error) {
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
		for _, term := range a.Required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Key == corev1.LabelHostname && len(e.Values) == 1 {
					return e.Values[0], nil
				}
			}
		}
	}
	return "", fmt.Errorf("volume %s names no node", pv.Name)
}

// expand has nothing to do on disk: a folder has no size of its own.
func (p *provisioner) expand(ctx context.Context, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	capacity := map[string]any{"capacity": map[string]any{"storage": claim.Spec.Resources.Requests.Storage().String()}}
	patch, err := json.Marshal(map[string]any{"spec": capacity})
	if err != nil {
		return err
	}
	if _, err := p.client.PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("expanding %s: %w", pv.Name, err)
	}
	if patch, err = json.Marshal(map[string]any{"status": capacity}); err != nil {
		return err
	}
	_, err = p.client.PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{},
		"status")
	if err != nil {
		return fmt.Errorf("expanding %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	fmt.Fprintf(os.Stderr, "expanded %s for %s/%s\n", pv.Name, claim.Namespace, claim.Name)
	return nil
}
