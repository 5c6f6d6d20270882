// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

const (
	// passwordTemplate is something else each time it is rendered.
	passwordTemplate = `{apiVersion: v1, kind: Secret, metadata: {name: {{ .Release.Name }}}, stringData: {p: {{ randAlphaNum 20 | quote }}}}`
	// keptTemplate looks whether it was made before.
	keptTemplate = `{{ $p := randAlphaNum 20 }}{{ with lookup "v1" "Secret" .Release.Namespace .Release.Name }}{{ $p = .data.p | b64dec }}{{ end }}` +
		`{apiVersion: v1, kind: Secret, metadata: {name: {{ .Release.Name }}}, data: {p: {{ $p | b64enc | quote }}}}`
	// sourceTemplate looks at what somebody else made.
	sourceTemplate = `{{ $o := lookup "v1" "ConfigMap" "shop" "source" }}` +
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}}, data: {text: {{ dig "data" "text" "none" ($o | default dict) | quote }}}}`
)

func (s *shop) password() string {
	s.t.Helper()
	o := s.object(secrets, "shop", "web")
	if o == nil {
		return ""
	}
	for _, field := range []string{"stringData", "data"} {
		if p, found, _ := unstructured.NestedString(o.Object, field, "p"); found {
			return p
		}
	}
	return "nothing"
}

// Trying again makes no other password: not after a failure, not after a change by somebody else, not in another process.
func TestChanceIsTakenOnce(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, passwordTemplate, configTemplate), Options{})
	s.refusals["apply ConfigMap"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	first := s.password()
	delete(s.refusals, "apply ConfigMap")
	s.refusals["create Secret"] = errAway // the history
	s.settle()
	steady := func(what string) {
		t.Helper()
		if got := s.password(); got == "" || got != first {
			t.Errorf("%s: the password was %q and is %q", what, first, got)
		}
	}
	steady("installed after a failure")
	if s.r.memory.Get("u").rendered == nil {
		t.Error("a rendering that is not recorded is forgotten")
	}
	s.remove(secrets, "shop", "web")
	s.settle()
	steady("deleted before it was recorded")
	delete(s.refusals, "create Secret")
	s.settle()
	if s.says("recorded", map[string]string{"HistoryRecorded": "True"}); s.r.memory.Get("u").rendered != nil {
		t.Error("a rendering that is recorded is remembered")
	}
	s.remove(secrets, "shop", "web")
	s.settle()
	steady("deleted after it was recorded")
	s.restart()
	s.remove(secrets, "shop", "web")
	s.settle()
	steady("deleted while nobody looked")
	s.refusals["get Secret shop/sh.helm"] = errAway
	s.change(secrets, "shop", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
	if _, err := s.reconcile(); !errors.Is(err, errAway) {
		t.Errorf("a record that cannot be read is none: %v", err)
	}
	delete(s.refusals, "get Secret shop/sh.helm")
	s.settle()
	steady("once it can be read")
	s.asks("{text: z}")
	if s.settle(); s.password() == first {
		t.Error("a new revision makes everything anew")
	}
}

// A status that could not be written, or was without an answer, does not have a process invent another password.
func TestChanceIsTakenOnceWithoutAStatus(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, passwordTemplate, configTemplate), Options{})
	s.refusals["status of Web shop/web: conditions"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	first := s.password()
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.password() != first {
		t.Errorf("%v, the password was %q and is %q", err, first, s.password())
	}
	delete(s.refusals, "status of Web shop/web: conditions")
	if s.settle(); s.password() != first || s.r.memory.Get("u").rendered != nil {
		t.Errorf("the password was %q and is %q", first, s.password())
	}
	s.says("installed", map[string]string{"HistoryRecorded": "True", "Ready": "True"})
	s.wants("idle", s.settle())
}

// Where the history may not be kept a password that is lost is made anew; the release works all the same.
func TestChanceWithoutHistory(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, passwordTemplate), Options{})
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New("no"))
	s.refusals["create Secret"], s.refusals["get Secret shop/sh"] = forbidden, forbidden
	s.settle()
	s.says("installed", map[string]string{"HistoryRecorded": "False Forbidden", "Ready": "True"})
	s.wants("idle", s.settle())
	if s.r.memory.Get("u").rendered != nil {
		t.Error("it is remembered for ever")
	}
	first := s.password()
	s.restart()
	s.wants("another process does not know what it was", s.settle())
	s.says("started", map[string]string{"HistoryRecorded": "False Forbidden", "Ready": "True"})
	delete(s.refusals, "create Secret")
	delete(s.refusals, "get Secret shop/sh")
	s.restart()
	s.settle()
	s.says("allowed", map[string]string{"HistoryRecorded": "False RenderingLost", "Ready": "True"})
	s.wants("idle", s.settle())
	if s.password() != first || s.object(secrets, "shop", chart.StoredName("web", 1)) != nil {
		t.Errorf("the password was %q and is %q, and is recorded", first, s.password())
	}
	s.refusals["create Secret"], s.refusals["get Secret shop/sh"] = forbidden, forbidden
	s.remove(secrets, "shop", "web")
	if s.settle(); s.password() == first || s.password() == "" {
		t.Errorf("the password is %q", s.password())
	}
	s.says("repaired", map[string]string{"HistoryRecorded": "False RenderingLost", "Ready": "True", "Deployed": "True InstallSuccessful"})
}

// A status that cannot be written while nothing is to be done has nothing made anew, recorded or not.
func TestChanceOutlivesAStatusAtRest(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		s := newShop(t, "", "{text: a}", chartOf(t, passwordTemplate, deploymentTemplate), Options{})
		if !recorded {
			forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New("no"))
			s.refusals["create Secret"], s.refusals["get Secret shop/sh"] = forbidden, forbidden
		}
		s.settle()
		s.sets(deployments, "web", "{observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}")
		s.settle()
		first := s.password()
		s.sets(deployments, "web", "{observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 0}")
		s.refusals["status"] = errAway
		for range 3 {
			if _, err := s.reconcile(); !errors.Is(err, errAway) {
				t.Fatal(err)
			}
		}
		delete(s.refusals, "status")
		if s.settle(); s.password() != first || first == "" {
			t.Errorf("recorded %t: the password was %q and is %q", recorded, first, s.password())
		}
	}
}

// What is rendered anew for the hooks that are left, after a start, is not what was applied, and is not recorded.
func TestChanceOfHooksIsNotRecorded(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, passwordTemplate, hookTemplate("h", "post-install", "")), Options{})
	s.refusals["create Secret"] = errAway // the history
	for s.object(jobs, "shop", "h") == nil {
		s.must()
	}
	s.restart()
	s.settle()
	delete(s.refusals, "create Secret")
	s.sets(jobs, "h", `{conditions: [{type: Complete, status: "True"}]}`)
	s.settle()
	s.says("the hook has run", map[string]string{"HistoryRecorded": "False RenderingLost"})
	if s.object(secrets, "shop", chart.StoredName("web", 1)) != nil {
		t.Error("it is recorded")
	}
	s.wants("idle", s.settle())
}

// A chart that looks whether it made something before is settled once it has, and leaves it as it is in later revisions.
func TestAChartThatLooksAtWhatItMade(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, keptTemplate, configTemplate), Options{})
	s.settle()
	first := s.password()
	for range 3 {
		s.wants("idle", s.settle())
	}
	s.restart()
	s.settle()
	s.wants("idle after a start", s.settle())
	s.asks("{text: z}")
	s.settle()
	s.says("upgraded", map[string]string{"Deployed": "True UpgradeSuccessful: revision 2"})
	if s.password() != first || first == "" {
		t.Errorf("the password was %q and is %q", first, s.password())
	}
	s.wants("idle", s.settle())
}

// What a chart looks at is looked at again after a while; a change of it is a new revision, and no answer is not an absence.
func TestAChartThatLooksAtOthers(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, sourceTemplate), Options{})
	text := func() any { return s.object(configs, "shop", "web").Object["data"].(map[string]any)["text"] }
	if s.settle(); text() != "none" {
		t.Errorf("it says %v", text())
	}
	source := &corev1.ConfigMap{Data: map[string]string{"text": "there"}}
	source.Namespace, source.Name = "shop", "source"
	if err := s.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if s.says("it came", map[string]string{"Deployed": "True UpgradeSuccessful: revision 2"}); text() != "there" {
		t.Errorf("it says %v", text())
	}
	result, err := s.reconcile()
	if err != nil || result.RequeueAfter != LookupPeriod {
		t.Errorf("%v, %v", result, err)
	}
	looked := s.r.memory.Get("u").looked
	s.must()
	if now := s.r.memory.Get("u").looked; looked == nil || now != looked {
		t.Error("it is rendered again")
	}
	s.wants("idle", append(s.wrote, s.read...), "get ConfigMap shop/source") // and is not rendered for it
	s.refusals["get ConfigMap shop/source"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) || text() != "there" {
		t.Errorf("%v, it says %v", err, text())
	}
	s.says("nobody answers", map[string]string{"ReleaseFailed": "True UpgradeError: ", "Deployed": "True", "Ready": "False"})
	delete(s.refusals, "get ConfigMap shop/source")
	s.wants("somebody answers", s.settle(), "status of Web shop/web: conditions")
	s.remove(configs, "shop", "source")
	if s.settle(); text() != "none" {
		t.Errorf("it says %v", text())
	}
}

// A chart sees what its resource may have objects in, and what the watch adds.
func TestWhatLookupMayRead(t *testing.T) {
	own, elsewhere := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	own.Namespace, own.Name, elsewhere.Namespace, elsewhere.Name = "shop", "a", "other", "b"
	for _, tt := range []struct {
		kind, namespace, name string
		allow                 watches.Allow
		found                 string // the names of what is found
		refused               string
	}{
		{"ConfigMap", "shop", "a", watches.Allow{}, "a", ""},
		{"ConfigMap", "shop", "b", watches.Allow{}, "", ""},
		{"ConfigMap", "shop", "", watches.Allow{}, "a", ""},
		{"ConfigMap", "other", "b", watches.Allow{}, "", `it reads namespace "other"`},
		{"ConfigMap", "other", "", watches.Allow{}, "", `it reads namespace "other"`},
		{"ConfigMap", "other", "b", watches.Allow{Namespaces: []string{"third"}}, "", `it reads namespace "other"`},
		{"ConfigMap", "other", "b", watches.Allow{Namespaces: []string{"other"}}, "b", ""},
		{"ConfigMap", "other", "", watches.Allow{Namespaces: []string{"*"}}, "b", ""},
		{"ConfigMap", "", "", watches.Allow{}, "", "it reads all namespaces"},
		{"ConfigMap", "", "", watches.Allow{ClusterScoped: true}, "", "it reads all namespaces"},
		{"ConfigMap", "", "", watches.Allow{Namespaces: []string{"other"}}, "", "it reads all namespaces"},
		{"ConfigMap", "", "", watches.Allow{Namespaces: []string{"*"}}, "b a", ""},
		{"Namespace", "", "shop", watches.Allow{}, "", "the kind is cluster-scoped"},
		{"Namespace", "", "shop", watches.Allow{Namespaces: []string{"*"}}, "", "the kind is cluster-scoped"},
		{"Namespace", "", "shop", watches.Allow{ClusterScoped: true}, "shop", ""},
		{"Namespace", "", "", watches.Allow{ClusterScoped: true}, "shop", ""},
		{"Namespace", "other", "shop", watches.Allow{ClusterScoped: true}, "", ""},
		{"Unknown", "shop", "a", watches.Allow{}, "", "find the scope of /v1, Kind=Unknown"},
	} {
		s := newShop(t, "", "{}", chartOf(t, configTemplate), Options{}, own.DeepCopy(), elsewhere.DeepCopy(), namespace("shop"))
		s.start(s.r.chart, s.r.options, watches.Watch{GroupVersionKind: webs, Selector: labels.Everything(), Allow: tt.allow})
		found, err := s.r.lookupLive(t.Context(), s.web())("v1", tt.kind, tt.namespace, tt.name)
		var names []string
		if tt.name != "" && found != nil {
			names = append(names, (&unstructured.Unstructured{Object: found}).GetName())
		} else if items, listed := found["items"].([]any); listed {
			for _, item := range items {
				names = append(names, (&unstructured.Unstructured{Object: item.(map[string]any)}).GetName())
			}
		}
		if strings.Join(names, " ") != tt.found || (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(),
			tt.refused) {
			t.Errorf("%+v: found %q, %v", tt, names, err)
		}
		if tt.refused != "" && len(s.read) > 0 {
			t.Errorf("%+v: it was read", tt)
		}
	}
	s := newShop(t, "", "{}", chartOf(t, configTemplate), Options{})
	look := s.r.lookupLive(t.Context(), s.web())
	for request, says := range map[string]string{"get ConfigMap": "read ConfigMap a", "list": "list ConfigMap"} {
		s.refusals = map[string]error{request: errAway}
		if _, err := look("v1", "ConfigMap", "shop", strings.TrimPrefix("a", map[bool]string{true: "a"}[request == "list"])); !errors.Is(err,
			errAway) ||
			!strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v", request, err)
		}
	}
	if _, err := look("a/b/c", "ConfigMap", "shop", "a"); err == nil || !strings.Contains(err.Error(), "a/b/c") {
		t.Error("an API version that is none is read")
	}
}

// A lookup that is refused is told as what is wrong with the chart or its watch.
func TestALookupThatIsRefusedIsTold(t *testing.T) {
	s := newShop(t, "", "{}", chartOf(t, `{{ $_ := lookup "v1" "Secret" "kube-system" "root" }}`+configTemplate), Options{})
	s.settle()
	s.says("refused", map[string]string{"Irreconcilable": "True RenderFailed: ", "Stalled": "True RenderFailed"})
	if message := s.condition("Irreconcilable"); !strings.Contains(message, "allow.namespaces") {
		t.Errorf("it says %s", message)
	}
	if s.object(configs, "shop", "web") != nil {
		t.Error("something is made")
	}
}

// What was applied and recorded, and is not what is asked for any more, is not what the next attempt at this revision applies.
func TestARecordIsNotWhatIsAskedFor(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, passwordTemplate, configTemplate), Options{})
	s.settle()
	s.asks("{text: y}")
	s.refusals["status of Web shop/web: conditions"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.object(secrets, "shop", chart.StoredName("web", 2)) == nil {
		t.Fatalf("%v, wrote %v", err, s.wrote)
	}
	delete(s.refusals, "status of Web shop/web: conditions")
	s.asks("{text: z}")
	if s.settle(); s.text("web") != "z" {
		t.Errorf("it says %v", s.text("web"))
	}
	s.says("then", map[string]string{"Deployed": "True UpgradeSuccessful: revision 2"})
}

// Whichever answer of the cluster is missing, one or all from then on: nothing is made without it, and a revision whose digest is not known
// is not noted as deployed, for its record and its hooks are to come. Only what tells whether something has changed is asked once more.
func TestWhicheverAnswerIsMissing(t *testing.T) {
	for name, template := range map[string]string{"a chart that looks at what it made": keptTemplate, "at what others made": sourceTemplate} {
		for _, all := range []bool{false, true} {
			unnoticed, calls := 0, 0
			for last := 1; calls >= last-1; last++ {
				s := newShop(t, "", "{text: a}", chartOf(t, template, hookTemplate("h", "post-install", "")), Options{})
				look := s.r.lookup
				s.r.lookup = func(ctx context.Context, cr *unstructured.Unstructured) chart.Lookup {
					answer := look(ctx, cr)
					return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
						if calls++; calls == last || all && calls > last {
							return nil, errAway
						}
						return answer(apiVersion, kind, namespace, name)
					}
				}
				calls = 0
				_, err := s.reconcile()
				if err != nil && (calls < last || !errors.Is(err, errAway)) {
					t.Errorf("%s, answer %d: %v", name, last, err)
				}
				if err == nil && calls >= last {
					unnoticed++
				}
				if deployed := readDeployed(s.web()).Revision; err != nil && deployed > 0 {
					t.Errorf("%s, answer %d: revision %d is said to be deployed", name, last, deployed)
				}
				s.r.lookup = look
				s.settle()
				s.says(name, map[string]string{"Deployed": "True InstallSuccessful: revision 1", "HistoryRecorded": "True"})
				if s.object(jobs, "shop", "h") == nil {
					t.Errorf("%s, answer %d: the hook does not run", name, last)
				}
			}
			if want := map[bool]int{false: 1}[all]; unnoticed != want {
				t.Errorf("%s: %d answers are not missed, want %d", name, unnoticed, want)
			}
		}
	}
}

// A chart that looks at others and prints its revision is no other one for a process that begins.
func TestAChartThatLooksAndPrintsItsRevision(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, `{{ $_ := lookup "v1" "ConfigMap" "shop" "source" }}`+"apiVersion: v1\nkind: ConfigMap\n"+
		"metadata: {name: web}\ndata: {text: {{ printf \"%s %d\" .Values.text .Release.Revision | quote }}}\n"), Options{})
	s.settle()
	s.asks("{text: z}")
	for range 2 {
		if s.settle(); s.text("web") != "z 2" {
			t.Errorf("it says %v", s.text("web"))
		}
		s.says("upgraded", map[string]string{"Deployed": "True UpgradeSuccessful: revision 2"})
		s.restart()
	}
}
