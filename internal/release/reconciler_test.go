// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// A resource is looked at again as long as the cache does not show all that was applied, and then not before something happens.
func TestWhenAResourceIsLookedAtAgain(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	seen := Child{Ref: deployment, Object: &unstructured.Unstructured{}}
	behind := seen
	behind.Behind = true
	idle := s.r.outcomeOf(s.web(), effect{step: Nothing{}}).After()
	for name, tt := range map[string]struct {
		done effect
		want time.Duration
	}{
		"all is seen":                      {effect{step: Nothing{}, children: []Child{seen}}, idle},
		"a child is not seen":              {effect{step: Nothing{}, children: []Child{seen, {Ref: deployment}}}, visibleAfter},
		"a child is as it was before":      {effect{step: Nothing{}, children: []Child{seen, behind}}, visibleAfter},
		"something applied is not seen":    {effect{step: Nothing{}, lagging: true}, visibleAfter},
		"there is more to do at once":      {effect{step: Nothing{}, lagging: true, again: goOn}, goOn},
		"it was refused, and passes later": {effect{step: Nothing{}, failure: &failure{final: true, again: time.Hour}}, time.Hour},
	} {
		if got := s.r.outcomeOf(s.web(), tt.done).After(); got != tt.want {
			t.Errorf("%s: after %s, want %s", name, got, tt.want)
		}
	}
}

// What was deployed is what another process deployed since, perhaps, if the status that tells of it could not be written; and what was
// rendered may be needed again.
func TestAStatusThatIsNotWritten(t *testing.T) {
	for name, tt := range map[string]struct {
		changes apply.ChangeSet
		refused bool
		applied string
	}{
		"written":                            {apply.ChangeSet{{}}, false, "d"},
		"not written, something was changed": {apply.ChangeSet{{}}, true, ""},
		"not written, nothing was changed":   {nil, true, "d"},
	} {
		s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
		s.settle()
		s.r.memory.Update("u", func(m *memory) { m.applied, m.rendered = "d", &chart.Rendered{} })
		if tt.refused {
			s.refusals["status of Web"] = errAway
		}
		cr := s.web()
		done := effect{step: Nothing{}, deployed: readDeployed(cr), changes: tt.changes, hookFailure: "something to tell", forget: true}
		if err := s.r.finish(t.Context(), cr, done).Err(); (err != nil) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.r.memory.Get("u").applied; got != tt.applied {
			t.Errorf("%s: what was applied is %q, want %q", name, got, tt.applied)
		}
		if kept := s.r.memory.Get("u").rendered != nil; kept != tt.refused {
			t.Errorf("%s: what was rendered is kept: %t", name, kept)
		}
	}
}

// By which chart a release was made is written down also for one that an operator made which did not write it, once it is known to be
// the same.
func TestByWhatAReleaseWasMadeIsWrittenDown(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	desired := Desired{Digest: "d", Chart: "c", Spec: "s"}
	for name, tt := range map[string]struct {
		seen Snapshot
		want Deployed
	}{
		"the same":       {Snapshot{Deployed: Deployed{Digest: "d"}}, Deployed{Digest: "d", Chart: "c", Spec: "s"}},
		"another one":    {Snapshot{Deployed: Deployed{Digest: "e", Chart: "b"}}, Deployed{Digest: "e", Chart: "b"}},
		"one that goes":  {Snapshot{Deployed: Deployed{Digest: "d", Chart: "b"}, Deleting: true}, Deployed{Digest: "d", Chart: "b"}},
		"nothing is yet": {Snapshot{}, Deployed{}},
	} {
		if got := s.r.act(t.Context(), s.web(), desired, tt.seen, Nothing{}).deployed; got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

const inventedTemplate = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {text: {{ randAlphaNum 20 }}}}`

// What a chart invents is the same for as long as it is the same revision of the same release, and is known as deployed once it is.
func TestWhatAChartInventedIsKept(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, inventedTemplate), Options{})
	s.settle()
	cr := s.web()
	of := func(digest string, revision int64) *chart.Rendered {
		t.Helper()
		rendered, err := s.r.renderOnce(t.Context(), cr, Desired{Digest: digest, Revision: revision})
		if err != nil {
			t.Fatal(err)
		}
		return rendered
	}
	known := func(digest string, revision int64) *chart.Rendered {
		t.Helper()
		rendered, err := s.r.known(t.Context(), cr, Desired{Digest: digest}, revision)
		if err != nil {
			t.Fatal(err)
		}
		return rendered
	}
	first := of("d", 7)
	if of("d", 7) != first {
		t.Error("the same revision is invented anew")
	}
	if known("d", 7) != nil {
		t.Error("what was not deployed is known as deployed")
	}
	s.r.memory.Update("u", func(m *memory) { m.deployed = true })
	if known("d", 7) != first || known("d", 8) != nil || known("e", 7) != nil {
		t.Error("what was deployed is not known, or as another one")
	}
	if of("d", 8) == first {
		t.Error("the next revision is the former one")
	}
	if of("e", 8); known("e", 8) != nil {
		t.Error("what another one had is known as deployed")
	}
}

// Children are looked at once by a reconciliation that changes nothing, and a deletion does not depend on what is seen of them.
func TestHowOftenChildrenAreLookedAt(t *testing.T) {
	s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate), Options{})
	s.settle()
	s.watched = nil
	if s.must(); len(s.watched) != 1 {
		t.Errorf("one child, looked at: %v", s.watched)
	}
	s.deletes()
	s.unwatched = errAway
	if _, err := s.reconcile(); err != nil || s.object(configs, "shop", "web") != nil {
		t.Errorf("it is being deleted: %v", err)
	}
}

// What was another process's for a while is as its status says, and not as this process remembers it.
func TestWhatAnotherProcessHadForAWhile(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.settle()
	s.settle()
	first := s.r
	first.memory.Forget(func(namespace string) bool { return namespace == "shop" })
	s.restart()
	s.asks("{text: z}")
	s.settle()
	s.r = first
	s.wants("idle", append(s.settle(), s.read...))
}
