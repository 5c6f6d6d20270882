// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package byname

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// idle is after how long a watch ends that nobody asked for.
	idle = 10 * time.Minute
	// refusedFor is after how long a watch is tried again that is not allowed, or of a namespace that holds too much.
	refusedFor = 10 * time.Minute
	// page is how many objects are listed at once: what their authors wrote beside the names is in memory meanwhile.
	page = 50
	// mostNames is how many objects a namespace may hold for their names to be kept. In a larger one nothing is watched.
	mostNames = 20_000
)

// Watches are those of namespaces whose objects somebody asks for. A watch of a namespace begins with the first question, and ends some
// time after the last one. It is safe for concurrent use.
type Watches struct {
	// Client asks for metadata only.
	Client metadata.Interface
	// Changed is called, one after the other for each namespace, for each object that came, changed or went.
	Changed func(resource, namespace, name string)
	// Now is the clock.
	Now func() time.Time

	mu sync.Mutex
	// within is the life of all watches; nil: not begun.
	within context.Context
	of     map[scope]*scopeWatch
}

// scope is what one watch covers.
type scope struct{ resource, namespace string }

// Start lets watches begin; they end with the context.
func (w *Watches) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.within, w.of = ctx, map[scope]*scopeWatch{}
}

// State tells whether objects are as they were seen, as far as watches tell by now.
func (w *Watches) State(seen []Seen) State {
	state := Same
	for _, s := range seen {
		switch version, known := w.version(s); {
		case !known:
			return Unknown
		case version != s.Version:
			state = Changed
		}
	}
	return state
}

// version is the version of an object, empty if there is none; and whether that is known.
func (w *Watches) version(s Seen) (version string, known bool) {
	watching := w.watching(scope{s.Resource, s.Namespace})
	if watching == nil {
		return "", false
	}
	watching.mu.Lock()
	defer watching.mu.Unlock()
	return watching.versions[s.Name], watching.versions != nil && !watching.broken
}

// watching is the watch of a scope, which begins now if there is none; nil when there can be none.
func (w *Watches) watching(of scope) *scopeWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.within == nil || w.within.Err() != nil {
		return nil
	}
	now := w.Now()
	if is := w.of[of]; is != nil && now.Before(is.notBefore) {
		return nil
	} else if is != nil && is.notBefore.IsZero() {
		is.asked = now
		return is
	}
	for scope, is := range w.of { // what was refused long ago, and nobody has asked for since
		if !is.notBefore.IsZero() && now.Sub(is.notBefore) >= idle {
			delete(w.of, scope)
		}
	}
	is := &scopeWatch{scope: of, changed: w.Changed, asked: now}
	w.of[of] = is
	ctx, cancel := context.WithCancel(w.within)
	is.refuse = func(error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		is.notBefore = w.Now().Add(refusedFor)
		cancel()
	}
	go w.run(ctx, is)
	go w.endIdle(ctx, cancel, is)
	return is
}

// run follows a scope until its context ends.
func (w *Watches) run(ctx context.Context, is *scopeWatch) {
	from := w.Client.Resource(corev1.SchemeGroupVersion.WithResource(is.resource)).Namespace(is.namespace)
	silent := logr.Discard() // what is not allowed is told where it matters
	ctx = klog.NewContext(ctx, silent)
	cache.NewReflectorWithOptions(inPages{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := listed(ctx, from, options)
			return list, is.note(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := from.Watch(ctx, options)
			return events, is.note(err)
		},
	}}, &metav1.PartialObjectMetadata{}, is, cache.ReflectorOptions{Name: "byname", Logger: &silent}).RunWithContext(ctx)
}

// inPages has a reflector list at first: what comes as a stream of events is all in memory before it can be counted.
type inPages struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is asked for by the reflector.
func (inPages) IsWatchListSemanticsUnSupported() bool { return true }

// listed lists names and versions, a page at a time.
func listed(ctx context.Context, from metadata.ResourceInterface, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit = "", "", page // an old version would come in one piece
	all := &metav1.PartialObjectMetadataList{}
	for {
		list, err := from.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			all.Items = append(all.Items, *reduced(&list.Items[i]))
		}
		all.ResourceVersion = list.ResourceVersion
		if options.Continue = list.Continue; options.Continue == "" {
			return all, nil
		}
		if len(all.Items) > mostNames {
			return nil, errTooMany
		}
	}
}

// endIdle ends a watch that nobody asks for any more.
func (w *Watches) endIdle(ctx context.Context, cancel context.CancelFunc, is *scopeWatch) {
	ticker := time.NewTicker(idle / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.mu.Lock()
			ends := w.Now().Sub(is.asked) >= idle
			if ends {
				delete(w.of, is.scope)
				cancel()
			}
			w.mu.Unlock()
		}
	}
}

// errTooMany: a namespace holds too much to be watched.
var errTooMany = fmt.Errorf("more than %d objects", mostNames)

// scopeWatch is one watch. A reflector writes into it.
type scopeWatch struct {
	scope
	changed func(resource, namespace, name string)
	// refuse ends the watch until some time has passed.
	refuse func(error)
	// asked and notBefore are guarded by Watches.
	asked, notBefore time.Time

	mu sync.Mutex
	// versions are by name; nil: not known.
	versions map[string]string
	// broken: the last list or watch failed, and the next may be long in coming.
	broken bool
}

// note ends the watch after an error that will come again, and returns it.
func (s *scopeWatch) note(err error) error {
	s.mu.Lock()
	s.broken = err != nil
	s.mu.Unlock()
	if apierrors.IsForbidden(err) || err == errTooMany { //nolint:errorlint // it is made above
		s.forget()
		s.refuse(err)
	}
	return err
}

func (s *scopeWatch) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions = nil
}

// reduced is what is kept of an object.
func reduced(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: o.Name, ResourceVersion: o.ResourceVersion}}
}

// Transformer has the reflector keep no more than that of what it collects at first.
func (s *scopeWatch) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if o, is := object.(*metav1.PartialObjectMetadata); is {
			return reduced(o), nil
		}
		return object, nil
	}
}

// Add notes an object.
func (s *scopeWatch) Add(object any) error { return s.Update(object) }

// Update notes a version of an object.
func (s *scopeWatch) Update(object any) error {
	o, is := object.(*metav1.PartialObjectMetadata)
	if !is {
		return fmt.Errorf("%T is no metadata", object)
	}
	s.mu.Lock()
	if s.versions == nil { // the watch is about to end
		s.mu.Unlock()
		return nil
	}
	s.versions[o.Name] = o.ResourceVersion
	tooMany := len(s.versions) > mostNames
	s.mu.Unlock()
	if tooMany {
		return s.note(errTooMany)
	}
	s.changed(s.resource, s.namespace, o.Name)
	return nil
}

// Delete forgets an object.
func (s *scopeWatch) Delete(object any) error {
	o, is := object.(*metav1.PartialObjectMetadata)
	if !is {
		return fmt.Errorf("%T is no metadata", object)
	}
	s.mu.Lock()
	delete(s.versions, o.Name)
	s.mu.Unlock()
	s.changed(s.resource, s.namespace, o.Name)
	return nil
}

// Replace notes all objects there are, and tells of those that are not as they were known.
func (s *scopeWatch) Replace(objects []any, _ string) error {
	if len(objects) > mostNames {
		return s.note(errTooMany)
	}
	versions := make(map[string]string, len(objects))
	for _, object := range objects {
		if o, is := object.(*metav1.PartialObjectMetadata); is {
			versions[o.Name] = o.ResourceVersion
		}
	}
	s.mu.Lock()
	before := s.versions
	s.versions = versions
	s.mu.Unlock()
	for name, version := range before {
		if versions[name] != version {
			s.changed(s.resource, s.namespace, name)
		}
	}
	for name := range versions {
		if _, known := before[name]; before != nil && !known {
			s.changed(s.resource, s.namespace, name)
		}
	}
	return nil
}

// Resync does nothing: there is nothing to be sent again.
func (s *scopeWatch) Resync() error { return nil }
