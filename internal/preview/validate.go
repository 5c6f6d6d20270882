// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preview tells what the chart engine would do, before it does it: it checks watches, charts, CRDs and sample resources
// without a cluster (`manager validate`), and renders a resource, alone or compared with a cluster (`manager render`).
//
// It uses the engine's own functions, so that a preview cannot differ from what happens.
package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
)

// exampleNamespace is where resources that name no namespace are taken to be.
const exampleNamespace = "default"

// Validate checks everything of a project that can be checked without a cluster. Samples are files and directories with custom
// resources; those that no watch runs are left out.
func Validate(p Project, samples []string) *Report {
	r := &Report{}
	defined, findings := p.definitions()
	r.add("", findings...)
	given, unreadable := readAll(samples, p.Stdin)
	r.add("", unreadable...)
	list, unset, err := p.watches()
	r.add("", findingsOf(SeverityError, p.WatchesFile, err)...)
	for _, name := range unset {
		r.add("", Finding{Severity: SeverityWarning, File: p.WatchesFile, Path: "overrideValues",
			Message: "the environment variable " + name + " is not set here, so it was taken as empty",
			Remedy:  "set it as the operator's Deployment does"})
	}
	known := newKinds(defined)
	v := validator{report: r, project: p, defined: defined, kinds: known, none: p.cluster(defined, known)}
	for _, w := range list {
		v.watch(w, samplesOf(w, given))
	}
	for _, s := range given {
		if !slices.ContainsFunc(list, func(w watches.Watch) bool { return w.GroupKind() == s.object.GroupVersionKind().GroupKind() }) {
			r.add("", Finding{Severity: SeverityNote, File: s.file, Line: s.line, Message: "no watch runs " + s.String() + "; it was left out"})
		}
	}
	return r
}

// validator is the work in progress.
type validator struct {
	report  *Report
	project Project
	defined definitions
	kinds   *kinds
	none    release.Cluster
}

// samplesOf returns the samples of a watch's kind, of any version.
func samplesOf(w watches.Watch, given []document) []document {
	var own []document
	for _, s := range given {
		if s.object.GroupVersionKind().GroupKind() == w.GroupKind() {
			own = append(own, s)
		}
	}
	return own
}

// watch checks one entry of the watches file.
func (v *validator) watch(w watches.Watch, samples []document) {
	result := &KindReport{Kind: w.Kind, APIVersion: w.GroupVersion().String(), Chart: shown(w.Chart), gvk: w.GroupVersionKind,
		kinds: map[schema.GroupKind]kindInfo{}}
	v.report.Kinds = append(v.report.Kinds, result)
	v.definition(w)
	result.resource, _ = v.kinds.guess(w.GroupKind())
	k, err := load(w)
	if err != nil {
		v.find(w, k.path, findingsOf(SeverityError, k.path, err)...)
		return
	}
	result.Chart, result.Version = k.chart.Name(), k.chart.Version()
	result.lookup, result.hooks = k.chart.UsesLookup(), k.chart.HasHooks()
	problems := k.chart.Problems()
	crds, err := k.chart.CRDs()
	if problems = append(problems, err); errors.Join(problems...) != nil {
		v.find(w, k.path, findingsOf(SeverityError, k.path, errors.Join(problems...))...)
		return
	}
	v.kinds.learn(crds)
	result.crds = len(crds) > 0
	v.remarks(k)
	v.renderAll(k, samples, result)
	v.unseenKinds(k, result)
	v.assumptions(k)
}

// find reports findings of a watch.
func (v *validator) find(w watches.Watch, file string, findings ...Finding) {
	for i := range findings {
		findings[i].File = cmp.Or(findings[i].File, file)
	}
	v.report.add(w.Kind, findings...)
}

// definition checks the CRD of a watch.
func (v *validator) definition(w watches.Watch) {
	file := v.project.WatchesFile
	d := v.defined[w.GroupVersionKind]
	switch versions := v.defined.versions(w.GroupKind()); {
	case d == nil && versions != "":
		v.find(w, file, Finding{Severity: SeverityError, Path: "version",
			Message: fmt.Sprintf("the CRD of %s has no version %s, only %s", w.GroupKind(), w.Version, versions),
			Remedy:  "correct the version, or add it to the CRD"})
	case d == nil && len(v.project.CRDs) > 0:
		v.find(w, file, Finding{Severity: SeverityError, Path: "kind", Message: fmt.Sprintf("no CRD defines %s", w.GroupKind()),
			Remedy: "correct the group and the kind, or give the CRD with --crds"})
	case d == nil:
		v.find(w, file, Finding{Severity: SeverityWarning, Path: "kind",
			Message: fmt.Sprintf("the CRD of %s is not known, so nothing was checked against it", w.GroupKind()),
			Remedy:  "give it with --crds"})
	case !d.served:
		v.find(w, d.from.file, *d.from.refuse("spec.versions["+w.Version+"].served", "the version is not served",
			"serve it, or watch another version"))
	case !d.hasStatus:
		v.find(w, d.from.file, Finding{Severity: SeverityWarning, Line: d.from.line,
			Path:    "spec.versions[" + w.Version + "].subresources.status",
			Message: "there is no status subresource, so each write of the status looks like a change of the resource",
			Remedy:  "add `subresources: {status: {}}`"})
	default:
		dropped, err := d.droppedStatus()
		v.find(w, d.from.file, findingsOf(SeverityError, d.from.file, err)...)
		if len(dropped) > 0 {
			v.find(w, d.from.file, *d.from.refuse("spec.versions["+w.Version+"].schema",
				"it drops what the operator writes: "+strings.Join(dropped, ", "),
				"set x-kubernetes-preserve-unknown-fields: true on status, or add the fields"))
		}
	}
}

// remarks notes what is particular about a chart.
func (v *validator) remarks(k kind) {
	note := func(message, remedy string) {
		v.find(k.Watch, k.path, Finding{Severity: SeverityNote, Message: message, Remedy: remedy})
	}
	if k.chart.UsesLookup() {
		note(fmt.Sprintf("its templates call lookup: what they read cannot be watched, so it is rendered again in each reconciliation, and every %v unless reconcilePeriod says otherwise; nothing is found here", release.LookupPeriod),
			"give the operator the right to get and list what is looked up")
	}
	if !k.chart.Deterministic() {
		note("its templates call random or time functions: each rendering gives other text, and one is made when values, chart or capabilities change",
			"take such a value from an existing Secret where it must not change")
	}
	if k.chart.HasCRDs() {
		note("it has a crds/ directory: what is missing of it is made before the first release, and never changed",
			"let the operator get and create customresourcedefinitions, or install them apart")
	}
}

// renderAll renders the chart with its defaults and for each sample.
func (v *validator) renderAll(k kind, samples []document, result *KindReport) {
	for _, s := range samples {
		v.sample(k, s, result)
	}
	result.Samples = len(samples)
	plain := v.example(k)
	byDefault, err := k.foresee(context.Background(), plain, v.none)
	var refused *chart.Error
	switch {
	case errors.As(err, &refused) && refused.Stage == chart.StageLoad:
		v.find(k.Watch, k.path, findingsOf(SeverityError, k.path, err)...)
	case err != nil && len(samples) == 0:
		found := findingsOf(SeverityWarning, k.path, err)
		for i := range found {
			found[i].Message = "it does not render without values: " + found[i].Message
			found[i].Remedy = "give a custom resource with --sample"
		}
		v.find(k.Watch, k.path, found...)
	case err == nil:
		if result.Needs != nil {
			byDefault.Failure = nil // a sample has shown what may not be made
		}
		v.rendered(k, document{file: k.path, object: plain}, byDefault, result)
	}
}

// example is a resource without a spec, as far as the CRD does not default one.
func (v *validator) example(k kind) *unstructured.Unstructured {
	cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	cr.SetGroupVersionKind(k.GroupVersionKind)
	cr.SetName("example")
	d := v.defined[k.GroupVersionKind]
	if d != nil {
		d.setDefaults(cr)
	}
	d.place(cr, exampleNamespace)
	return cr
}

// sample checks one sample and renders it.
func (v *validator) sample(k kind, s document, result *KindReport) {
	find := func(severity Severity, err error) { v.report.add(k.Kind, s.located(severity, err)...) }
	if version := s.object.GroupVersionKind().Version; version != k.Version {
		find(SeverityWarning, &Finding{Path: "apiVersion", Message: "it is of version " + version + ", the watch of " + k.Version,
			Remedy: "write the sample in the watched version"})
		return
	}
	cr := s.object.DeepCopy()
	d := v.defined[k.GroupVersionKind]
	unknown, refused := d.admit(cr)
	for _, path := range unknown {
		find(SeverityError, &Finding{Path: path, Message: "the CRD does not know this field, and the API server drops it",
			Remedy: "correct the field, or add it to the CRD"})
	}
	if len(refused) > 0 {
		find(SeverityError, refusals(refused))
		return
	}
	d.place(cr, exampleNamespace)
	done, err := k.foresee(context.Background(), cr, v.none)
	if err != nil {
		find(SeverityError, err)
		return
	}
	v.rendered(k, s, done, result)
}

// rendered notes what a rendering consists of and whether it may be made.
func (v *validator) rendered(k kind, from document, done *release.Foresight, result *KindReport) {
	result.Renderings++
	result.Objects = max(result.Objects, len(done.Rendered.Objects))
	for _, hook := range done.Rendered.Hooks {
		result.addHook(hook)
	}
	objects := done.Rendered.Made()
	for _, object := range objects {
		gk := object.GroupVersionKind().GroupKind()
		result.kinds[gk] = v.kinds.of(gk)
	}
	if done.Failure == nil {
		return
	}
	needs, refused := need(done.Allowed, objects)
	if len(refused) == 0 {
		v.find(k.Watch, k.path, from.located(SeverityError, done.Failure)...)
		return
	}
	result.Needs = result.Needs.with(needs)
	v.find(k.Watch, k.path, from.located(SeverityError, &Finding{Message: fmt.Sprintf("the watch does not allow %s", some(refused)),
		Remedy: "turn them off in the values, or add to the watch: allow: " + needs.String()})...)
}

// some names the first of a list and counts the others.
func some(list []string) string {
	const few = 3
	if len(list) <= few+1 {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}

// unseenKinds adds the kinds the chart writes and no rendering had, as far as their group is known.
func (v *validator) unseenKinds(k kind, result *KindReport) {
	seen := map[string]bool{"List": true}
	for gk := range result.kinds {
		seen[gk.Kind] = true
	}
	var unknown []string
	for _, name := range k.chart.Kinds() {
		if seen[name] {
			continue
		}
		known := v.kinds.named(name)
		for _, gk := range known {
			result.kinds[gk] = v.kinds.of(gk)
		}
		if len(known) == 0 {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		v.find(k.Watch, k.path, Finding{Severity: SeverityNote,
			Message: "its templates write " + strings.Join(unknown, ", ") +
				", which no rendering made and whose API group is not known: the rights to them are not listed",
			Remedy: "give their CRDs with --crds, or a sample that makes them"})
	}
}

// assumptions notes kinds whose scope was guessed.
func (v *validator) assumptions(k kind) {
	var guessed []string
	for _, gk := range v.kinds.assumptions() {
		guessed = append(guessed, gk.String())
	}
	clear(v.kinds.assumed)
	if len(guessed) > 0 {
		v.find(k.Watch, k.path, Finding{Severity: SeverityWarning,
			Message: strings.Join(guessed, ", ") + " is not known here, and was taken as namespaced",
			Remedy:  "give the CRD with --crds"})
	}
}
