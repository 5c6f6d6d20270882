// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hostile are texts that would break out of a template that did not quote them.
var hostile = []string{
	"plain", "", "\"", "'", "`", "\\", "{{ .Release.Name }}", "{{", "}}", "a: b", "- a", "&a *a", "!!binary x", "# no comment",
	"x\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: stolen\n", "\n  namespace: kube-system", "\t", "\r\n", "null", "true", "1e3",
	"0x1",
	"$(FOO)", "$$(FOO)", "$$", "$", "$HOME $(date) ${x}", "\u2028\u0085\ufeff", "\x7f\x1b", "<&>", "ä😀", "%s %d", strings.Repeat("x", 300),
}

// fuzzedFields are the string fields of each kind and where they must arrive
// unchanged ("" when the value only decides).
var fuzzedFields = map[string]map[string]string{
	"CronTab": {"cronSpec": "CronJob spec.schedule", "image": "", "timeZone": "CronJob spec.timeZone", "command": "", "args": ""},
	"FooBar":  {"foo": "ConfigMap data.FOO", "command": "", "image": ""},
	"App": {
		"image": "", "command": "", "args": "", "env": "", "probes.path": "", "service.annotations": "",
		"ingress.className": "Ingress spec.ingressClassName", "ingress.host": "", "ingress.path": "", "ingress.tlsSecretName": "",
		"ingress.annotations": "", "canary.image": "", "canary.header": "", "canary.headerValue": "",
	},
}

// FuzzTextStaysData puts arbitrary text into each string field: no object is added,
// none changes its kind, name or namespace, and the text arrives as it is.
func FuzzTextStaysData(f *testing.F) {
	type target struct{ kind, path, arrives string }
	var targets []target
	for kind, fields := range fuzzedFields {
		for path, arrives := range fields {
			targets = append(targets, target{kind, path, arrives})
		}
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.kind+a.path, b.kind+b.path) })
	for _, text := range hostile {
		for i := range targets {
			f.Add(text, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, text string, choice uint8) {
		if !utf8.ValidString(text) {
			return // JSON, in which the API server sends it, cannot hold such a text
		}
		chosen := targets[int(choice)%len(targets)]
		fuzzOne(t, chosen.kind, chosen.path, chosen.arrives, text)
	})
}

// harmless are the identities of what is rendered from an unsuspicious text.
var harmless = map[string][]string{}

func fuzzOne(t *testing.T, kind, path, arrives, text string) {
	t.Helper()
	expected, known := harmless[kind+path]
	if !known {
		objects, err := render(t, fuzzed(t, kind, path, "x"))
		if err != nil {
			t.Fatalf("%s %s: %v", kind, path, err)
		}
		expected = identities(objects)
		harmless[kind+path] = expected
	}
	objects, err := render(t, fuzzed(t, kind, path, text))
	if err != nil {
		return // refused by values.schema.json: too long, or empty
	}
	optional := text == "" // leaves out what depends on it
	if diff := cmp.Diff(expected, identities(objects)); diff != "" && !optional {
		t.Errorf("%s %s=%q changes what is rendered:\n%s", kind, path, text, diff)
	}
	for _, object := range objects {
		where, field, _ := strings.Cut(arrives, " ")
		if object.GetKind() != where || optional {
			continue
		}
		got, _, _ := unstructured.NestedString(object.Object, strings.Split(field, ".")...)
		if got != text {
			t.Errorf("%s %s=%q arrives as %q", kind, path, text, got)
		}
	}
	if kind == "FooBar" && path == "command" {
		args, _, _ := unstructured.NestedSlice(job(t, fuzzed(t, kind, path, text)).Object, "spec", "template", "spec", "containers")
		arg := args[0].(map[string]any)["args"].([]any)[0].(string)
		if got := kubernetesExpansion(arg); got != text {
			t.Errorf("the shell gets %q instead of %q", got, text)
		}
	}
}

func fuzzed(t *testing.T, kind, path, text string) *unstructured.Unstructured {
	t.Helper()
	object := newObject(kind, "x", testKinds[kind].minimal)
	if kind == "App" {
		set(t, object, map[string]any{"enabled": true, "host": "h"}, "spec", "ingress")
		set(t, object, map[string]any{"image": "b:2"}, "spec", "canary")
	}
	var value any = text
	switch path {
	case "command", "args":
		if kind != "FooBar" {
			value = []any{text}
		}
	case "env":
		value = []any{map[string]any{"name": "A", "value": text}}
	case "service.annotations", "ingress.annotations":
		value = map[string]any{"example.com/a": text}
	}
	set(t, object, value, append([]string{"spec"}, strings.Split(path, ".")...)...)
	return object
}

// identities leaves out the name of a FooBar's Job, which is a digest of its inputs.
func identities(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		name := o.GetName()
		if o.GetKind() == "Job" {
			name = "x-"
			if !strings.HasPrefix(o.GetName(), name) || len(o.GetName()) != len(name)+10 {
				name = "unexpected " + o.GetName()
			}
		}
		all = append(all, fmt.Sprintf("%s %s %s/%s %v %v", o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), name, o.GetLabels(),
			o.GetOwnerReferences()))
	}
	return all
}

// kubernetesExpansion does what the kubelet does to command and args when the pod
// has the variables FOO and BARZ (k8s.io/kubernetes/third_party/forked/golang/expansion).
func kubernetesExpansion(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		i++
		switch text[i] {
		case '$':
			out.WriteByte('$')
		case '(':
			end := strings.IndexByte(text[i:], ')')
			if end < 0 {
				out.WriteString("$(")
				continue
			}
			switch name := text[i+1 : i+end]; name {
			case "FOO", "BARZ":
				out.WriteString("EXPANDED")
			default:
				out.WriteString("$(" + name + ")")
			}
			i += end
		default:
			out.WriteByte('$')
			out.WriteByte(text[i])
		}
	}
	return out.String()
}
