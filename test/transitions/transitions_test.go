// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transitions

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	ctrl "sigs.k8s.io/controller-runtime"

	"middleware.hc.cn/operator/internal/admission/images"
	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/internal/webhook"
	"middleware.hc.cn/operator/test/admit"
)

const root = "../.."

// quick is how many chains `make test` makes; thorough, with SIMULATION=all.
const quick, thorough = 100, 3000

// world is what all chains share.
type world struct {
	server *admit.Server
	kinds  map[string]*Kind
	render renderers
	count  map[string]int
}

// chain is a resource that is changed again and again.
type chain struct {
	*testing.T
	*world
	*rand.Rand
	kind *Kind
	// manifest is what the user has in a file, applied what was last written with success, live what is stored.
	manifest, applied, live map[string]any
	story                   []string
}

// TestChains: a resource that was changed again and again is what a new one of the same manifest would be; what was undone leaves
// nothing behind; who applies what is there changes nothing; what is refused is refused with the path of a field, and what is accepted
// can be rendered.
func TestChains(t *testing.T) {
	w := newWorld(t)
	first, chains := number(t, "SIMULATION_FIRST", 0), quick
	if os.Getenv("SIMULATION") == "all" {
		chains = thorough
	}
	for seed := range number(t, "SIMULATION_SEEDS", chains) {
		seed += first
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { w.tell(t, uint64(seed)) })
	}
	for _, what := range slices.Sorted(maps.Keys(w.count)) {
		t.Logf("%6d %s", w.count[what], what)
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := manager.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server, err := admit.NewServer(scheme, webhook.Options{Images: images.BuiltIn()})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := Kinds(root, server.Definitions)
	if err != nil {
		t.Fatal(err)
	}
	render, err := newRenderers(root)
	if err != nil {
		t.Fatal(err)
	}
	return &world{server, kinds, render, map[string]int{}}
}

// number is that of an environment variable.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text, set := os.LookupEnv(variable)
	if !set {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// tell tells the story of a seed.
func (w *world) tell(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	names := slices.Sorted(maps.Keys(w.kinds))
	c := &chain{T: t, world: w, Rand: random, kind: w.kinds[names[seed%uint64(len(names))]]}
	w.count["chains of "+c.kind.Kind]++
	c.manifest = c.kind.Start(random)
	live, refused := c.admit(nil, c.object(c.manifest))
	if len(refused) > 0 {
		c.fail("the spec to begin with is refused: %v", refused)
	}
	c.say("begins with %s", text(c.manifest))
	c.live, c.applied = live, c.manifest
	for range 3 + random.IntN(5) {
		switch random.IntN(5) {
		case 0:
			c.mistake()
		default:
			c.next()
		}
	}
}

func (c *chain) say(format string, args ...any) {
	c.story = append(c.story, fmt.Sprintf(format, args...))
}

func (c *chain) fail(format string, args ...any) {
	c.Helper()
	c.Errorf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(c.story, "\n"))
}

// object is one with a spec.
func (c *chain) object(spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": c.kind.GroupVersion().String(), "kind": c.kind.Kind,
		"metadata": map[string]any{"name": "x", "namespace": "n"}, "spec": runtime.DeepCopyJSON(spec)}
}

// admit asks for admission. What is refused names the field.
func (c *chain) admit(before, object map[string]any) (map[string]any, []admit.Refusal) {
	c.Helper()
	stored, _, refused, err := c.server.Admit(c.Context(), c.kind.GroupVersionKind, before, object)
	if err != nil {
		c.fail("admission: %v", err)
	}
	for _, r := range refused {
		if !strings.HasPrefix(r.Field, "spec") && !ofTheServer(r) || r.Message == "" {
			c.fail("a refusal does not name the field in %s: %q: %s", text(object["spec"]), r.Field, r.Message)
		}
	}
	return stored, refused
}

// next changes the manifest, and writes it.
func (c *chain) next() {
	changed, what := c.kind.Change(c.Rand, c.manifest, 15)
	for c.IntN(3) == 0 {
		also := ""
		changed, also = c.kind.Change(c.Rand, changed, 15)
		what += "; " + also
	}
	c.write(changed, what)
}

// write writes a manifest as a user does: in the place of what is there, or as `kubectl apply` does.
func (c *chain) write(manifest map[string]any, what string) (accepted bool) {
	how, object := "replaced", c.object(manifest)
	if c.IntN(3) > 0 {
		how, object = "applied", c.object(c.patched(manifest))
	}
	c.say("%s: %s", how, what)
	c.count["changes"]++
	stored, refused := c.admit(c.live, object)
	fresh, never := c.admit(nil, c.object(manifest))
	switch {
	case len(refused) > 0 && len(never) > 0:
		c.count["refused"]++
		c.say("  refused: %v", refused)
		return false
	case len(refused) > 0:
		c.count["refused as a change"]++
		c.say("  refused as a change: %v", refused)
		for _, r := range refused {
			if changeRules[c.kind.Kind][r.Field] == "" {
				c.fail("a new one is not refused, and the rule is not among those of a change: %v", r)
			}
		}
		return false
	case len(never) > 0:
		c.fail("accepted as a change, and refused of a new one: %v", never)
		return false
	}
	c.count["accepted"]++
	c.manifest, c.applied = manifest, manifest
	c.live = stored
	if want, got := c.asIfNew(fresh), c.spec(); !equal(want, got) {
		c.fail("not what a new one would be (-new +changed):\n%s", cmp.Diff(want, got))
	}
	c.rendered()
	c.again()
	return true
}

// patched is the spec that `kubectl apply` sends: three ways merged.
func (c *chain) patched(manifest map[string]any) map[string]any {
	c.Helper()
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(text(c.applied)), []byte(text(manifest)), []byte(text(c.spec())))
	if err != nil {
		c.Fatal(err)
	}
	merged, err := jsonpatch.MergePatch([]byte(text(c.spec())), patch)
	if err != nil {
		c.Fatal(err)
	}
	spec := map[string]any{}
	if err := utiljson.Unmarshal(merged, &spec); err != nil {
		c.Fatal(err)
	}
	return spec
}

func (c *chain) spec() map[string]any {
	spec, _, _ := unstructured.NestedMap(c.live, "spec")
	return spec
}

// rendered checks that the operator can make something of what is stored.
func (c *chain) rendered() []*unstructured.Unstructured {
	c.Helper()
	render := c.render[c.kind.Kind]
	if render == nil {
		return nil
	}
	objects, err := render(c.Context(), &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.live)})
	if paused, _, _ := unstructured.NestedBool(c.live, "spec", "pause"); err != nil && !paused {
		c.fail("what was accepted cannot be rendered: %v", err)
	}
	c.count["rendered"]++
	return objects
}

// again applies the manifest that is there: nothing changes.
func (c *chain) again() {
	c.Helper()
	for how, spec := range map[string]map[string]any{"applied": c.patched(c.manifest), "as it is": c.spec()} {
		stored, refused := c.admit(c.live, c.object(spec))
		if len(refused) > 0 || !equal(stored, c.live) {
			c.fail("to write it again (%s) is refused %v, or changes it:\n%s", how, refused, cmp.Diff(c.live, stored))
		}
	}
}

// mistake does something wrong and, if that is accepted, undoes it: as if it had never been.
func (c *chain) mistake() {
	before, live, was := c.manifest, c.live, c.rendered()
	spec, name, err := c.kind.Mistake(c.Rand, before)
	if err != nil {
		c.Fatal(err)
	}
	c.count["mistakes"]++
	if !c.write(spec, "a mistake, "+name) {
		return
	}
	c.count["mistakes that are accepted"]++
	if !c.write(before, "the mistake is undone") {
		return // a rule about changes, which write knows
	}
	if want := c.asIfNew(live); !equal(want, c.spec()) || equal(live, c.live) && !equal(was, c.rendered()) {
		c.fail("what was undone leaves something behind (-before +after):\n%s", cmp.Diff(want, c.spec()))
	}
}

func equal(a, b any) bool { return text(a) == text(b) }

// text is a value as JSON, with sorted keys.
func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
