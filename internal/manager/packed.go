// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packed is the form in which the caches keep an object without a Go type. As a tree of Go maps it would take several times as much:
// each takes more than 300 bytes, however little it holds, and an object has a dozen or two. Handlers of events are given it, and see
// what it has of metadata: names, UID, version, generation, labels, annotations, owner references, and when it was made and deleted.
type packed struct {
	untyped
	metav1.TypeMeta
	metav1.ObjectMeta

	// rest is the whole object as JSON, but for what pack takes out of it; compressed with the dictionary if there is one.
	rest       string
	dictionary *s2.Dict
}

// untyped has a cache take an object for one without a Go type, as runtime.Unstructured. Nobody calls these.
type untyped struct{}

func (untyped) NewEmptyInstance() runtime.Unstructured                 { return nil }
func (untyped) UnstructuredContent() map[string]any                    { return nil }
func (untyped) SetUnstructuredContent(map[string]any)                  {}
func (untyped) IsList() bool                                           { return false }
func (untyped) EachListItem(func(runtime.Object) error) error          { return nil }
func (untyped) EachListItemWithAlloc(func(runtime.Object) error) error { return nil }

// packedList is what a cache lists packed objects into.
type packedList struct {
	untyped
	metav1.TypeMeta
	metav1.ListMeta

	Items []packed
}

// pack takes the object apart.
func pack(object *unstructured.Unstructured) (*packed, error) {
	annotations := object.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation) // the spec once more
	p := &packed{TypeMeta: metav1.TypeMeta{APIVersion: object.GetAPIVersion(), Kind: object.GetKind()}, ObjectMeta: metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Labels: object.GetLabels(), Annotations: annotations, OwnerReferences: object.GetOwnerReferences(), Generation: object.GetGeneration(),
		CreationTimestamp: object.GetCreationTimestamp(), DeletionTimestamp: object.GetDeletionTimestamp()}}
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	delete(object.Object, "apiVersion")
	delete(object.Object, "kind")
	var encoded bytes.Buffer
	to := json.NewEncoder(&encoded)
	to.SetEscapeHTML(false) // six bytes for one
	if err := to.Encode(object.Object); err != nil {
		return nil, fmt.Errorf("encoding %s %s for the cache: %w", p.Kind, p.Name, err)
	}
	shareStrings(p, &p.APIVersion, &p.Kind)
	p.compress(encoded.Bytes())
	return p, nil
}

// dictionary is what objects of a kind are compressed with: one of them, from which the others differ in little. It takes up to
// 100 KiB, which few objects are not worth.
type dictionary struct {
	mu           sync.Mutex
	packed, next int
	now          *s2.Dict
}

var dictionaries sync.Map // *dictionary by schema.GroupVersionKind

func (p *packed) compress(text []byte) {
	known, _ := dictionaries.LoadOrStore(p.GroupVersionKind(), &dictionary{next: 8})
	of := known.(*dictionary) //nolint:forcetypeassert // see above
	of.mu.Lock()
	if of.packed++; of.packed == of.next { // a later one has a status, too
		end := text[max(0, len(text)-s2.MaxDictSize):]                  // all else of a large object is let go
		of.now, of.next = s2.MakeDict(bytes.Clone(end), nil), 8*of.next // none of a few bytes
	}
	p.dictionary = of.now
	of.mu.Unlock()
	p.rest = string(text)
	if p.dictionary == nil {
		return
	}
	// What is compressed has no checksum, and one object that cannot be read would keep its whole kind from being listed.
	short := p.dictionary.Encode(nil, text)
	if same, err := p.dictionary.Decode(nil, short); err != nil || !bytes.Equal(same, text) {
		p.dictionary = nil
		return
	}
	p.rest = string(short)
}

func (p *packed) text() ([]byte, error) {
	if p.dictionary == nil {
		return []byte(p.rest), nil
	}
	return p.dictionary.Decode(nil, []byte(p.rest))
}

// unpack puts together what pack took apart; nothing of it is shared.
func (p *packed) unpack(into *unstructured.Unstructured) error {
	whole := &unstructured.Unstructured{}
	text, err := p.text()
	if err == nil {
		err = utiljson.Unmarshal(text, &whole.Object)
	}
	if err != nil {
		return fmt.Errorf("decoding %s %s of the cache: %w", p.Kind, p.Name, err)
	}
	whole.SetGroupVersionKind(p.GroupVersionKind())
	whole.SetName(p.Name)
	whole.SetNamespace(p.Namespace)
	whole.SetUID(p.UID)
	whole.SetResourceVersion(p.ResourceVersion)
	whole.SetLabels(p.Labels)
	whole.SetAnnotations(p.Annotations)
	whole.SetOwnerReferences(p.OwnerReferences)
	into.Object = whole.Object
	return nil
}

// DeepCopyObject implements runtime.Object.
func (p *packed) DeepCopyObject() runtime.Object {
	return &packed{TypeMeta: p.TypeMeta, ObjectMeta: *p.DeepCopy(), rest: p.rest, dictionary: p.dictionary}
}

// DeepCopyObject implements runtime.Object.
func (l *packedList) DeepCopyObject() runtime.Object {
	c := &packedList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*packed)) //nolint:forcetypeassert // see above
	}
	return c
}

// packedCache is a cache that keeps objects without Go types packed. Whoever reads one is given it whole.
type packedCache struct {
	cache.Cache

	// watched are the kinds that reads began to watch; nil: a kind that is not watched is not read.
	watched *sync.Map
}

// Get implements client.Reader.
func (c packedCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	whole, is := object.(*unstructured.Unstructured)
	if !is {
		return c.Cache.Get(ctx, key, object, options...)
	}
	if err := c.watch(ctx, whole); err != nil {
		return err
	}
	found := &packed{}
	found.SetGroupVersionKind(whole.GroupVersionKind())
	if err := c.Cache.Get(ctx, key, found, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	return found.unpack(whole)
}

// watch begins to watch a kind before one of it is read: the cache would expect packed objects from the API server otherwise. It does not
// wait; a read does, in its own namespace only.
func (c packedCache) watch(ctx context.Context, object *unstructured.Unstructured) error {
	if c.watched == nil {
		return nil
	}
	if _, is := c.watched.Load(object.GroupVersionKind()); is {
		return nil
	}
	if _, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	c.watched.Store(object.GroupVersionKind(), true)
	return nil
}

// Each calls for every object that List would give, one unpacked at a time.
func (c packedCache) Each(ctx context.Context, list *unstructured.UnstructuredList, call func(client.Object)) error {
	return c.each(ctx, list, func(object *unstructured.Unstructured) { call(object) })
}

// List implements client.Reader.
func (c packedCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	whole, is := list.(*unstructured.UnstructuredList)
	if !is {
		return c.Cache.List(ctx, list, options...)
	}
	whole.Items = []unstructured.Unstructured{}
	return c.each(ctx, whole, func(object *unstructured.Unstructured) { whole.Items = append(whole.Items, *object) }, options...)
}

func (c packedCache) each(ctx context.Context, list *unstructured.UnstructuredList, call func(*unstructured.Unstructured),
	options ...client.ListOption) error {
	found := &packedList{}
	found.SetGroupVersionKind(list.GroupVersionKind())
	if err := c.Cache.List(ctx, found, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	for i := range found.Items {
		one := &unstructured.Unstructured{}
		if err := found.Items[i].unpack(one); err != nil {
			return err
		}
		call(one)
	}
	return nil
}

var errPacked = errors.New("objects without a Go type are packed in the cache, and cannot be indexed")

// IndexField refuses what an index function could not read.
func (c packedCache) IndexField(ctx context.Context, object client.Object, field string, by client.IndexerFunc) error {
	if _, is := object.(*unstructured.Unstructured); is {
		return errPacked
	}
	return c.Cache.IndexField(ctx, object, field, by)
}
