// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/watches"
)

// newerTemplate is configTemplate of a newer chart.
const newerTemplate = `{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}}, data: {text: {{ .Values.text | quote }}, new: x}}`

var oneAfterTheOther = Options{Waves: fleet.Options{Canaries: 1, Wave: 1, Pause: time.Minute, Stuck: time.Hour}}

// other reconciles the resource other of namespace shop until nothing is to be done at once.
func (s *shop) other() {
	s.t.Helper()
	for range 50 {
		result, err := s.r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "other"}})
		if err != nil {
			s.t.Fatal(err)
		}
		if result.RequeueAfter == 0 || result.RequeueAfter > goOn {
			return
		}
	}
	s.t.Fatal("there is no end to it")
}

// new reports which of the two resources have what the newer chart makes.
func (s *shop) new() (names []string) {
	s.t.Helper()
	for _, name := range []string{"web", "other"} {
		if object := s.object(configs, "shop", name); object != nil {
			if text, _, _ := unstructured.NestedString(object.Object, "data", "new"); text != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// twoOfAFormerChart are two resources, and an operator that has another chart than the one which made them.
func twoOfAFormerChart(t *testing.T) *shop {
	t.Helper()
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), oneAfterTheOther)
	other := parse(t, "{apiVersion: example.com/v1, kind: Web, metadata: {name: other, namespace: shop, uid: o, generation: 1}, spec: {text: a}}")
	if err := s.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.settle()
	s.other()
	s.start(chartOf(t, newerTemplate), s.r.options, s.r.entry)
	return s
}

// What is new in the operator reaches one resource, and the next when the first has been ready with it for a while, whatever happens to the
// process in between. Until then a resource is as it was, Ready, and nothing is written for it again and again.
func TestResourcesTakeWhatIsNewInTurn(t *testing.T) {
	t.Run("one process", func(t *testing.T) { takeInTurn(t, false) })
	t.Run("another process", func(t *testing.T) { takeInTurn(t, true) })
}

func takeInTurn(t *testing.T, restarts bool) {
	t.Helper()
	s := twoOfAFormerChart(t)
	s.settle()
	s.other()
	first := s.new()
	if len(first) != 1 {
		t.Fatalf("have taken it at once: %v", first)
	}
	look := func() {
		s.settle()
		s.other()
	}
	look()
	if got := s.new(); !slices.Equal(got, first) {
		t.Errorf("have taken it without a pause: %v", got)
	}
	waits := "other"
	if first[0] == waits {
		waits = "web"
	}
	waiting := s.object(webs, "shop", waits)
	if c := condition(waiting, TypeUpgraded); c == nil || c.Reason != ReasonWaitsForTurn ||
		condition(waiting, TypeReady).Status != metav1.ConditionTrue {
		t.Errorf("%s waits and says %+v", waits, c)
	}
	if restarts {
		s.restart()
	}
	s.clock = s.clock.Add(30 * time.Second)
	if waits == "other" {
		s.other() // which is the first to ask of that process
	}
	look()
	version := s.object(webs, "shop", waits).GetResourceVersion()
	look()
	if got := s.object(webs, "shop", waits).GetResourceVersion(); got != version {
		t.Error("a resource that waits is written again and again")
	}
	if got := s.new(); !slices.Equal(got, first) {
		t.Errorf("have taken it after half of the pause, and a restart: %v", got)
	}
	s.clock = s.clock.Add(time.Minute)
	look()
	if got := s.new(); len(got) != 2 {
		t.Errorf("have taken it after the pause: %v", got)
	}
	s.says("all have", map[string]string{"Upgraded": "True UpToDate", "Ready": "True"})
	look()
	version = s.web().GetResourceVersion()
	s.clock = s.clock.Add(time.Hour)
	look()
	if s.web().GetResourceVersion() != version {
		t.Error("a resource at rest is written")
	}
}

// A resource does not wait when its author changes it, or when only the new chart can put back what somebody deleted.
func TestWhatDoesNotWaitForItsTurn(t *testing.T) {
	for name, happens := range map[string]func(*shop){
		"its spec is changed":   func(s *shop) { s.asks("{text: b}") },
		"its object is deleted": func(s *shop) { s.remove(configs, "shop", "web") },
		"it is not ready, for long": func(s *shop) {
			s.edit(func(o *unstructured.Unstructured) {
				list := []any{map[string]any{"type": "Ready", "status": "False", "reason": "R", "message": "m",
					"lastTransitionTime": s.clock.Add(-givenUp).UTC().Format(time.RFC3339)}}
				_ = unstructured.SetNestedSlice(o.Object, list, "status", "conditions")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoOfAFormerChart(t)
			s.other() // who asks first has the first turn
			if s.settle(); slices.Contains(s.new(), "web") {
				t.Fatal("it has not waited for its turn")
			}
			happens(s)
			if s.settle(); !slices.Contains(s.new(), "web") {
				t.Errorf("it waits: %s", s.condition(TypeUpgraded))
			}
		})
	}
}

// Where the API server drops the turn, a resource does not wait for one that is never written down.
func TestTurnsThatAreNotKept(t *testing.T) {
	s := twoOfAFormerChart(t)
	s.r.noTurns.Store(true)
	s.settle()
	s.other()
	if got := s.new(); len(got) != 2 {
		t.Errorf("have taken it: %v", got)
	}
	if d := readDeployed(s.web()); d.Chart != "" || d.Spec != "" || d.Turn != (Turn{}) {
		t.Errorf("it is written again and again: %+v", d)
	}
	s.wants("idle", s.settle())
}

// tellLess takes a condition out of a status.
func tellLess(t *testing.T, cr *unstructured.Unstructured, name string) {
	t.Helper()
	list, _, err := unstructured.NestedSlice(cr.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	list = slices.DeleteFunc(list, func(c any) bool { return c.(map[string]any)["type"] == name })
	if err := unstructured.SetNestedSlice(cr.Object, list, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
}

// Nobody waits for one that is gone, or is another operator's from now on.
func TestNobodyWaitsForOneThatIsGone(t *testing.T) {
	mine, err := labels.Parse("of!=another")
	if err != nil {
		t.Fatal(err)
	}
	for name, happens := range map[string]func(*shop){
		"deleted": func(s *shop) { s.remove(webs, "shop", "other") },
		"not selected": func(s *shop) {
			s.change(webs, "shop", "other", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"of": "another"}) })
		},
		"not selected, in a new process": func(s *shop) {
			s.change(webs, "shop", "other", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"of": "another"}) })
			s.restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoOfAFormerChart(t)
			s.r.entry.Selector = mine
			s.other()
			if s.settle(); !slices.Equal(s.new(), []string{"other"}) {
				t.Fatalf("have taken it: %v", s.new())
			}
			happens(s)
			s.other()
			if s.settle(); !slices.Contains(s.new(), "web") {
				t.Errorf("it waits: %s", s.condition(TypeUpgraded))
			}
		})
	}
}

// Which resources wait is set up by the options, and what a process that works on some of them is told of the others.
func TestWavesOfOptions(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	if s.r.waves.fleet != nil || s.r.waves.chart == "" {
		t.Errorf("without canaries: %+v", s.r.waves)
	}
	o := oneAfterTheOther
	var asked []string
	o.Turns = func(kind, chart string) fleet.Ledger {
		asked = append(asked, kind, chart)
		return struct{ fleet.Ledger }{}
	}
	s.start(s.r.chart, o, s.r.entry)
	got := s.r.waves.fleet
	if want := []string{"Web.example.com", s.r.waves.chart}; got.Ledger == nil || !slices.Equal(asked, want) {
		t.Errorf("the ledger of %v, want %v", asked, want)
	}
	if got.Options.Share != leastShare || got.Options.Canaries != 1 {
		t.Errorf("%+v", got.Options)
	}
	if err := metrics.Register(); err != nil {
		t.Fatal(err)
	}
	got.Told(fleet.Verdict{Waiting: 4, Upgrading: 3, Done: 2, Failed: 1})
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if strings.HasSuffix(family.GetName(), "_fleet_objects") && m.GetLabel()[0].GetValue() == "Web.example.com" {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	if sum != 4+3+2+1 {
		t.Errorf("gauges of the fleet have %v", sum)
	}
}

// unlisted refuses to list.
type unlisted struct{ client.Reader }

func (unlisted) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no list")
}

// Without knowing the others a resource does not take its turn; nor does it ask while it is not ready, since the change would be blamed.
func TestWhoAsksForATurn(t *testing.T) {
	s := twoOfAFormerChart(t)
	cr, ready := s.web(), &metav1.Condition{Type: TypeReady, Status: metav1.ConditionTrue}
	want := TakeTurn{Why: "it takes its turn when it is ready", Again: askSoonest}
	for name, is := range map[string]*metav1.Condition{"nobody looked": nil, "not ready": {Type: TypeReady, Status: metav1.ConditionFalse}} {
		if step, err := s.r.turn(cr, Snapshot{Ready: is}); err != nil || step != want {
			t.Errorf("%s: %+v, %v", name, step, err)
		}
	}
	reader := s.r.reader
	s.r.reader = unlisted{reader}
	if _, err := s.reconcile(); err == nil || !strings.Contains(err.Error(), "list resources of kind Web: no list") {
		t.Errorf("the others are not known: %v", err)
	}
	s.r.reader = reader
	if step, err := s.r.turn(cr, Snapshot{Ready: ready}); err != nil || step != (TakeTurn{Wave: 1, Again: goOn}) {
		t.Errorf("the first: %+v, %v", step, err)
	}
	s.other() // whom this process knows since then
	other := s.object(webs, "shop", "other")
	first, err := s.r.turn(other, Snapshot{Ready: ready})
	if turn, is := first.(TakeTurn); err != nil || !is || turn.Why == "" || turn.Stopped || turn.Again != askSoonest {
		t.Errorf("the second: %+v, %v", first, err)
	}
	s.r.waves.fleet.Forget("u")
	s.r.waves.fleet.Report(fleet.Member{UID: "x", Namespace: "shop", Name: "x", State: fleet.Upgrading, TurnAt: s.clock})
	if again, err := s.r.turn(other, Snapshot{Ready: ready}); err != nil || again != first {
		t.Errorf("it tells each change of the others: %+v, %v, before %+v", again, err, first)
	}
}

// A release keeps the turn that it took, and it is over when the resource is ready with all that it made.
func TestTurnOf(t *testing.T) {
	const is, isNot = metav1.ConditionTrue, metav1.ConditionFalse
	turn := Turn{Chart: "new", Spec: "s", Wave: 2, At: now.Add(-time.Hour)}
	done := turn
	done.DoneAt = now.Add(-time.Minute)
	took := effect{deployed: Deployed{Chart: "new", Turn: turn}}
	for name, tt := range map[string]struct {
		e     effect
		ready metav1.ConditionStatus
		want  time.Time
	}{
		"it is ready":                 {took, is, now},
		"it is not ready":             {took, isNot, time.Time{}},
		"it has not taken it":         {effect{deployed: Deployed{Chart: "old", Turn: turn}}, is, time.Time{}},
		"it was ready before":         {effect{deployed: Deployed{Chart: "new", Turn: done}}, is, done.DoneAt},
		"the cache is behind":         {effect{deployed: took.deployed, lagging: true}, is, time.Time{}},
		"a child is behind":           {effect{deployed: took.deployed, children: []Child{{}, {Behind: true}}}, is, time.Time{}},
		"no child is behind":          {effect{deployed: took.deployed, children: []Child{{}}}, is, now},
		"it has no turn, nor a chart": {effect{}, is, time.Time{}},
	} {
		readiness := []metav1.Condition{{Type: TypeReady, Status: tt.ready}}
		want := tt.e.deployed.Turn
		want.DoneAt = tt.want.UTC()
		if got := tt.e.turnOf(readiness, now); got != want {
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(want, got))
		}
	}
}

func TestUpgradedCondition(t *testing.T) {
	told := parse(t, "{apiVersion: example.com/v1, kind: Web, status: {conditions: [{type: Upgraded, status: 'False', reason: R, lastTransitionTime: '2026-01-01T00:00:00Z'}]}}")
	never := parse(t, "{apiVersion: example.com/v1, kind: Web, status: {}}")
	waits := func(wave int, stopped bool) Step { return TakeTurn{Wave: wave, Stopped: stopped, Why: "w"} }
	const itsTurn, upToDate = "False Upgrading: it is the turn of this object", "True UpToDate: "
	for name, tt := range map[string]struct {
		cr               *unstructured.Unstructured
		step             Step
		is, made, turned string // the charts of the operator, of the release, and of its turn
		want             string
	}{
		"it waits":                            {never, waits(0, false), "new", "old", "", "False WaitsForTurn: w"},
		"others are not well":                 {never, waits(0, true), "new", "old", "", "False UpgradeStopped: w"},
		"it has its turn":                     {told, waits(1, false), "new", "old", "new", itsTurn},
		"it has its turn, whatever others do": {told, waits(1, true), "new", "old", "new", itsTurn},
		"it takes it":                         {told, Nothing{}, "new", "old", "new", itsTurn},
		"it took it":                          {told, Nothing{}, "new", "new", "new", upToDate},
		"it took it and was never told of":    {never, Nothing{}, "new", "new", "new", upToDate},
		"its author was first":                {told, Nothing{}, "new", "new", "", upToDate},
		"it was made by this chart":           {never, Nothing{}, "new", "new", "", ""},
		"its turn was for a former chart":     {told, Nothing{}, "new", "old", "former", ""},
		"it has none":                         {told, Nothing{}, "new", "old", "", ""},
		"nothing is known of what makes it":   {told, Nothing{}, "", "", "", ""},
		"nothing is known, but what made it":  {told, Nothing{}, "", "old", "", ""},
	} {
		done := effect{step: tt.step, chart: tt.is, deployed: Deployed{Chart: tt.made, Turn: Turn{Chart: tt.turned}}}
		var got string
		for _, c := range upgradedCondition(tt.cr, done) {
			if c.Type != TypeUpgraded {
				t.Errorf("%s: a condition %s", name, c.Type)
			}
			got += string(c.Status) + " " + c.Reason + ": " + c.Message
		}
		if got != tt.want {
			t.Errorf("%s: it says %q, want %q", name, got, tt.want)
		}
	}
}

// The spec that a release was made of is what it was when it was made: not what it is now that nothing is to be made.
func TestReleaseIsMadeBy(t *testing.T) {
	cr := parse(t, "{apiVersion: example.com/v1, kind: Web, spec: {text: now}}")
	is := specOf(cr)
	if untold := specOf(&unstructured.Unstructured{Object: map[string]any{"spec": make(chan int)}}); untold != "" || is == "" {
		t.Errorf("what cannot be written is identified as %q", untold)
	}
	made, byAnother := Deployed{Digest: "d", Chart: "c", Spec: "then"}, Deployed{Digest: "d", Chart: "b", Spec: "then"}
	for name, tt := range map[string]struct {
		fleet    *fleet.Fleet
		noTurns  bool
		digest   string
		deployed Deployed
		want     Desired
	}{
		"it is to be made":           {&fleet.Fleet{}, false, "e", made, Desired{InWaves: true, Chart: "c", Spec: is}},
		"it is made":                 {&fleet.Fleet{}, false, "d", made, Desired{InWaves: true, Chart: "c", Spec: "then"}},
		"it is made, by another one": {&fleet.Fleet{}, false, "d", byAnother, Desired{InWaves: true, Chart: "c", Spec: is}},
		"turns are not kept":         {&fleet.Fleet{}, true, "d", made, Desired{Chart: "c", Spec: "then"}},
		"there are no waves":         {nil, false, "d", made, Desired{Chart: "c", Spec: "then"}},
	} {
		r := &Reconciler{waves: waves{fleet: tt.fleet, chart: "c"}}
		r.noTurns.Store(tt.noTurns)
		d := Desired{Digest: tt.digest}
		tt.want.Digest = tt.digest
		if r.madeBy(cr, Snapshot{Deployed: tt.deployed}, &d); !cmp.Equal(d, tt.want) {
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(tt.want, d))
		}
	}
}

// What the operator gives a chart is a part of what it makes a release by: another proxy reaches resources in turn, if they ask for it.
func TestIdentityOfAChart(t *testing.T) {
	c := chartOf(t, configTemplate)
	var plain watches.Watch
	proxied, overridden := watches.Watch{ProxyVariables: "env"}, watches.Watch{OverrideValues: map[string]string{"text": "b"}}
	none, some := Options{}, Options{Proxy: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "http://p"}}}
	identity := func(c *chart.Chart, w watches.Watch, o Options) string {
		t.Helper()
		id, err := identityOf(c, w, o)
		if err != nil || len(id) != 16 {
			t.Fatal(id, err)
		}
		return id
	}
	is := identity(c, plain, none)
	if identity(c, plain, some) != is {
		t.Error("a proxy that no resource of the kind has makes it another one")
	}
	others := map[string]bool{is: true}
	for _, id := range []string{identity(c, proxied, none), identity(c, proxied, some), identity(c, overridden, none),
		identity(chartOf(t, newerTemplate), plain, none)} {
		if others[id] {
			t.Error("two of them are the same")
		}
		others[id] = true
	}
}

func TestReleaseIsHeld(t *testing.T) {
	r := &Reconciler{options: Options{Now: func() time.Time { return now }}, chart: chartOf(t, configTemplate)}
	ready := func(status metav1.ConditionStatus, since time.Duration) *metav1.Condition {
		return &metav1.Condition{Type: TypeReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-since))}
	}
	for name, tt := range map[string]struct {
		change func(*Desired, *Snapshot)
		held   bool
	}{
		"only the chart is another one":  {func(*Desired, *Snapshot) {}, true},
		"there are no waves":             {func(d *Desired, _ *Snapshot) { d.InWaves = false }, false},
		"the spec is another one":        {func(d *Desired, _ *Snapshot) { d.Spec = "changed" }, false},
		"the chart is the same":          {func(d *Desired, _ *Snapshot) { d.Chart = "old" }, false},
		"nothing is recorded of it":      {func(_ *Desired, s *Snapshot) { s.Deployed.Chart, s.Deployed.Spec = "", "" }, false},
		"nothing is deployed":            {func(_ *Desired, s *Snapshot) { s.Deployed = Deployed{} }, false},
		"its digest is not known":        {func(_ *Desired, s *Snapshot) { s.Deployed.Digest = "" }, false},
		"its chart is not known":         {func(_ *Desired, s *Snapshot) { s.Deployed.Chart = "" }, false},
		"its spec is not known":          {func(d *Desired, s *Snapshot) { d.Spec, s.Deployed.Spec = "", "" }, false},
		"its turn has come":              {func(_ *Desired, s *Snapshot) { s.Deployed.Turn = Turn{Chart: "new", Spec: "s"} }, false},
		"its turn was for another chart": {func(_ *Desired, s *Snapshot) { s.Deployed.Turn = Turn{Chart: "newer", Spec: "s"} }, true},
		"its turn was for another spec":  {func(_ *Desired, s *Snapshot) { s.Deployed.Turn = Turn{Chart: "new", Spec: "t"} }, true},
		"an object was changed":          {func(_ *Desired, s *Snapshot) { s.Drifted = []apply.Ref{deployment} }, false},
		"hooks run":                      {func(_ *Desired, s *Snapshot) { s.Hooks.Event = "post-upgrade" }, false},
		"it was never looked at":         {func(_ *Desired, s *Snapshot) { s.Ready = nil }, false},
		"it is not ready since now":      {func(_ *Desired, s *Snapshot) { s.Ready = ready(metav1.ConditionFalse, time.Minute) }, true},
		"it is not ready, for long":      {func(_ *Desired, s *Snapshot) { s.Ready = ready(metav1.ConditionFalse, givenUp) }, false},
		"it is paused":                   {func(_ *Desired, s *Snapshot) { s.Paused = true }, false},
		"it is deleted":                  {func(_ *Desired, s *Snapshot) { s.Deleting = true }, false},
	} {
		d := Desired{InWaves: true, Chart: "new", Spec: "s", Digest: "e"}
		seen := Snapshot{Deployed: Deployed{Digest: "d", Chart: "old", Spec: "s"}, Ready: ready(metav1.ConditionTrue, time.Hour)}
		tt.change(&d, &seen)
		if got := d.held(seen, now); got != tt.held {
			t.Errorf("%s: held is %v", name, got)
		}
		if tt.held && r.mustRender(d, seen) {
			t.Errorf("%s: what waits is rendered", name)
		}
	}
}

func TestReleaseIsMember(t *testing.T) {
	web := func(upgraded, ready metav1.ConditionStatus, d Deployed) *unstructured.Unstructured {
		cr := parse(t, "{apiVersion: example.com/v1, kind: Web, metadata: {name: web, namespace: shop, uid: u}, spec: {text: a}}")
		condition := func(name string, status metav1.ConditionStatus) any {
			return map[string]any{"type": name, "status": string(status), "reason": "R", "lastTransitionTime": now.Format(time.RFC3339)}
		}
		if d.Spec == "" {
			d.Spec = specOf(cr)
		}
		if d.Turn.Chart != "" && d.Turn.Spec == "" {
			d.Turn.Spec = d.Spec
		}
		cr.Object["status"] = map[string]any{"deployedRelease": d.write(),
			"conditions": []any{condition(TypeUpgraded, upgraded), condition(TypeReady, ready)}}
		return cr
	}
	const is, isNot = metav1.ConditionTrue, metav1.ConditionFalse
	turn := Turn{Chart: "new", Wave: 2, At: now.Add(-time.Hour)}
	done := turn
	done.DoneAt = now.Add(-time.Minute)
	upgrading := fleet.Member{State: fleet.Upgrading, Wave: 2, TurnAt: turn.At}
	well := fleet.Member{State: fleet.Done, Wave: 2, TurnAt: turn.At, DoneAt: done.DoneAt}
	unwell := well
	unwell.UnwellSince = now
	nothing := parse(t, "{apiVersion: example.com/v1, kind: Web, metadata: {name: web, namespace: shop, uid: u}}")
	deleted := web(isNot, is, Deployed{Chart: "old"})
	deleted.SetDeletionTimestamp(&metav1.Time{Time: now})
	neverTold := web(isNot, is, Deployed{Chart: "old"})
	tellLess(t, neverTold, TypeUpgraded)
	notLookedAt := web(is, is, Deployed{Chart: "new", Turn: done})
	tellLess(t, notLookedAt, TypeReady)
	noTime := turn
	noTime.At = time.Time{}
	former := done
	former.Chart = "former"
	ofFormerSpec := turn
	ofFormerSpec.Spec = "former"
	for name, tt := range map[string]struct {
		cr   *unstructured.Unstructured
		want fleet.Member
	}{
		"it waits":                       {web(isNot, is, Deployed{Chart: "old"}), fleet.Member{State: fleet.Waiting}},
		"it does not know yet":           {web(is, is, Deployed{Chart: "old"}), fleet.Member{}},
		"it was made by this chart":      {web(is, is, Deployed{Chart: "new"}), fleet.Member{}},
		"its turn has come":              {web(isNot, is, Deployed{Chart: "old", Turn: turn}), upgrading},
		"it is not ready with it yet":    {web(is, isNot, Deployed{Chart: "new", Turn: turn}), upgrading},
		"it is done":                     {web(is, is, Deployed{Chart: "new", Turn: done}), well},
		"it is done and not well":        {web(is, isNot, Deployed{Chart: "new", Turn: done}), unwell},
		"its spec has changed meanwhile": {web(isNot, is, Deployed{Chart: "old", Spec: "former", Turn: turn}), fleet.Member{}},
		"its turn was with another spec": {web(isNot, is, Deployed{Chart: "old", Turn: ofFormerSpec}), fleet.Member{}},
		"its turn was for another chart": {web(isNot, is, Deployed{Chart: "former", Turn: former}), fleet.Member{State: fleet.Waiting}},
		"it is done, with another chart": {web(is, is, Deployed{Chart: "newer", Turn: done}), upgrading},
		"its turn has no time":           {web(is, is, Deployed{Chart: "new", Turn: noTime}), fleet.Member{}},
		"it waits and is changed":        {web(isNot, is, Deployed{Chart: "old", Spec: "former"}), fleet.Member{}},
		"it is made anew":                {web(isNot, is, Deployed{}), fleet.Member{}},
		"it waits no longer":             {web(isNot, is, Deployed{Chart: "new"}), fleet.Member{}},
		"it was never told of":           {neverTold, fleet.Member{}},
		"nobody says whether it is well": {notLookedAt, well},
		"it is deleted":                  {deleted, fleet.Member{}},
		"nothing is recorded of it":      {nothing, fleet.Member{}},
	} {
		tt.want.Namespace, tt.want.Name, tt.want.UID = "shop", "web", "u"
		if diff := cmp.Diff(tt.want, memberOf(tt.cr, "new"), cmp.AllowUnexported(fleet.Member{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
