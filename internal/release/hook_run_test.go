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
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var jobs = batchv1.SchemeGroupVersion.WithKind("Job")

const (
	completed = `{conditions: [{type: Complete, status: "True"}]}`
	exploded  = `{conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: too often}]}`
)

// hookTemplate is a Job that runs at events of Helm.
func hookTemplate(name, events, policy string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: " + name + ", annotations: {helm.sh/hook: '" + events +
		"', helm.sh/hook-delete-policy: '" + policy +
		"'}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: {{ .Values.text | quote }}}]}}}}"
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// endJobs gives Jobs that have no end yet a status; it reports whether there were any.
func (s *shop) endJobs(status string) bool {
	s.t.Helper()
	var all batchv1.JobList
	if err := s.List(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
	found := false
	for _, j := range all.Items {
		if len(j.Status.Conditions) == 0 {
			s.sets(jobs, j.Name, status)
			found = true
		}
	}
	return found
}

// play reconciles until there is nothing to do, and ends Jobs well; before each reconciliation something is done. It returns what was
// written, but for statuses and records.
func (s *shop) play(before func()) (done []string) {
	s.t.Helper()
	for range 60 {
		before()
		s.wrote = nil
		result, err := s.reconcile()
		if err != nil {
			s.t.Fatal(err)
		}
		for _, w := range s.wrote {
			if !strings.HasPrefix(w, "status") && !strings.Contains(w, "Secret") {
				done = append(done, w)
			}
		}
		waits := result.RequeueAfter > goOn || result.RequeueAfter == 0
		if s.web() == nil || waits && !s.endJobs(completed) {
			return done
		}
	}
	s.t.Fatalf("there is no end to it: %v", done)
	return nil
}

// Hooks run in their order, each once, before and after what they belong to; a process that begins goes on where the last one was.
func TestHooksRunAroundARelease(t *testing.T) {
	for name, restart := range map[string]bool{"one process": false, "a process for each reconciliation": true} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, hookTemplate("before", "pre-install", "hook-succeeded"),
				hookTemplate("after", "post-install,post-upgrade", ""), hookTemplate("bye", "pre-delete", ""),
				hookTemplate("late", "post-delete", "")), Options{}, namespace("shop"))
			again := func() {
				if restart {
					s.restart()
				}
			}
			s.wants("before anything is made", s.settle(), "patch Web shop/web", "status of Web shop/web: conditions observedGeneration",
				"create Job shop/before", "status of Web shop/web: conditions hooks")
			s.says("a hook runs", map[string]string{"Ready": "False HookRunning: pre-install hook Job before runs",
				"Progressing": "True HookRunning", "Deployed": "False NotDeployed", "ReleaseFailed": "False"})
			s.wants("install", s.play(again), "delete Job shop/before", "apply ConfigMap shop/web", "create Job shop/after")
			s.says("installed", map[string]string{"Ready": "True ChildrenReady", "Deployed": "True InstallSuccessful"})
			if hooks, found, _ := unstructured.NestedMap(s.web().Object, "status", "hooks"); found {
				t.Errorf("hooks are done: %v", hooks)
			}
			s.asks("{text: z}")
			s.wants("upgrade", s.play(again), "apply ConfigMap shop/web", "delete Job shop/after", "create Job shop/after")
			s.wants("idle", s.play(again))
			s.deletes()
			s.wants("deletion", s.play(again), "create Job shop/bye", "delete ConfigMap shop/web", "create Job shop/late",
				"delete Job shop/after", "delete Job shop/bye", "delete Job shop/late", "patch Web shop/web")
			s.wants("told", s.told(), "Normal HookStarted pre-install hook Job before", "Normal Installed created ConfigMap shop/web",
				"Normal HookStarted post-install hook Job after", "Normal Upgraded revision 2: configured ConfigMap shop/web",
				"Normal HookStarted post-upgrade hook Job after", "Normal HookStarted pre-delete hook Job bye",
				"Normal HookStarted post-delete hook Job late")
		})
	}
}

// A hook that fails holds the release back, is told once, and runs again after a while.
func TestAHookThatFails(t *testing.T) {
	for policy, kept := range map[string]bool{"": true, "hook-succeeded": true, "hook-failed": false} {
		s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, hookTemplate("before", "pre-install", policy)), Options{})
		s.settle()
		s.endJobs(exploded)
		s.settle()
		s.says("it failed", map[string]string{
			"ReleaseFailed": "True InstallError: pre-install hook Job before failed: BackoffLimitExceeded: too often; it is tried again at 10:00:10",
			"Ready":         "False HookFailed: pre-install hook Job before failed", "Progressing": "True HookFailed",
			"Deployed":       "False NotDeployed",
			"Irreconcilable": "False"})
		if told := s.told(); len(told) != 3 || !strings.HasPrefix(told[1], "Warning InstallError pre-install hook Job before failed") {
			t.Errorf("told: %q", told)
		}
		if there := s.object(jobs, "shop", "before") != nil; there != kept {
			t.Errorf("policy %q: its object is there: %t", policy, there)
		}
		result, err := s.reconcile()
		if err != nil || result.RequeueAfter != hookRetryFirst || s.object(configs, "shop", "web") != nil {
			t.Errorf("%v, %v", result, err)
		}
		s.clock = s.clock.Add(hookRetryFirst)
		want := []string{"create Job shop/before", "apply ConfigMap shop/web"}
		if kept {
			want = append([]string{"delete Job shop/before"}, want...)
		}
		if policy == "hook-succeeded" {
			want = slices.Insert(want, len(want)-1, "delete Job shop/before")
		}
		s.wants("then "+policy, s.play(func() {}), want...)
		s.says("then", map[string]string{"Ready": "True", "ReleaseFailed": "False", "Deployed": "True"})
	}
}

// What an earlier run of a hook left is cleared away before the hook runs; what somebody else's is stays, and is told.
func TestAHookWhoseNameIsTaken(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*batchv1.Job)
		wrote  []string
		says   string
	}{
		"ours": {func(j *batchv1.Job) { ofWeb(j); j.OwnerReferences[0].UID = "u" }, []string{"delete Job shop/before",
			"create Job shop/before"}, "False"},
		"Helm's":    {ofHelm, []string{"delete Job shop/before", "create Job shop/before"}, "False"},
		"another's": {ofAnother, nil, "True ObjectNotOurs: Job shop/before exists and belongs to Web web"},
	} {
		s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, hookTemplate("before", "pre-install", "")), Options{},
			hookOf("before", tt.change))
		got := slices.DeleteFunc(s.settle(), func(w string) bool { return strings.HasPrefix(w, "status") })
		s.wants(name, got, tt.wrote...)
		s.says(name, map[string]string{"Irreconcilable": tt.says})
	}
}

// Each step of a hook that fails is told and tried again, and no hook runs twice for it.
func TestStepsOfHooksThatFail(t *testing.T) {
	for request, says := range map[string]string{
		"create Job": "start pre-install hook Job before: connection", "delete Job": "delete Job before: connection",
		"status of Web shop/web: hooks": "",
	} {
		s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, hookTemplate("before", "pre-install", "hook-succeeded")), Options{})
		s.refusals[request] = errAway
		failed := 0
		for range 10 {
			if _, err := s.reconcile(); errors.Is(err, errAway) {
				if failed++; says != "" && failed == 1 {
					s.says(request, map[string]string{"ReleaseFailed": "True InstallError: " + says})
				}
				s.refusals[request] = nil
			}
			s.endJobs(completed)
		}
		created := 0
		for _, w := range s.wrote {
			if strings.HasPrefix(w, "create Job") {
				created++
			}
		}
		if failed != 1 || created != 1 && request != "create Job" || created != 2 && request == "create Job" {
			t.Errorf("%s: failed %d times, made %d times: %v", request, failed, created, s.wrote)
		}
		s.says("then", map[string]string{"Ready": "True", "ReleaseFailed": "False"})
	}
}

// Hooks that a person switched off do not run; those of other actions do.
func TestHooksThatAreSwitchedOff(t *testing.T) {
	for action, want := range map[string]string{
		"install": "up bye", "upgrade": "in bye", "uninstall": "in up", "test": "in up bye",
	} {
		s := newShop(t, "annotations: {helm.sdk.operatorframework.io/"+action+"-disable-hooks: 'true', x: 'true'}", "{text: a}",
			chartOf(t, configTemplate, hookTemplate("in", "pre-install", ""), hookTemplate("up", "post-upgrade", ""),
				hookTemplate("bye", "pre-delete", "")), Options{}, namespace("shop"))
		var ran []string
		hear := func(all []string) {
			for _, w := range all {
				if name, is := strings.CutPrefix(w, "create Job shop/"); is {
					ran = append(ran, name)
				}
			}
		}
		hear(s.play(func() {}))
		s.asks("{text: z}")
		hear(s.play(func() {}))
		s.deletes()
		hear(s.play(func() {}))
		if diff := cmp.Diff(want, strings.Join(ran, " ")); diff != "" {
			t.Errorf("without those of %s (-want +got):\n%s", action, diff)
		}
	}
}

// In a namespace that goes, and for a chart that cannot be rendered any more, a deletion does without its hooks, which is told.
func TestADeletionWithoutItsHooks(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace *corev1.Namespace
		spec      string
		told      int
		ran       bool
	}{
		"as usual": {namespace("shop"), "{text: a}", 0, true},
		"the namespace goes": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", DeletionTimestamp: timeOf(now),
			Finalizers: []string{"k"}}}, "{text: a}", 0, false},
		"it is not rendered": {namespace("shop"), "{text: [a]}", 1, false},
	} {
		s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate, hookTemplate("bye", "pre-delete", ""),
			`{{ if kindIs "slice" .Values.text }}{{ fail "no" }}{{ end }}`), Options{}, tt.namespace)
		s.settle()
		s.asks(tt.spec)
		s.deletes()
		s.told()
		ran := slices.Contains(s.play(func() {}), "create Job shop/bye")
		skipped := slices.DeleteFunc(s.told(), func(e string) bool {
			return !strings.HasPrefix(e, "Warning HooksSkipped the hooks of the deletion cannot")
		})
		if ran != tt.ran || s.web() != nil || len(skipped) != tt.told {
			t.Errorf("%s: ran %t, %v, told %q", name, ran, s.web(), skipped)
		}
	}
	s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate, hookTemplate("bye", "pre-delete", "")), Options{},
		namespace("shop"))
	s.settle()
	s.deletes()
	s.refusals["get Namespace"] = errAway
	if _, err := s.reconcile(); !errors.Is(err, errAway) || s.object(configs, "shop", "web") == nil {
		t.Errorf("whether the namespace goes is not known: %v", err)
	}
}

// Hooks of a deletion that are not known for the moment are waited for. Those that nobody can know any more, that can do nothing, or that a
// person switched off, are not.
func TestADeletionWhoseHooksAreNotKnown(t *testing.T) {
	const looks = `{{ $_ := .Capabilities.KubeVersion }}` + sourceTemplate
	off := "annotations: {" + disableHooks["delete"] + ": 'true'}, "
	unlooked := func(err error) func(*shop) { return func(s *shop) { s.refusals["get ConfigMap shop/source"] = err } }
	goes := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", DeletionTimestamp: timeOf(now), Finalizers: []string{"k"}}}
	for name, tt := range map[string]struct {
		happens   func(*shop)
		metadata  string
		namespace *corev1.Namespace
		waits     bool
	}{
		"a lookup is not answered":          {unlooked(errAway), "", namespace("shop"), true},
		"discovery is not answered":         {func(s *shop) { s.asker.err = errAway }, "", namespace("shop"), true},
		"the kind that it looks at is gone": {unlooked(&noMatch), "", namespace("shop"), false},
		"they are switched off":             {unlooked(errAway), off, namespace("shop"), false},
		"its namespace goes, too":           {unlooked(errAway), "", goes, false},
	} {
		for _, event := range []string{"pre-delete", "post-delete"} {
			s := newShop(t, tt.metadata+"finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, looks, hookTemplate("bye", event, "")), Options{},
				tt.namespace.DeepCopy())
			s.settle()
			s.deletes()
			if event == "post-delete" {
				s.must()
			}
			s.restart()
			tt.happens(s)
			if tt.waits {
				there := s.object(configs, "shop", "web") != nil
				if _, err := s.reconcile(); !errors.Is(err, errAway) || s.web() == nil || (s.object(configs, "shop", "web") != nil) != there {
					t.Errorf("%s, %s: %v", name, event, err)
				}
				s.says(name, map[string]string{"ReleaseFailed": "True UninstallError"})
				delete(s.refusals, "get ConfigMap shop/source")
				s.asker.err = nil
			}
			if ran := slices.Contains(s.play(func() {}), "create Job shop/bye"); ran != tt.waits || s.web() != nil {
				t.Errorf("%s: the %s hook runs: %t, %v", name, event, ran, s.web())
			}
		}
	}
}

// A hook that runs is looked at again, at its deadline at the latest.
func TestAHookThatRuns(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, hookTemplate("before", "pre-install", "")), Options{})
	s.settle()
	for after, want := range map[time.Duration]time.Duration{0: hookPoll, hookTimeout - time.Second: time.Second} {
		s.clock = now.Add(after)
		if result, err := s.reconcile(); err != nil || result.RequeueAfter != want {
			t.Errorf("%s: %v, %v", after, result, err)
		}
	}
	s.clock = now.Add(hookTimeout)
	s.settle()
	s.says("too late", map[string]string{"ReleaseFailed": "True InstallError: pre-install hook Job before failed: it did not end within 5m0s"})
}
