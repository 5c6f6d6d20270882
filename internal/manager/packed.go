// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Go map takes more than 300 bytes, however little it holds, and an object of a chart kind is a tree of a dozen or two, a custom
// resource with its conditions of more. So the caches keep what handlers of events look at as it is, and the rest as JSON, in one string.

// packedKey holds it, as a json.Number: a string that no object of an API server has, so that nobody's object passes for a packed one.
const packedKey = "packed"

// watchedOfChildren are the metadata of children that handlers and predicates of events look at; operator-lib finds owners by
// annotations. Whoever has an informer of the cache of children for objects of chart kinds sees no more of them. Of custom resources
// metadata is kept as it is.
var watchedOfChildren = []string{"name", "namespace", "uid", "resourceVersion", "ownerReferences", "annotations"}

// pack replaces an object by the form in which a cache keeps it, with these metadata as they are.
func pack(object *unstructured.Unstructured, watched ...string) error {
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation) // the spec once more
	rest := object.Object
	packed := part(rest, "apiVersion", "kind")
	if metadata, is := rest["metadata"].(map[string]any); is {
		packed["metadata"] = part(metadata, watched...)
	}
	var encoded bytes.Buffer
	to := json.NewEncoder(&encoded)
	to.SetEscapeHTML(false) // six bytes for one
	if err := to.Encode(rest); err != nil {
		return fmt.Errorf("encoding %s %s for the cache: %w", object.GetKind(), object.GetName(), err)
	}
	packed[packedKey] = json.Number(encoded.String())
	object.Object = packed
	return nil
}

// part takes some keys out of a map.
func part(whole map[string]any, keys ...string) map[string]any {
	taken := map[string]any{}
	for _, key := range keys {
		if value, found := whole[key]; found {
			taken[key] = value
			delete(whole, key)
		}
	}
	return taken
}

func isPacked(object *unstructured.Unstructured) bool {
	_, is := object.Object[packedKey].(json.Number)
	return is
}

// unpack undoes it. What the object shares with others is not changed.
func unpack(object *unstructured.Unstructured) error {
	encoded, _ := object.Object[packedKey].(json.Number)
	whole := map[string]any{}
	if err := utiljson.Unmarshal([]byte(encoded), &whole); err != nil {
		return fmt.Errorf("decoding %s %s of the cache: %w", object.GetKind(), object.GetName(), err)
	}
	metadata, _ := whole["metadata"].(map[string]any)
	watched, _ := object.Object["metadata"].(map[string]any)
	maps.Copy(metadata, watched)
	whole["apiVersion"], whole["kind"] = object.Object["apiVersion"], object.Object["kind"]
	object.Object = whole
	return nil
}

// packedCache is a cache whose objects without Go types are packed. If their labels are, too, they are not listed.
type packedCache struct {
	cache.Cache

	unlisted bool
}

var errPacked = errors.New("objects of chart kinds are read by name here")

func (c packedCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := c.Cache.Get(ctx, key, object, options...); err != nil {
		return err
	}
	if packed, is := object.(*unstructured.Unstructured); is {
		return unpack(packed)
	}
	return nil
}

func (c packedCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	packed, is := list.(*unstructured.UnstructuredList)
	if is && c.unlisted {
		return errPacked
	}
	if err := c.Cache.List(ctx, list, options...); err != nil || !is {
		return err
	}
	for i := range packed.Items {
		if err := unpack(&packed.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// IndexField indexes objects of Go types and metadata.
func (c packedCache) IndexField(ctx context.Context, object client.Object, field string, by client.IndexerFunc) error {
	if _, is := object.(*unstructured.Unstructured); is {
		return errPacked
	}
	return c.Cache.IndexField(ctx, object, field, by)
}
