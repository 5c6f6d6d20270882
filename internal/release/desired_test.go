// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/pause"
	"middleware.hc.cn/operator/internal/watches"
)

// What outlives a resource unless we delete it, or has to run when it goes, needs our finalizer.
func TestWhatNeedsAFinalizer(t *testing.T) {
	hook := func(event, in string) chart.Hook {
		h := job(t, "h", event)
		h.Object.SetNamespace(in)
		return h
	}
	object := func(text string) []*unstructured.Unstructured { return []*unstructured.Unstructured{parse(t, text)} }
	const config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "
	for name, tt := range map[string]struct {
		objects []*unstructured.Unstructured
		hooks   []chart.Hook
		off     []string
		nowhere bool // the resource is in no namespace
		want    bool
		fails   bool
	}{
		"in its namespace":             {objects: object(config + "namespace: shop}}")},
		"in its namespace, by default": {objects: object(config + "}}")},
		"in another namespace":         {objects: object(config + "namespace: other}}"), want: true},
		"kept in another namespace": {objects: object(config +
			"namespace: other, annotations: {helm.sh/resource-policy: keep}}}")},
		"in no namespace":                          {objects: object("{apiVersion: v1, kind: Namespace, metadata: {name: a}}"), want: true},
		"of a resource in no namespace":            {objects: object("{apiVersion: v1, kind: Namespace, metadata: {name: a}}"), nowhere: true},
		"elsewhere, of a resource in no namespace": {objects: object(config + "namespace: other}}"), nowhere: true},
		"of an unknown kind":                       {objects: object("{apiVersion: v1, kind: Unknown, metadata: {name: a}}"), fails: true},
		"a hook before a deletion":                 {hooks: []chart.Hook{hook("pre-delete", "")}, want: true},
		"a hook after a deletion":                  {hooks: []chart.Hook{hook("post-delete", "")}, want: true},
		"one that is switched off":                 {hooks: []chart.Hook{hook("post-delete", "")}, off: []string{"delete"}},
		"another hook":                             {hooks: []chart.Hook{hook("post-install", "")}},
		"a hook elsewhere, at first":               {hooks: []chart.Hook{hook("pre-install", "other")}, want: true},
		"a hook elsewhere, then":                   {hooks: []chart.Hook{hook("post-install", "other")}, want: true},
		"a hook elsewhere, later":                  {hooks: []chart.Hook{hook("pre-upgrade", "other")}, want: true},
		"a hook elsewhere, at last":                {hooks: []chart.Hook{hook("post-upgrade", "other")}, want: true},
		"a test elsewhere":                         {hooks: []chart.Hook{hook("test", "other")}},
	} {
		s := newShop(t, "", "{}", chartOf(t, configTemplate), Options{})
		cr := s.web()
		if tt.nowhere {
			cr.SetNamespace("")
		}
		rendered := &chart.Rendered{Objects: tt.objects, Hooks: tt.hooks}
		got, err := s.r.outOfReach(cr, Desired{Rendered: rendered, WithoutHooks: tt.off})
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %t, %v", name, got, err)
		}
		if len(rendered.Objects) != len(tt.objects) {
			t.Errorf("%s: what was rendered is changed", name)
		}
	}
}

// A resource may have objects where the watch lets it, of the kinds that the chart writes or the watch adds; else nothing is made.
func TestWhatAResourceMayMake(t *testing.T) {
	const elsewhere = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n"
	const root, chosen = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
		"apiVersion: v1\nkind: {{ .Values.kind }}\nmetadata: {name: a}\n"
	for name, tt := range map[string]struct {
		template string
		allow    watches.Allow
		made     string
	}{
		"elsewhere":                      {elsewhere, watches.Allow{}, ""},
		"elsewhere, allowed":             {elsewhere, watches.Allow{Namespaces: []string{"other"}}, "apply ConfigMap other/a"},
		"in no namespace":                {root, watches.Allow{}, ""},
		"in no namespace, allowed":       {root, watches.Allow{ClusterScoped: true}, "apply Namespace a"},
		"of a kind of a value":           {chosen, watches.Allow{}, ""},
		"of a kind of a value, allowed":  {chosen, watches.Allow{Kinds: []string{"Service"}}, "apply Service shop/a"},
		"of another kind than is chosen": {chosen, watches.Allow{Kinds: []string{"Secret"}}, ""},
	} {
		s := newShop(t, "", "{kind: Service}", chartOf(t, tt.template), Options{})
		s.start(s.r.chart, s.r.options,
			watches.Watch{GroupVersionKind: webs, WatchDependentResources: true, Selector: labels.Everything(), Allow: tt.allow})
		got := s.settle()
		if tt.made != "" {
			if !slices.Contains(got, tt.made) {
				t.Errorf("%s: %v, %s", name, got, s.condition("Irreconcilable"))
			}
			s.says(name, map[string]string{"Deployed": "True"})
			continue
		}
		s.says(name, map[string]string{"Irreconcilable": "True RenderFailed", "Deployed": "False"})
		if slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, "apply") }) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The values of a chart are the spec, with the watch's overrides over it, and proxy variables where the watch names a list for them.
func TestValues(t *testing.T) {
	o := Options{Proxy: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "http://proxy"}}}
	for name, tt := range map[string]struct {
		spec      string
		overrides map[string]string
		want      map[string]any
		refused   string // as what is wrong with the resource
		final     string // as what is wrong with the watch
	}{
		"the spec": {spec: "{text: a}", want: map[string]any{"text": "a"}},
		"none":     {spec: "", overrides: map[string]string{"text": "z"}, want: map[string]any{"text": "z"}},
		"nothing":  {spec: "null", refused: "must be an object"},
		"overrides": {spec: "{text: a, b: {c: 1}}", overrides: map[string]string{"text": "z", "b.d": "y"},
			want: map[string]any{"text": "z", "b": map[string]any{"c": int64(1), "d": "y"}}},
		"no object":           {spec: "[a]", refused: "must be an object"},
		"overrides that fail": {spec: "{text: a}", overrides: map[string]string{"text": "{{ fail }}"}, final: "text"},
	} {
		s := newShop(t, "", tt.spec, chartOf(t, configTemplate), o)
		s.start(s.r.chart, s.r.options, watches.Watch{GroupVersionKind: webs, Selector: labels.Everything(), OverrideValues: tt.overrides})
		if tt.spec == "" {
			s.edit(func(o *unstructured.Unstructured) { delete(o.Object, "spec") })
		}
		before := s.web()
		d, err := s.r.desired(t.Context(), before, Snapshot{})
		if (err != nil) != (tt.final != "") || (len(d.Invalid) > 0) != (tt.refused != "") || len(d.Invalid) > 0 &&
			!strings.Contains(d.Invalid[0].Error(), tt.refused) {
			t.Errorf("%s: %v, %v", name, d.Invalid, err)
		}
		if tt.want != nil {
			if diff := cmp.Diff(tt.want, d.Values); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff(s.web(), before); diff != "" {
			t.Errorf("%s: the resource is changed: %s", name, diff)
		}
		s.must()
		if tt.final != "" {
			s.says(name, map[string]string{"Irreconcilable": "True RenderFailed", "Ready": "False RenderFailed"})
		}
	}
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), o)
	s.r.entry.ProxyVariables = "env"
	d, err := s.r.desired(t.Context(), s.web(), Snapshot{})
	if diff := cmp.Diff([]any{map[string]any{"name": "HTTP_PROXY", "value": "http://proxy"}}, d.Values["env"]); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// A chart is rendered only if the digest does not tell that nothing changed.
func TestWhatIsRendered(t *testing.T) {
	plain, hooked := chartOf(t, configTemplate), chartOf(t, configTemplate, hookTemplate("h", "post-install", ""))
	digest := func(c *chart.Chart) string {
		d, err := c.DigestFor(map[string]any{"text": "a"}, chart.Release{Name: "web", Namespace: "shop"}, chart.Capabilities{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	current := func(c *chart.Chart) Snapshot {
		return Snapshot{Deployed: Deployed{Name: "web", Revision: 3, Digest: digest(c)}}
	}
	with := func(s Snapshot, change func(*Snapshot)) Snapshot { change(&s); return s }
	invalid := func(*unstructured.Unstructured) field.ErrorList {
		return field.ErrorList{field.Required(field.NewPath("spec"), "x")}
	}
	for name, tt := range map[string]struct {
		chart    *chart.Chart
		validate func(*unstructured.Unstructured) field.ErrorList
		seen     Snapshot
		want     bool
		revision int64
		digest   string
	}{
		"nothing is deployed": {plain, nil, Snapshot{}, true, 1, digest(plain)},
		"it is deployed":      {plain, nil, current(plain), false, 3, digest(plain)},
		"something else is": {plain, nil, with(current(plain), func(s *Snapshot) { s.Deployed.Digest = "d" }), true, 4,
			digest(plain)},
		"hooks run": {hooked, nil, with(current(hooked), func(s *Snapshot) { s.Hooks.Event = "post-install" }), true, 3, digest(hooked)},
		"paused":    {plain, nil, Snapshot{Paused: true}, false, 1, digest(plain)},
		"invalid":   {plain, invalid, Snapshot{}, false, 1, digest(plain)},
		"deleted": {plain, nil, Snapshot{Deleting: true, Deployed: Deployed{Name: "web", Revision: 3, Digest: "d"},
			Finalizers: []string{Finalizer}}, false, 3, "d"},
		"deleted, with hooks": {hooked, nil, Snapshot{Deleting: true, Deployed: Deployed{Name: "web", Revision: 3, Digest: "d"},
			Finalizers: []string{Finalizer}}, true, 3, "d"},
		"deleted, with hooks and no finalizer": {hooked, nil,
			Snapshot{Deleting: true, Deployed: Deployed{Name: "web", Revision: 3, Digest: "d"}}, false, 3, "d"},
		"deleted, invalid, with hooks": {hooked, invalid, Snapshot{Deleting: true, Finalizers: []string{Finalizer}}, true, 1, ""},
	} {
		s := newShop(t, "", "{text: a}", tt.chart, Options{Validate: tt.validate})
		d, err := s.r.desired(t.Context(), s.web(), tt.seen)
		if err != nil || (d.Rendered != nil) != tt.want || d.Revision != tt.revision || d.Digest != tt.digest || d.Failure != nil {
			t.Errorf("%s: %v, %+v", name, err, d)
		}
	}
}

// What another operator left stays the revision that it is if it was deployed, and if the chart makes the same of it.
func TestARevisionThatAnotherOperatorLeft(t *testing.T) {
	c := chartOf(t, configTemplate, hookTemplate("bye", "pre-delete", "")) // which has to be rendered for a deletion, too
	objects := func(text string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {text: "+text+"}}")}
	}
	for name, tt := range map[string]struct {
		former   Former
		deleting bool
		revision int64
	}{
		"the same":                  {Former{Revision: 4, Complete: true, Objects: objects("a")}, false, 4},
		"something else":            {Former{Revision: 4, Complete: true, Objects: objects("b")}, false, 5},
		"the same, not deployed":    {Former{Revision: 4, Objects: objects("a")}, false, 5},
		"the same, being deleted":   {Former{Revision: 4, Complete: true, Objects: objects("a")}, true, 1},
		"something else, not ended": {Former{Revision: 4, Objects: objects("b")}, false, 5},
	} {
		s := newShop(t, "", "{text: a}", c, Options{})
		d, err := s.r.desired(t.Context(), s.web(), Snapshot{Former: &tt.former, Deleting: tt.deleting, Finalizers: []string{Finalizer}})
		if err != nil || d.Failure != nil || d.Revision != tt.revision {
			t.Errorf("%s: revision %d, want %d (%v, %v)", name, d.Revision, tt.revision, err, d.Failure)
		}
	}
}

// A chart that cannot be rendered is a failure of the resource, of any revision, and not a release without objects.
func TestWhatCannotBeRendered(t *testing.T) {
	const fails = "{{ fail \"no\" }}"
	for name, seen := range map[string]Snapshot{
		"at first":                    {},
		"after another one":           {Deployed: Deployed{Name: "web", Revision: 3, Digest: "d"}},
		"that another operator had":   {Former: &Former{Revision: 4, Complete: true}},
		"that another operator began": {Former: &Former{Revision: 4}},
	} {
		s := newShop(t, "", "{text: a}", chartOf(t, fails), Options{})
		d, err := s.r.desired(t.Context(), s.web(), seen)
		if err != nil || d.Failure == nil || d.Rendered != nil || d.OutOfReach {
			t.Errorf("%s: %v, %+v", name, err, d)
		}
	}
}

// What is invalid is told by its fields, and neither made nor deleted; a deletion goes on all the same.
func TestAnInvalidResource(t *testing.T) {
	s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate), Options{
		Validate: func(cr *unstructured.Unstructured) field.ErrorList {
			if text, _, _ := unstructured.NestedString(cr.Object, "spec", "text"); text == "bad" {
				return field.ErrorList{field.Invalid(field.NewPath("spec", "text"), "bad", "must be good")}
			}
			return nil
		}})
	s.settle()
	s.told()
	s.edit(annotated(ReconcilePeriodAnnotation, "1h"))
	s.asks("{text: bad}")
	s.wants("invalid", s.settle(), "status of Web shop/web: conditions observedGeneration")
	s.says("invalid", map[string]string{"Irreconcilable": `True InvalidSpec: spec.text: Invalid value: "bad": must be good`,
		"Ready":    "False InvalidSpec",
		"Deployed": "True InstallSuccessful", "Stalled": "True InvalidSpec"})
	s.wants("told", s.told(), `Warning InvalidSpec spec.text: Invalid value: "bad": must be good`)
	if result, err := s.reconcile(); err != nil || result.RequeueAfter != 0 || len(s.told()) > 0 {
		t.Errorf("%v, %v", result, err)
	}
	s.deletes()
	if s.settle(); s.web() != nil || s.object(configs, "shop", "web") != nil {
		t.Error("it is not deleted")
	}
}

// How often a resource is looked at without a reason: what its annotation says, else its watch, else the operator.
func TestPeriod(t *testing.T) {
	const hour = time.Hour
	for name, tt := range map[string]struct {
		annotation  string
		watch, flag time.Duration
		lookup      bool
		want        time.Duration
	}{
		"none":                          {want: 0},
		"the operator's":                {flag: hour, want: hour},
		"the watch's":                   {watch: 2 * hour, flag: hour, want: 2 * hour},
		"the resource's":                {annotation: "3h", watch: 2 * hour, flag: hour, want: 3 * hour},
		"the resource's, which is none": {annotation: "0s", watch: 2 * hour, lookup: true, want: 0},
		"nonsense":                      {annotation: "soon", watch: 2 * hour, want: 2 * hour},
		"less than nothing":             {annotation: "-1s", watch: 2 * hour, want: 2 * hour},
		"of a chart that looks":         {lookup: true, want: LookupPeriod},
		"of one, the watch's":           {lookup: true, watch: 2 * hour, want: 2 * hour},
	} {
		c := chartOf(t, configTemplate)
		if tt.lookup {
			c = chartOf(t, sourceTemplate)
		}
		s := newShop(t, "", "{text: a}", c, Options{ReconcilePeriod: tt.flag})
		s.r.entry.ReconcilePeriod = tt.watch
		if tt.annotation != "" {
			s.edit(annotated(ReconcilePeriodAnnotation, tt.annotation))
		}
		s.settle()
		if result, err := s.reconcile(); err != nil || result.RequeueAfter != tt.want {
			t.Errorf("%s: %v, %v, want %s", name, result, err, tt.want)
		}
	}
}

// What a chart asks of the cluster and what cannot be known of it is neither there nor absent: the release stays as it is.
func TestAClusterThatDoesNotAnswer(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, routedTemplate), Options{})
	ask := s.r.cluster.ask
	s.r.cluster.ask = func() (chart.Capabilities, error) { s.r.cluster.ask = ask; return chart.Capabilities{}, errAway }
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.object(configs, "shop", "plain") != nil {
		t.Errorf("it is answered a moment later: %v, %v", err, s.wrote)
	}
	s.asker.err = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.object(configs, "shop", "plain") != nil {
		t.Errorf("%v, %v", err, s.wrote)
	}
	s.says("nobody answers", map[string]string{"ReleaseFailed": "True InstallError: discover the cluster's capabilities"})
	s.asker.err = nil
	s.settle()
	s.asker.err, s.asker.apis, s.clock = errAway, nil, s.clock.Add(capabilitiesFor)
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.object(configs, "shop", "plain") == nil {
		t.Errorf("%v, %v", err, s.wrote)
	}
	s.asker.err, s.asker.apis = nil, []string{"v1"}
	s.settle()
	s.says("somebody answers", map[string]string{"Ready": "True", "Deployed": "True InstallSuccessful"})
	asked := s.asker.asked
	s.asks("{text: y}")
	s.refusals["apply"] = errAway
	_, _ = s.reconcile()
	delete(s.refusals, "apply")
	if s.settle(); s.asker.asked != asked {
		t.Errorf("a failure that says nothing of kinds: asked %d times", s.asker.asked-asked)
	}
	// a kind that was served and is not any more is asked for again
	s.asks("{text: z}")
	s.refusals["apply"] = &noMatch
	if _, err := s.reconcile(); err == nil || s.asker.asked != asked {
		t.Errorf("%v, asked %d times", err, s.asker.asked-asked)
	}
	s.says("the kind is gone", map[string]string{"ReleaseFailed": "True UpgradeError", "Ready": "False UnknownKind"})
	delete(s.refusals, "apply")
	if s.settle(); s.asker.asked != asked+1 {
		t.Errorf("asked %d times", s.asker.asked-asked)
	}
}

// A pause that begins while something is to be done holds all of it.
func TestAPauseFromTheBeginning(t *testing.T) {
	s := newShop(t, "annotations: {"+pause.Annotation+": 'true'}", "{text: a}", chartOf(t, configTemplate), Options{})
	s.wants("paused", s.settle(), "status of Web shop/web: conditions observedGeneration")
	s.says("paused", map[string]string{"Ready": "False PauseReconcileAnnotationTrue", "Paused": "True", "Deployed": "none",
		"Irreconcilable": "none"})
}

var noMatch = meta.NoKindMatchError{GroupKind: configs.GroupKind(), SearchedVersions: []string{"v1"}}
