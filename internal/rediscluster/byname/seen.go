// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package byname tells whether objects that were read by name, past every cache, have changed since: the names and versions of a
// namespace's Secrets or ConfigMaps are watched where the operator may, and nothing that they hold.
package byname

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Resources that are watched.
const (
	Secrets    = "secrets"
	ConfigMaps = "configmaps"
)

// Age is how old a reading may be that no watch vouches for.
const Age = time.Minute

// State is what is known of objects that were read.
type State int

const (
	// Unknown: nobody can tell.
	Unknown State = iota
	// Same: they are as they were read.
	Same
	// Changed: at least one is not, or the watch is behind.
	Changed
)

// Seen is the version in which an object was read.
type Seen struct {
	Resource, Namespace, Name string
	// Version is the resource version; empty when there was no such object.
	Version string
}

// Watcher tells whether objects are as they were read.
type Watcher interface {
	State(seen []Seen) State
}

// Reads reads objects by name, and notes what it saw.
type Reads struct {
	client.Reader
	seen []Seen
	// unwatched reports whether something was read, or was not, that no watch can tell of.
	unwatched bool
}

// Get reads an object.
func (r *Reads) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, into, options...)
	resource := resourceOf(into)
	if resource == "" || err != nil && !apierrors.IsNotFound(err) {
		r.unwatched = true
		return err
	}
	seen := Seen{Resource: resource, Namespace: key.Namespace, Name: key.Name}
	if err == nil {
		seen.Version = into.GetResourceVersion()
	}
	r.seen = append(r.seen, seen)
	return err
}

// List reads what no watch tells of.
func (r *Reads) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	r.unwatched = true
	return r.Reader.List(ctx, into, options...)
}

func resourceOf(object client.Object) string {
	switch o := object.(type) {
	case *corev1.Secret:
		return Secrets
	case *corev1.ConfigMap:
		return ConfigMaps
	case *metav1.PartialObjectMetadata:
		if o.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Secret") {
			return Secrets
		}
	}
	return ""
}

// At is the reading that was made, at a time.
func (r *Reads) At(now time.Time) Reading {
	if r.unwatched {
		return Reading{at: now}
	}
	return Reading{at: now, seen: r.seen}
}

// Reading is when objects were read, and in which versions. The zero value was never.
type Reading struct {
	at   time.Time
	seen []Seen
}

// Fresh reports whether the objects need not be read again: none has changed since, or, where nobody can tell, they were read less than
// an age ago.
func (r Reading) Fresh(w Watcher, now time.Time, age time.Duration) bool {
	if r.at.IsZero() {
		return false
	}
	if w != nil && len(r.seen) > 0 {
		switch w.State(r.seen) {
		case Same:
			return true
		case Changed:
			return false
		case Unknown:
		}
	}
	return now.Sub(r.at) < age
}
