// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package byname

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/watchlist"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func object(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: version,
		Annotations: map[string]string{"long": strings.Repeat("x", 1000)}}}
}

// told is a watch of the Secrets of a namespace that has begun, and what it told of.
func told(t *testing.T) (*Watches, *scopeWatch, *[]string) {
	t.Helper()
	var names []string
	is := &scopeWatch{scope: scope{Secrets, "n"}, changed: func(_, _, name string) { names = append(names, name) },
		refuse: func(error) {}, asked: now}
	w := &Watches{Now: func() time.Time { return now }}
	w.Start(t.Context())
	w.of[is.scope] = is
	return w, is, &names
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What was read is as it was exactly as long as the watch tells of nothing else.
func TestState(t *testing.T) {
	w, is, _ := told(t)
	seen := func(name, version string) []Seen {
		return []Seen{{Resource: Secrets, Namespace: "n", Name: "b", Version: "2"},
			{Resource: Secrets, Namespace: "n", Name: name, Version: version}}
	}
	want := func(when string, want State, seen []Seen) {
		t.Helper()
		if got := w.State(seen); got != want {
			t.Errorf("%s: %d, want %d", when, got, want)
		}
	}
	want("before anything is known", Unknown, seen("a", "1"))
	check(t, is.Replace([]any{object("a", "1"), object("b", "2")}, "3"))
	want("as it was", Same, seen("a", "1"))
	want("none, as before", Same, seen("c", ""))
	want("read in a version that the watch has not told of yet", Changed, seen("a", "5"))
	check(t, is.Update(object("a", "4")))
	want("changed", Changed, seen("a", "1"))
	want("read again", Same, seen("a", "4"))
	check(t, is.Add(object("c", "6")))
	want("there by now", Changed, seen("c", ""))
	check(t, is.Delete(object("c", "7")))
	want("gone again", Same, seen("c", ""))
	_ = is.note(errors.New("the connection was reset"))
	want("of what happens now nothing is told", Unknown, seen("a", "4"))
	check(t, is.note(nil))
	want("told of again", Same, seen("a", "4"))
	_ = is.note(apierrors.NewForbidden(schema.GroupResource{Resource: Secrets}, "", errors.New("no")))
	want("not allowed any more", Unknown, seen("a", "4"))
	check(t, is.Update(object("a", "8")))
	want("and nothing is known by halves", Unknown, seen("a", "8"))
}

// Each change is told once, also one that happened while there was no connection; what there is at first is none.
func TestChanged(t *testing.T) {
	_, is, names := told(t)
	expect := func(want ...string) {
		t.Helper()
		slices.Sort(*names)
		if !slices.Equal(*names, want) {
			t.Errorf("told of %v, want %v", *names, want)
		}
		*names = nil
	}
	check(t, is.Replace([]any{object("a", "1"), object("b", "2"), object("c", "3")}, "3"))
	expect()
	check(t, is.Add(object("d", "4")))
	check(t, is.Update(object("a", "5")))
	check(t, is.Delete(object("b", "6")))
	expect("a", "b", "d")
	check(t, is.Replace([]any{object("a", "5"), object("c", "7"), object("e", "8")}, "9"))
	expect("c", "d", "e")
}

// Of what others wrote nothing but names and versions is kept, and of a namespace that holds too much nothing at all.
func TestBounded(t *testing.T) {
	w, is, _ := told(t)
	kept, err := is.Transformer()(object("a", "1"))
	check(t, err)
	if o := kept.(*metav1.PartialObjectMetadata); o.Name != "a" || o.ResourceVersion != "1" || o.Annotations != nil {
		t.Errorf("kept %+v", o)
	}
	refused := 0
	is.refuse = func(error) { refused++ }
	var objects []any
	for i := range mostNames {
		objects = append(objects, object(strconv.Itoa(i), "1"))
	}
	check(t, is.Replace(objects, "1"))
	if err := is.Add(object("one more", "2")); err == nil || refused != 1 {
		t.Errorf("one more was taken: %v", err)
	}
	if got := w.State([]Seen{{Resource: Secrets, Namespace: "n", Name: "0", Version: "1"}}); got != Unknown {
		t.Errorf("state %d", got)
	}
	if err := is.Replace(append(objects, object("one more", "2")), "2"); err == nil || refused != 2 {
		t.Errorf("as many were taken: %v", err)
	}
}

// pages are those of a list, as an API server gives them.
type pages struct {
	metadata.ResourceInterface
	pages  int
	limits []int64
}

func (p *pages) List(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	p.limits = append(p.limits, options.Limit)
	at, _ := strconv.Atoi(options.Continue)
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for i := range options.Limit {
		list.Items = append(list.Items, *object(fmt.Sprintf("%d-%d", at, i), "1"))
	}
	if at+1 < p.pages {
		list.Continue = strconv.Itoa(at + 1)
	}
	return list, nil
}

// A list is read a page at a time, as far as it may be kept.
func TestListed(t *testing.T) {
	few := &pages{pages: 3}
	list, err := listed(t.Context(), few, metav1.ListOptions{ResourceVersion: "0"})
	check(t, err)
	if len(list.Items) != 3*page || list.ResourceVersion != "9" || list.Items[0].Annotations != nil || len(few.limits) != 3 {
		t.Errorf("%d objects in %v, %+v", len(list.Items), few.limits, list.Items[0])
	}
	many := &pages{pages: 1 << 30}
	if _, err := listed(t.Context(), many, metav1.ListOptions{}); !errors.Is(err, errTooMany) || len(many.limits) > mostNames/page+1 {
		t.Errorf("%d pages were read: %v", len(many.limits), err)
	}
}

// A list that comes as a stream of events is in memory before it is counted.
func TestNoStream(t *testing.T) {
	if !watchlist.DoesClientNotSupportWatchListSemantics(inPages{}) {
		t.Error("a reflector asks for a stream")
	}
}

// A watch that is refused is tried again after a while only, and none begins before or after the operator's time.
func TestRefused(t *testing.T) {
	clock := now
	w := &Watches{Now: func() time.Time { return clock }}
	asked := []Seen{{Resource: Secrets, Namespace: "n", Name: "a", Version: "1"}}
	if got := w.State(asked); got != Unknown || len(w.of) != 0 {
		t.Errorf("before the start: %d, %v", got, w.of)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.Start(ctx)
	is := &scopeWatch{scope: scope{Secrets, "n"}, notBefore: now.Add(refusedFor)}
	w.of[is.scope] = is
	clock = now.Add(refusedFor - 1)
	if got := w.State(asked); got != Unknown || w.of[is.scope] != is {
		t.Errorf("while it is refused: %d", got)
	}
	cancel()
	clock = now.Add(refusedFor)
	if got := w.State(asked); got != Unknown || w.of[is.scope] != is {
		t.Errorf("after the end: %d", got)
	}
}

// What a reading saw is compared only if a watch can tell of all of it.
func TestReads(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	failing := false
	from := fake.NewClientBuilder().WithObjects(secret).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if failing {
				return errors.New("etcd is away")
			}
			return c.Get(ctx, key, o, options...)
		}}).Build()
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	same := always(Same)
	for name, tt := range map[string]struct {
		read func(*Reads)
		want bool // it is believed for longer than an age
	}{
		"nothing":  {func(*Reads) {}, false},
		"a Secret": {func(r *Reads) { _ = r.Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{}) }, true},
		"no such": {func(r *Reads) {
			_ = r.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "b"}, &corev1.ConfigMap{})
		}, true},
		"another kind": {func(r *Reads) { _ = r.Get(t.Context(), client.ObjectKeyFromObject(secret), account) }, false},
		"a list":       {func(r *Reads) { _ = r.List(t.Context(), &corev1.SecretList{}) }, false},
		"one that failed": {func(r *Reads) {
			failing = true
			_ = r.Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{})
		}, false},
	} {
		failing = false
		reads := &Reads{Reader: from}
		tt.read(reads)
		reading := reads.At(now)
		if !reading.Fresh(same, now, Age) || !reading.Fresh(nil, now.Add(Age-1), Age) || reading.Fresh(nil, now.Add(Age), Age) {
			t.Errorf("%s: not believed for an age", name)
		}
		if got := reading.Fresh(same, now.Add(time.Hour), Age); got != tt.want {
			t.Errorf("%s: believed after an hour: %t, want %t", name, got, tt.want)
		}
		if tt.want && reading.Fresh(always(Changed), now, Age) {
			t.Errorf("%s: believed although it has changed", name)
		}
	}
	if (Reading{}).Fresh(same, now, Age) {
		t.Error("what was never read is believed")
	}
}

type always State

func (a always) State([]Seen) State { return State(a) }
