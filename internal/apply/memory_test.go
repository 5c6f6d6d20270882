// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (d *desk) applies(t *testing.T, text string) (Change, error) {
	t.Helper()
	changes, err := d.Apply(t.Context(), shop, []*unstructured.Unstructured{desired(t, text)})
	if len(changes) != 1 {
		return Change{}, err
	}
	return changes[0], err
}

// with is the desk with another cache, and nothing said so far.
func (d *desk) with(shown *unstructured.Unstructured) *desk {
	d.children, d.said = newDesk(nil, shown).children, nil
	return d
}

func version(v string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetResourceVersion(v) }
}

func uid(u types.UID) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetUID(u) }
}

// What is told of an object that is applied, and applied again as the cache comes to show it.
func TestWhatIsTold(t *testing.T) {
	ours := []metav1.ManagedFieldsEntry{entry(`{"f:data":{"f:text":{}}}`)}
	d := newDesk(nil, nil)
	made, err := d.applies(t, configText)
	want := Change{Ref: Ref{GroupVersionKind: configs, Namespace: "n", Name: "a", UID: "made"}, Action: Created, Fields: markOf(ours)}
	if diff := cmp.Diff(want, made); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"apply a as middleware-operator at version 1"}, d.said); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	// pending is what Apply would write, text what is desired.
	for _, tt := range []struct {
		name, text    string
		shown         *unstructured.Unstructured
		action        Action
		pending, said int
		uid           types.UID
	}{
		{"not shown yet", configText, nil, Unchanged, 0, 0, "made"},
		{"shown", configText, existing(t, configText, version("101"), uid("made")), Unchanged, 0, 0, "made"},
		{"something else is desired", strings.Replace(configText, "new", "else", 1), existing(t, configText, version("100"), uid("made")),
			Unchanged, 1, 1, "made"},
		{"something else again", configText, existing(t, configText, version("90"), uid("made")), Unchanged, 1, 1, "made"},
		{"a later one", configText + " ", existing(t, configText, version("104"), uid("made")), Unchanged, 0, 0, "made"},
		{"gone after it was shown", configText, nil, Recreated, 1, 1, "made"},
		{"going", configText, existing(t, configText, version("101"), uid("made"), leaving), Deleting, 0, 0, "made"},
		{"replaced by another of ours", configText, existing(t, configText, version("105"), uid("b")), Configured, 1, 1, "b"},
	} {
		d.with(tt.shown)
		pending, err := d.Pending(t.Context(), shop, []*unstructured.Unstructured{desired(t, tt.text)})
		if err != nil || len(pending) != tt.pending || len(pending) > 0 && (pending[0].Name != "a" || pending[0].Namespace != "n") {
			t.Errorf("%s: pending %v, %v", tt.name, pending, err)
		}
		change, err := d.applies(t, tt.text)
		if err != nil || change.Action != tt.action || change.UID != tt.uid || len(d.said) != tt.said {
			t.Errorf("%s: %+v, %v after %v", tt.name, change, err, d.said)
		}
		if tt.action == Unchanged && change.Fields != markOf(ours) {
			t.Errorf("%s: the digest of our fields is not told", tt.name)
		}
	}
}

// An object that this process applied is its owner's although somebody took the reference to the owner off, until another controls it;
// what a former process said proves nothing.
func TestWhatWasAppliedIsOurs(t *testing.T) {
	free := func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }
	for name, tt := range map[string]struct {
		was   *applied
		shown func(*unstructured.Unstructured)
		ours  bool
	}{
		"applied, and freed":                  {&applied{ref: Ref{UID: "a"}}, free, true},
		"applied, and taken":                  {&applied{ref: Ref{UID: "a"}}, anothers, false},
		"another of the name, freed":          {&applied{ref: Ref{UID: "b"}}, free, false},
		"applied by a former process, freed":  {&applied{ref: Ref{UID: "a"}, recalled: true}, free, false},
		"applied by a former process, intact": {&applied{ref: Ref{UID: "a"}, recalled: true}, func(*unstructured.Unstructured) {}, true},
		"never applied":                       {nil, free, false},
	} {
		shown := existing(t, configText, tt.shown)
		d := newDesk(shown, shown)
		if tt.was != nil {
			tt.was.ref.GroupVersionKind, tt.was.ref.Namespace, tt.was.ref.Name = configs, "n", "a"
			d.memory.put("shop", *tt.was)
		}
		_, err := d.applies(t, configText)
		var foreign *NotOursError
		if errors.As(err, &foreign) == tt.ours || (len(d.said) > 0) != tt.ours {
			t.Errorf("%s: %v, asked %v", name, err, d.said)
		}
	}
}

// Nothing is written while it is not known what there is.
func TestUnreadableCache(t *testing.T) {
	d := newDesk(nil, nil)
	unread := errors.New("timeout")
	d.refusals["cache"] = []error{unread, unread, unread}
	if _, err := d.applies(t, configText); !errors.Is(err, unread) || len(d.said) > 0 {
		t.Errorf("%v, asked %v", err, d.said)
	}
	if _, err := d.Pending(t.Context(), shop, []*unstructured.Unstructured{desired(t, configText)}); !errors.Is(err, unread) {
		t.Errorf("pending: %v", err)
	}
	d.Recall(shop, []Known{{Ref: Ref{GroupVersionKind: configs, Namespace: "n", Name: "a"}}})
	if drift, err := d.Drifted(t.Context(), shop); !errors.Is(err, unread) || drift.Known {
		t.Errorf("drift: %+v, %v", drift, err)
	}
	if _, err := d.applies(t, `{apiVersion: example.com/v1, kind: Nothing, metadata: {name: a}}`); err == nil || len(d.said) > 0 {
		t.Errorf("an unknown kind: %v, asked %v", err, d.said)
	}
	if _, err := d.Apply(t.Context(), &unowned{}, nil); err == nil {
		t.Error("an owner of no kind")
	}
	if _, err := d.Prune(t.Context(), &unowned{}, nil, nil); err == nil {
		t.Error("an owner of no kind")
	}
	if _, err := d.Gone(t.Context(), &unowned{}, nil); err == nil {
		t.Error("an owner of no kind")
	}
}

// unowned has a type that no scheme knows.
type unowned struct{ metav1.PartialObjectMetadata }

// What was applied and is shown otherwise, or not, has drifted; what a former process applied is known as well, unless this process
// knows better.
func TestDrifted(t *testing.T) {
	d := newDesk(nil, nil)
	now := t0
	d.now = func() time.Time { return now }
	drifted := func(name string, want Drift) {
		t.Helper()
		got, err := d.Drifted(t.Context(), shop)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	drifted("nothing was applied", Drift{})
	ref := Ref{GroupVersionKind: configs, Namespace: "n", Name: "a", UID: "made"}
	if _, err := d.applies(t, configText); err != nil {
		t.Fatal(err)
	}
	drifted("the cache does not show it yet", Drift{Known: true, Lagging: true})
	d.Recall(shop, []Known{{Ref: ref, Fields: "of a former process"}})
	d.with(existing(t, configText, uid("made"), version("101")))
	drifted("shown as it was applied", Drift{Known: true})
	d.with(existing(t, configText, uid("made"), version("120"), managed(entry(`{"f:data":{}}`))))
	drifted("a field was taken", Drift{Known: true, Refs: []Ref{ref}})
	d.with(existing(t, configText, uid("made"), version("120"), leaving))
	drifted("it is being deleted", Drift{Known: true})
	d.with(nil)
	drifted("it was shown, and is gone", Drift{Known: true, Refs: []Ref{ref}})

	other := Ref{GroupVersionKind: statefulSets, Namespace: "n", Name: "b"}
	d.Recall(shop, []Known{{Ref: other}})
	drifted("and one of a former process", Drift{Known: true, Refs: []Ref{ref, other}})
	d.Forget("shop")
	drifted("the owner is gone", Drift{})
	d.Recall(shop, []Known{{Ref: other}})
	drifted("recalled", Drift{Known: true, Refs: []Ref{other}})
	d.Recall(shop, []Known{{Ref: ref, Fields: "x"}, {Ref: other, Fields: "x"}})
	d.with(existing(t, configText, uid("made")))
	drifted("recalled once more", Drift{Known: true, Refs: []Ref{ref, other}})
	d.Recall(shop, []Known{{Ref: ref, Fields: markOf([]metav1.ManagedFieldsEntry{entry(`{"f:data":{"f:text":{}}}`)})}})
	drifted("recalled as it is", Drift{Known: true, Refs: []Ref{other}})
	d.with(existing(t, configText, uid("a"), version("90")))
	d.memory.put("shop", applied{ref: ref, at: now, seen: true, mark: "x"})
	if _, err := d.Prune(t.Context(), shop, []Ref{ref, other}, nil); err != nil {
		t.Fatal(err)
	}
	drifted("what was pruned is forgotten", Drift{})
}

// What somebody decided on a version of an object is sent for that version only, also when the fields of others are put aside for it.
func TestAppliedToTheVersionThatWasSeen(t *testing.T) {
	const applied = "apply a as middleware-operator by force if a"
	const settled = `patch a {"data":{"text":"new"},"metadata":{"resourceVersion":"100"}}`
	refused := []error{invalid("no good", field.NewPath("data").Key("text"))}
	for name, tt := range map[string]struct {
		how      []Option
		refused  []error
		want     []string
		conflict bool
	}{
		"this one":    {[]Option{Seen(map[types.UID]string{"a": "90"})}, nil, []string{applied + " at version 90"}, false},
		"another":     {[]Option{Seen(map[types.UID]string{"b": "90"})}, nil, []string{applied}, false},
		"none at all": {nil, nil, []string{applied}, false},
		"this one, beside fields that are in the way": {[]Option{Seen(map[types.UID]string{"a": "100"})}, refused,
			[]string{applied + " at version 100", settled, applied + " at version 150"}, false},
		"another, when fields are in the way": {[]Option{Seen(map[types.UID]string{"a": "90"})}, refused,
			[]string{applied + " at version 90"}, true},
	} {
		object, was := desired(t, configText), existing(t, strings.Replace(configText, "new", "old", 1))
		d := newDesk(was, was.DeepCopy())
		d.refusals["apply"] = tt.refused
		_, err := d.Apply(t.Context(), shop, []*unstructured.Unstructured{object}, tt.how...)
		if diff := cmp.Diff(tt.want, d.said); diff != "" || object.GetResourceVersion() != "" || apierrors.IsConflict(err) != tt.conflict ||
			err != nil && !tt.conflict {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// The very object that was found to be as desired is not looked through again, and still is; until somebody changes it.
func TestTheSameObjectAgain(t *testing.T) {
	d := newDesk(nil, nil)
	again := []*unstructured.Unstructured{desired(t, configText)}
	for _, requests := range []int{1, 0, 0} {
		if _, err := d.Apply(t.Context(), shop, again); err != nil || len(d.said) != requests {
			t.Fatalf("asked %q, %v", d.said, err)
		}
		d.with(existing(t, configText, uid("made"), version("101")))
	}
	d.with(existing(t, configText, uid("made"), version("120"), managed(entry(`{"f:data":{}}`))))
	if _, err := d.Apply(t.Context(), shop, again); err != nil || len(d.said) != 1 {
		t.Errorf("a field was taken: asked %q, %v", d.said, err)
	}
}

// What cannot be written as JSON is refused, and nothing is asked.
func TestNoJSON(t *testing.T) {
	d, object := newDesk(nil, nil), desired(t, configText)
	object.Object["data"] = map[string]any{"text": math.NaN()}
	if _, err := d.Apply(t.Context(), shop, []*unstructured.Unstructured{object}); err == nil || len(d.said) > 0 {
		t.Errorf("%v, asked %q", err, d.said)
	}
}

// A child that this process applied is shown as it was before if it is shown in an older version, and not for ever.
func TestChildBehind(t *testing.T) {
	d, now := newDesk(nil, nil), t0
	d.now = func() time.Time { return now }
	if _, err := d.applies(t, configText); err != nil { // version 101
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		child, shown string
		after        time.Duration
		behind       bool
	}{
		"older": {"a", "100", Lag - 1, true}, "that one": {"a", "101", 0, false}, "an etcd was restored": {"a", "100", Lag, false},
		"not applied": {"b", "100", 0, false},
	} {
		now = t0.Add(tt.after)
		if got := d.Behind("shop", refs(tt.child)[0], tt.shown); got != tt.behind {
			t.Errorf("%s: behind %t", name, got)
		}
	}
}

// What this process applied is told instead of what was known before; what a former one did, and what is forgotten, is not.
func TestLatest(t *testing.T) {
	d := newDesk(nil, nil)
	if _, err := d.applies(t, configText); err != nil {
		t.Fatal(err)
	}
	ref := RefOf(desired(t, configText))
	ref.Namespace, ref.UID = "n", "former"
	other := Ref{GroupVersionKind: statefulSets, Namespace: "n", Name: "b"}
	known := []Known{{Ref: ref, Fields: "x"}, {Ref: other, Fields: "y"}}
	d.Recall(shop, []Known{{Ref: other, Fields: "z"}})
	latest := d.Latest(shop, known)
	if latest[0].UID == "former" || latest[0].Fields == "x" || latest[0].Fields == "" || latest[1] != known[1] || known[0].UID != "former" {
		t.Errorf("%+v of %+v", latest, known)
	}
	d.Forget("shop")
	if latest := d.Latest(shop, known); latest[0] != known[0] {
		t.Errorf("%+v", latest)
	}
}

// A version that the cache has shown is the one to go on from: what is older afterwards is an etcd that was restored.
func TestLaterVersionIsRemembered(t *testing.T) {
	d := newDesk(nil, nil)
	if _, err := d.applies(t, configText); err != nil {
		t.Fatal(err)
	}
	ref := Ref{GroupVersionKind: configs, Namespace: "n", Name: "a"}
	for _, shown := range []string{"101", "130", "130"} {
		d.with(existing(t, configText, uid("made"), version(shown)))
		if _, err := d.Drifted(t.Context(), shop); err != nil {
			t.Fatal(err)
		}
		if was := d.memory.get("shop", ref); was == nil || !was.seen || was.version != shown {
			t.Errorf("remembered %+v, shown %s", was, shown)
		}
	}
	d.with(existing(t, configText, uid("made"), version("140")))
	if _, err := d.applies(t, configText); err != nil || len(d.said) > 0 {
		t.Fatalf("%v, asked %v", err, d.said)
	}
	if was := d.memory.get("shop", ref); was.version != "140" {
		t.Errorf("remembered %+v", was)
	}
}

var _ client.Object = &unowned{}

// What the API server answers to an apply: an object that is another one than the cache shows, a version that stays, a kind that no
// cache has, duplicates that Kubernetes understands.
func TestAnswersToAnApply(t *testing.T) {
	const changed, created = "apply a as middleware-operator by force if a", "apply a as middleware-operator at version 1"
	const twice = `failed to create typed patch object (n/a; v1, Kind=ConfigMap): .data: duplicate entries for key [="a"]`
	duplicates := apierrors.NewInternalError(errors.New(twice))
	inUID, elsewhere := invalid("x", field.NewPath("metadata", "uid")), invalid("x", field.NewPath("spec"))
	unread := errors.New("timeout")
	denied := status(http.StatusForbidden, metav1.StatusReasonForbidden, "denied by a webhook",
		&metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "metadata.uid"}}})
	for name, tt := range map[string]struct {
		live, shown *unstructured.Unstructured
		refusals    map[string][]error
		action      Action
		want        []string
		fails       error
	}{
		"it is another one by now": {nil, existing(t, configText), map[string][]error{"apply": {inUID}}, Created, []string{changed, created},
			nil},
		"it is invalid": {nil, existing(t, configText), map[string][]error{"apply": {elsewhere}}, "", []string{changed}, elsewhere},
		"it says a UID elsewhere": {nil, existing(t, configText), map[string][]error{"apply": {fmt.Errorf("metadata.uid: %w", unread)}}, "",
			[]string{changed}, unread},
		"it was not shown, and stays": {existing(t, configText, version("101")), nil, map[string][]error{"apply": {conflict()}}, Unchanged,
			[]string{created, changed}, nil},
		"it was not shown, and cannot be read": {existing(t, configText), nil, map[string][]error{"apply": {conflict()}, "get": {unread}}, "",
			[]string{created}, unread},
		"it was shown, and stays": {nil, existing(t, configText, version("101")), nil, Unchanged, []string{changed}, nil},
		"its UID is refused for another reason": {nil, existing(t, configText), map[string][]error{"apply": {denied}}, "", []string{changed},
			denied},
		"no cache has its kind": {nil, nil, map[string][]error{"cache": {&meta.NoKindMatchError{}}}, Created, []string{created}, nil},
		"duplicates": {nil, nil, map[string][]error{"apply": {duplicates, duplicates, duplicates}}, Created,
			[]string{created, created, created, created}, nil},
		"duplicates without an end": {nil, nil, map[string][]error{"apply": {duplicates, duplicates, duplicates, duplicates, duplicates}}, "",
			[]string{created, created, created, created}, duplicates},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(tt.live, tt.shown)
			d.refusals = tt.refusals
			change, err := d.applies(t, configText)
			if !errors.Is(err, tt.fails) || tt.fails == nil && err != nil || change.Action != tt.action {
				t.Errorf("%+v, %v", change, err)
			}
			if diff := cmp.Diff(tt.want, d.said); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// The duplicates that a refusal names are not sent again; those that contradict each other are sent no more.
func TestDuplicatesAreSentOnce(t *testing.T) {
	const named = `failed to create typed patch object (n/a; v1, Kind=ConfigMap): .ports: duplicate entries for key [name="a"]`
	for text, sent := range map[string]int{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, ports: [{name: a, n: 1}, {name: a, n: 1}]}`: 2,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, ports: [{name: a, n: 1}, {name: a, n: 2}]}`: 1,
	} {
		d := newDesk(nil, nil)
		d.refusals["apply"] = []error{apierrors.NewInternalError(errors.New(named))}
		_, err := d.applies(t, text)
		if len(d.said) != sent || (err != nil) != (sent == 1) || err != nil && !strings.Contains(err.Error(), "take all but one out") {
			t.Errorf("%s: %v after %v", text, err, d.said)
		}
		if ports, _, _ := unstructured.NestedSlice(d.sent, "ports"); len(ports) != 3-sent {
			t.Errorf("%s: sent %v", text, ports)
		}
	}
}
