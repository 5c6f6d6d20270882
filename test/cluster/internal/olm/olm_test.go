// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const rendered = `---
# Source: olm/crds/a.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.operators.coreos.com}
---
# Source: olm/templates/empty.yaml
---
# Source: olm/templates/namespace.yaml
apiVersion: v1
kind: Namespace
metadata: {name: olm}
`

func TestDefinitionsAreToldFromObjects(t *testing.T) {
	m, err := Split(rendered)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"as.operators.coreos.com"}, m.DefinitionNames); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(m.Definitions, "CustomResourceDefinition") || strings.Contains(m.Definitions, "Namespace") {
		t.Errorf("definitions:\n%s", m.Definitions)
	}
	if !strings.Contains(m.Objects, "kind: Namespace") || strings.Contains(m.Objects, "CustomResourceDefinition") ||
		strings.Contains(m.Objects, "empty.yaml") {
		t.Errorf("objects:\n%s", m.Objects)
	}
	if _, err := Split("---\n"); err == nil {
		t.Error("a chart that renders nothing was taken for OLM")
	}
}

func TestACatalogIsServedFromItsImageByARestrictedPod(t *testing.T) {
	text, err := Catalog{Namespace: "olm", Name: "local", Image: "example.org/catalog@sha256:0"}.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"sourceType": "grpc", "image": "example.org/catalog@sha256:0", "displayName": "local",
		"grpcPodConfig": map[string]any{"securityContextConfig": "restricted"},
	}
	if diff := cmp.Diff(want, got["spec"]); diff != "" {
		t.Error(diff)
	}
}

// fake answers kubectl and records what was asked.
type fake struct {
	answer func(command string) (string, error)
	asked  []string
}

func (f *fake) Kubectl(_ context.Context, _ string, args ...string) (string, error) {
	command := strings.Join(args, " ")
	f.asked = append(f.asked, command)
	return f.answer(command)
}

func (f *fake) Stage(_ string, run func() error) error { return run() }

// Poll gives up at once.
func (f *fake) Poll(_ context.Context, check func() error) error { return check() }

// position is the number of the first command that holds all the words.
func (f *fake) position(t *testing.T, words ...string) int {
	t.Helper()
	i := slices.IndexFunc(f.asked, func(command string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(command, w) })
	})
	if i < 0 {
		t.Fatalf("%v was never asked; asked was:\n%s", words, strings.Join(f.asked, "\n"))
	}
	return i
}

func TestACatalogIsConnectedOnlyWithThePodOfItsImage(t *testing.T) {
	catalog := Catalog{Namespace: "olm", Name: "local", Image: "new"}
	for name, c := range map[string]struct {
		pods, state, packages, wrong string
	}{
		"all is well":                    {"new True;|", "READY", "packagemanifest/probe\n", ""},
		"it was started again, is ready": {"new True;|address in use", "READY", "packagemanifest/probe\n", ""},
		"the older pod is there too":     {"old True;new True;|", "READY", "packagemanifest/probe\n", "not ready"},
		"no pod yet":                     {"|", "", "", "not ready"},
		"the pod says why it ends":       {"new False;|integrity check failed", "", "", "integrity check failed"},
		"OLM does not reach it":          {"new True;|", "TRANSIENT_FAILURE", "", "TRANSIENT_FAILURE"},
		"packages come later":            {"new True;|", "READY", "", "no package"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &fake{answer: func(command string) (string, error) {
				switch {
				case strings.Contains(command, "get pods"):
					return c.pods, nil
				case strings.Contains(command, "get catalogsource "):
					return c.state, nil
				}
				return c.packages, nil
			}}
			err := connected(context.Background(), cluster, catalog)
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}

func TestOperatorsGoBeforeOLMAndSubscriptionsFirst(t *testing.T) {
	m, err := Split(rendered)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &fake{answer: func(command string) (string, error) {
		if strings.HasPrefix(command, "get customresourcedefinitions") {
			return "customresourcedefinition.apiextensions.k8s.io/clusterserviceversions.operators.coreos.com\n", nil
		}
		return "", nil
	}}
	if err := Down(context.Background(), cluster, m); err != nil {
		t.Fatal(err)
	}
	order := []int{
		cluster.position(t, "delete subscriptions"),
		cluster.position(t, "delete clusterserviceversions"),
		cluster.position(t, "delete apiservice v1.packages"),
		cluster.position(t, "delete", "-f -"),
		cluster.position(t, "delete clusterrolebindings", "-l olm.owner"),
		cluster.position(t, "delete clusterrolebindings", "-l olm.managed"),
	}
	if !slices.IsSorted(order) {
		t.Errorf("the order is %v of:\n%s", order, strings.Join(cluster.asked, "\n"))
	}
}

// Without OLM nobody finishes a version that is being deleted.
func TestVersionsAreReleasedIfOLMIsGone(t *testing.T) {
	released := false
	cluster := &fake{}
	cluster.answer = func(command string) (string, error) {
		switch {
		case strings.Contains(command, "patch clusterserviceversions"):
			released = true
		case strings.HasPrefix(command, "get clusterserviceversions") && strings.HasSuffix(command, "-o name") && !released:
			return "clusterserviceversion/probe\n", nil
		case strings.HasPrefix(command, "get clusterserviceversions") && strings.Contains(command, "jsonpath"):
			return "operators probe\n", nil
		}
		return "", nil
	}
	if err := removeOperators(context.Background(), cluster); err != nil {
		t.Fatal(err)
	}
	cluster.position(t, "-n operators patch clusterserviceversions.operators.coreos.com probe", `"finalizers":null`)
}

func TestDownOfWhatWasNeverUp(t *testing.T) {
	m, err := Split(rendered)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &fake{answer: func(command string) (string, error) {
		if strings.Contains(command, "operatorgroups") || strings.Contains(command, "-f -") {
			return "", errors.New(`no matches for kind "OperatorGroup" in version "operators.coreos.com/v1"`)
		}
		return "", nil
	}}
	if err := Down(context.Background(), cluster, m); err != nil {
		t.Error(err)
	}
}
