// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/outcome"
)

var (
	name  = types.NamespacedName{Namespace: "shop", Name: "cache"}
	start = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
)

// shown is what a cache shows of one object: its UID and version. No UID is no object.
type shown struct {
	uid     types.UID
	version string
	err     error
}

func (s shown) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.err == nil && s.uid == "" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name.Name)
	}
	into.SetUID(s.uid)
	into.SetResourceVersion(s.version)
	return s.err
}

func (shown) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func object(uid types.UID, version string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
}

func TestAnObjectIsLeftAloneWhileTheCacheIsBehind(t *testing.T) {
	broken := errors.New("the cache is broken")
	for what, tt := range map[string]struct {
		shown shown
		after time.Duration
		kind  outcome.Kind // empty: it is reconciled
	}{
		"what was written":                       {shown: shown{uid: "a", version: "20"}},
		"what another one wrote later":           {shown: shown{uid: "a", version: "21"}},
		"what was before":                        {shown: shown{uid: "a", version: "19"}, kind: outcome.KindWait},
		"what was before, for long":              {shown: shown{uid: "a", version: "19"}, after: apply.Lag},
		"another object of the name":             {shown: shown{uid: "b", version: "19"}},
		"nothing":                                {kind: outcome.KindDone},
		"nothing, because it could not be read":  {shown: shown{err: broken}, kind: outcome.KindRetry},
		"what another cluster of etcd has of it": {shown: shown{uid: "a", version: "x"}},
	} {
		t.Run(what, func(t *testing.T) {
			var m Memory[string]
			begin := func(s shown, at time.Time) (outcome.Outcome, bool) {
				return m.Begin(t.Context(), s, name, object("", ""), at)
			}
			if why, ok := begin(shown{uid: "a", version: "10"}, start); !ok {
				t.Fatalf("a new object is not reconciled: %s", why.Reason())
			}
			m.Wrote(object("a", "20"), start)
			m.Wrote(object("a", "20"), start.Add(time.Hour)) // seen again, not written again
			why, ok := begin(tt.shown, start.Add(tt.after))
			if ok != (tt.kind == "") || !ok && why.Kind() != tt.kind || tt.kind == outcome.KindRetry != errors.Is(why.Err(), broken) {
				t.Errorf("reconciled %t, %s: %s", ok, why.Kind(), why.Reason())
			}
			if tt.kind == outcome.KindWait && (why.After() <= 0 || why.After() > apply.Lag) {
				t.Errorf("looks again after %s", why.After())
			}
		})
	}
}

// What another process works on from now on is forgotten, and nothing else.
func TestForget(t *testing.T) {
	var m Memory[string]
	var forgotten []types.UID
	m.Forgotten = func(_ types.NamespacedName, uid types.UID) { forgotten = append(forgotten, uid) }
	other := types.NamespacedName{Namespace: "bank", Name: name.Name}
	m.Begin(t.Context(), shown{uid: "a", version: "10"}, name, object("", ""), start)
	m.Begin(t.Context(), shown{uid: "b", version: "10"}, other, object("", ""), start)
	m.Wrote(object("a", "20"), start)
	m.Wrote(object("b", "20"), start)
	m.Forget(func(namespace string) bool { return namespace == name.Namespace })
	if diff := cmp.Diff([]types.UID{"a"}, forgotten); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
	if _, ok := m.Begin(t.Context(), shown{uid: "a", version: "10"}, name, object("", ""), start); !ok {
		t.Error("what was written is remembered")
	}
	if _, ok := m.Begin(t.Context(), shown{uid: "b", version: "10"}, other, object("", ""), start); ok {
		t.Error("what was written of another one is forgotten")
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	for what, tt := range map[string]struct {
		next      shown
		forgotten []types.UID
	}{
		"the same object":               {next: shown{uid: "a", version: "11"}},
		"it is gone":                    {forgotten: []types.UID{"a"}},
		"another one has its name":      {next: shown{uid: "b", version: "11"}, forgotten: []types.UID{"a"}},
		"what could not be read is not": {next: shown{err: errors.New("the cache is broken")}},
	} {
		t.Run(what, func(t *testing.T) {
			var m Memory[string]
			var forgotten []types.UID
			m.Forgotten = func(of types.NamespacedName, uid types.UID) {
				if of != name {
					t.Errorf("%s is forgotten", of)
				}
				if m.Get(uid) != "" { // it must not wait for itself either
					t.Errorf("%s is still remembered", uid)
				}
				forgotten = append(forgotten, uid)
			}
			m.Begin(t.Context(), shown{uid: "a", version: "10"}, name, object("", ""), start)
			m.Update("a", func(more *string) { *more = "a secret" })
			m.Begin(t.Context(), tt.next, name, object("", ""), start)
			m.Begin(t.Context(), tt.next, name, object("", ""), start)
			if diff := cmp.Diff(tt.forgotten, forgotten); diff != "" {
				t.Errorf("forgotten (-want +got):\n%s", diff)
			}
			if kept := m.Get("a"); (kept == "") != (len(tt.forgotten) > 0) {
				t.Errorf("%q is remembered", kept)
			}
			m.Begin(t.Context(), shown{}, name, object("", ""), start)
			m.Update("a", func(more *string) { *more = "again" }) // by what ended late
			m.Wrote(object("a", "12"), start)
			if len(m.byUID)+len(m.uids) > 0 {
				t.Errorf("of what is gone is remembered: %v, %v", m.byUID, m.uids)
			}
		})
	}
}
