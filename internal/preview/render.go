// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
)

// Request is which resources are to be rendered and how.
type Request struct {
	Project
	// File is the path of the resources, "-" for standard input.
	File string
	// Kind chooses among the objects of the file; it may be left empty if there is one.
	Kind string
	// Namespace is that of resources that name none; empty means "default".
	Namespace string
	// UserIDs reports whether pods get their user IDs from the platform, by what a cluster serves; nil for the mapper: there is none.
	// Without it they do not.
	UserIDs func(meta.RESTMapper) (bool, error)
	// ShowHooks adds the objects of hooks.
	ShowHooks bool
	// JSON writes a List in JSON instead of YAML documents.
	JSON bool
	// Out takes the objects, Notes what a person should know about them.
	Out, Notes io.Writer
}

// Render writes what would be applied for the resources of a request, as it would be sent: in Helm's order, with label and
// ownership. Left out are owner references, which hold the UID that a resource gets when it is created. No cluster is contacted.
//
// Errors: a *Finding, or several joined, when something cannot be read or may not be made.
func Render(ctx context.Context, request Request) error {
	work, err := request.prepare(nil)
	if err != nil {
		return err
	}
	none := request.cluster(work.defined, work.kinds)
	var all []*unstructured.Unstructured
	for _, d := range work.resources {
		done, err := work.renderOffline(ctx, d, none)
		if err != nil {
			return errorsOf(d.located(SeverityError, err)...)
		}
		objects, hooks, err := done.Sent()
		if err != nil {
			return err
		}
		all = append(all, objects...)
		if request.ShowHooks {
			all = append(all, hooks...)
		} else if len(hooks) > 0 {
			work.note("%s: %s not shown (--show-hooks)", d, count(len(hooks), "hook"))
		}
	}
	for _, object := range all {
		object.SetOwnerReferences(nil)
	}
	for _, gk := range work.kinds.assumptions() {
		work.note("%s is not known here and was taken as namespaced; give its CRD with --crds", gk)
	}
	return write(request.Out, all, request.JSON)
}

// work is what a request needs, read.
type work struct {
	Request
	defined   definitions
	kinds     *kinds
	resources []document
	entries   []watches.Watch
	// platformUserIDs is what UserIDs said.
	platformUserIDs bool
}

// prepare reads what a request needs; mapper is the cluster's, nil without one.
func (r Request) prepare(mapper meta.RESTMapper) (*work, error) {
	w := &work{Request: r}
	var findings []Finding
	w.defined, findings = r.definitions()
	read, unreadable := readAll([]string{r.File}, r.Stdin)
	if err := errorsOf(append(findings, unreadable...)...); err != nil {
		return nil, err
	}
	w.kinds = newKinds(w.defined)
	var err error
	if w.resources, err = only(read, r.Kind, r.File); err != nil {
		return nil, err
	}
	var unset []string
	if w.entries, unset, err = r.watches(); err != nil {
		return nil, err
	}
	if r.UserIDs != nil {
		if w.platformUserIDs, err = r.UserIDs(mapper); err != nil {
			return nil, err
		}
	}
	for _, name := range unset {
		w.note("the environment variable %s is not set here, so it was taken as empty", name)
	}
	return w, nil
}

func errorsOf(findings ...Finding) error {
	var all []error
	for i := range findings {
		all = append(all, &findings[i])
	}
	return errors.Join(all...)
}

func (w *work) note(format string, arguments ...any) {
	fmt.Fprintf(w.Notes, "note: "+format+"\n", arguments...) // notes are a help; the objects are what counts
}

// kindOf loads the chart that runs a resource.
func (w *work) kindOf(d document) (kind, error) {
	gvk := d.object.GroupVersionKind()
	at := slices.IndexFunc(w.entries, func(entry watches.Watch) bool { return entry.GroupVersionKind == gvk })
	if at < 0 {
		var known []string
		for _, entry := range w.entries {
			known = append(known, entry.Kind+" ("+entry.GroupVersion().String()+")")
		}
		return kind{}, d.refuse("", fmt.Sprintf("%s runs no %s (%s)", w.WatchesFile, gvk.Kind, gvk.GroupVersion()),
			"the chart kinds are "+strings.Join(known, ", "))
	}
	k, err := load(w.entries[at])
	if err == nil && w.platformUserIDs {
		k.chart = k.chart.WithPlatformUserIDs()
	}
	return k, err
}

// renderOffline renders a resource with the defaults of its CRD.
func (w *work) renderOffline(ctx context.Context, d document, none release.Cluster) (*release.Foresight, error) {
	k, err := w.kindOf(d)
	if err != nil {
		return nil, err
	}
	defined := w.defined[k.GroupVersionKind]
	if defined == nil {
		w.note("the CRD of %s is not known, so its defaults are not set; give it with --crds", k.Kind)
	}
	if _, refused := defined.admit(d.object); len(refused) > 0 {
		return nil, refusals(refused)
	}
	defined.place(d.object, cmp.Or(w.Namespace, exampleNamespace))
	if k.chart.UsesLookup() {
		w.note("the chart calls lookup, which finds nothing without a cluster (--diff asks one)")
	}
	crds, err := k.chart.CRDs()
	if err != nil {
		return nil, err
	}
	w.kinds.learn(crds)
	done, err := k.foresee(ctx, d.object, none)
	if err != nil {
		return nil, err
	}
	return done, done.Failure
}

// write writes objects as YAML documents, or as a List in JSON.
func write(out io.Writer, objects []*unstructured.Unstructured, asJSON bool) error {
	var text bytes.Buffer
	if asJSON {
		list := map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
		encoder := json.NewEncoder(&text)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(list); err != nil {
			return fmt.Errorf("encode the objects: %w", err)
		}
	}
	for _, object := range objects {
		if asJSON {
			break
		}
		encoded, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("encode %s: %w", apply.RefOf(object), err)
		}
		fmt.Fprintf(&text, "---\n%s", encoded)
	}
	_, err := out.Write(text.Bytes())
	return err
}
