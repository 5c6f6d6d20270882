// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transitions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/transitions"
)

// quick is how many chains `make test` makes; thorough, with SIMULATION=all.
const quick, thorough = 8, 200

// writers are the ways in which people write a manifest.
var writers = []string{"kubectl apply", "kubectl apply --server-side", "kubectl replace"}

// chain is a resource that is changed again and again.
type chain struct {
	*testing.T
	kind      *transitions.Kind
	namespace string
	writer    string
	applied   map[string]any
	story     []string
}

// TestChains: what was changed again and again is, with all that the operator makes of it, what a new resource of the same manifest is.
// To write the manifest once more changes nothing. What is refused names a field. All chains share an operator, so a mistake in one
// does not stop the others.
func TestChains(t *testing.T) {
	first, chains := number(t, "SIMULATION_FIRST", 0), quick
	if os.Getenv("SIMULATION") == "all" {
		chains = thorough
	}
	names := []string{"App", "Application", "CronTab", "FooBar"}
	for seed := range number(t, "SIMULATION_SEEDS", chains) {
		seed += first
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 11))
			c := &chain{T: t, kind: kinds[names[seed%len(names)]], namespace: environment.NewNamespace(t, api, "chain"),
				writer: writers[seed/len(names)%len(writers)]}
			c.tell(random)
		})
	}
}

// number is that of an environment variable.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text, set := os.LookupEnv(variable)
	if !set {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	environment.Check(t, err)
	return n
}

func (c *chain) say(format string, args ...any) {
	c.story = append(c.story, fmt.Sprintf(format, args...))
}

// fail ends the test with its story.
func (c *chain) fail(format string, args ...any) {
	c.Helper()
	c.Fatalf("%s\n%s: %s", fmt.Sprintf(format, args...), c.writer, strings.Join(c.story, "\n"))
}

// object is the resource with a spec.
func (c *chain) object(spec map[string]any) *unstructured.Unstructured {
	o := environment.Object(c.kind.GroupVersionKind, c.namespace, "x")
	if spec != nil {
		o.Object["spec"] = runtime.DeepCopyJSON(spec)
	}
	return o
}

// tell tells the story of a seed.
func (c *chain) tell(random *rand.Rand) {
	manifest := c.kind.Start(random)
	c.say("begins with %s", text(manifest))
	if err := c.write(manifest); err != nil {
		c.fail("%v", err)
	}
	for range 2 + random.IntN(3) {
		changed, what := c.kind.Change(random, manifest, 8)
		if random.IntN(4) == 0 {
			var err error
			changed, what, err = c.kind.Mistake(random, manifest)
			environment.Check(c.T, err)
		}
		c.say("%s", what)
		if err := c.write(changed); err != nil {
			c.wantField(err)
			c.say("  refused: %v", err)
			continue
		}
		manifest = changed
		if random.IntN(2) == 0 {
			c.settled()
		}
	}
	fresh := &chain{T: c.T, kind: c.kind, namespace: environment.NewNamespace(c.T, api, "fresh"), writer: c.writer, story: c.story}
	if err := fresh.write(manifest); err != nil {
		c.fail("a new one is refused: %v", err)
	}
	c.sameAs(fresh, manifest)
	c.again(manifest)
}

// write writes a manifest as the writer does.
func (c *chain) write(manifest map[string]any) error {
	ctx, object := context.Background(), c.object(manifest)
	live := c.object(nil)
	there := environment.Get(c.T, api, live)
	var err error
	switch {
	case c.writer == "kubectl apply --server-side":
		err = api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)
	case !there:
		err = api.Create(ctx, object)
	case c.writer == "kubectl replace":
		live.Object["spec"] = object.Object["spec"]
		err = api.Update(ctx, live)
	default:
		var patch []byte
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(text(c.object(c.applied))), []byte(text(object)), []byte(text(live)))
		environment.Check(c.T, err)
		err = api.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	}
	if apierrors.IsConflict(err) { // the operator wrote meanwhile
		return c.write(manifest)
	}
	if err == nil {
		c.applied = manifest
	}
	return err
}

// wantField checks that a refusal names a field. The API server adds causes of its own that do not.
func (c *chain) wantField(err error) {
	c.Helper()
	var refusal *apierrors.StatusError
	if !errors.As(err, &refusal) {
		c.fail("an odd refusal: %v", err)
	}
	details := refusal.Status().Details
	named := func(cause metav1.StatusCause) bool {
		return strings.HasPrefix(cause.Field, "spec") || strings.HasPrefix(cause.Field, ".spec") || strings.Contains(cause.Message, "spec.")
	}
	if (details == nil || !slices.ContainsFunc(details.Causes, named)) && !strings.Contains(err.Error(), ".spec.") {
		c.fail("a refusal names no field: %v", err)
	}
}

// settled waits until the operator has seen the resource as it is.
func (c *chain) settled() *unstructured.Unstructured {
	c.Helper()
	live := c.object(nil)
	environment.Eventually(c.T, "the operator has seen "+c.kind.Kind, func() string {
		environment.Get(c.T, api, live)
		seen, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		if seen == live.GetGeneration() {
			return ""
		}
		return fmt.Sprintf("generation %d, observed %d: %s", live.GetGeneration(), seen, strings.Join(c.story, "\n"))
	})
	return live
}

// sameAs waits until what came of a resource is what came of a new one.
func (c *chain) sameAs(fresh *chain, manifest map[string]any) {
	c.Helper()
	environment.Eventually(c.T, c.kind.Kind+" is as a new one", func() string {
		want, got := outcome(c.T, fresh.settled()), outcome(c.T, c.settled())
		kept(c.kind.Kind, manifest, want, got)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Sprintf("(-new +changed)\n%s\n%s: %s", diff, c.writer, strings.Join(c.story, "\n"))
		}
		return ""
	})
}

// again writes the manifest once more: neither the resource nor what was made of it is written.
func (c *chain) again(manifest map[string]any) {
	c.Helper()
	versions := func() map[string]string {
		all := map[string]string{"the resource": c.settled().GetResourceVersion()}
		for _, object := range children(c.T, c.namespace) {
			all[object.GetKind()+" "+object.GetName()] = object.GetResourceVersion()
		}
		return all
	}
	environment.Eventually(c.T, "the same manifest once more without a write", func() string {
		before := versions()
		if err := c.write(manifest); err != nil {
			c.fail("to write it again is refused: %v", err)
		}
		return cmp.Diff(before, versions()) // once more if the operator was not done yet
	})
}

// TestTheSameManifest: whoever writes a manifest again writes nothing, although it holds what is empty, and what a webhook that wrote
// the whole object would write in another form.
func TestTheSameManifest(t *testing.T) {
	for kind, manifest := range map[string]string{
		"App": "{image: 'a:1', resources: {}, env: [], envFrom: [], command: [], service: {annotations: {}}, " +
			"ports: [{name: a, containerPort: 80}], affinity: {}, volumes: [], volumeMounts: [], topologySpreadConstraints: []}",
		"Application": "{selector: {matchLabels: {app: a}}, template: {metadata: {annotations: {}}, spec: {template: {" +
			"metadata: {labels: {app: a}}, spec: {volumes: [], containers: [{name: a, image: 'a:1', env: [], resources: {}}]}}}}}",
		"CronTab": "{cronSpec: '* * * * *', image: 'a:1', command: [], args: [], env: [], affinity: {}, " +
			"volumes: [{name: a, emptyDir: {sizeLimit: 1024Mi}}], volumeMounts: [{name: a, mountPath: /a, readOnly: false}]}",
		"FooBar": "{command: date, foo: ''}",
		"RedisCluster": "{pause: true, config: {}, auth: {previousPasswordFor: 90m}, storage: {size: 1024Mi}, " +
			"pod: [{resources: {limits: {cpu: 1000m}}, labels: {}, env: [], affinity: {}, tolerations: [], volumes: {type: pvc}}]}",
	} {
		for _, writer := range writers {
			t.Run(kind+" by "+writer, func(t *testing.T) {
				t.Parallel()
				var spec map[string]any
				encoded, err := yaml.YAMLToJSON([]byte(manifest))
				environment.Check(t, err)
				environment.Check(t, utiljson.Unmarshal(encoded, &spec))
				c := &chain{T: t, kind: kinds[kind], namespace: environment.NewNamespace(t, api, "same"), writer: writer}
				environment.Check(t, c.write(spec))
				c.again(spec)
			})
		}
	}
}

// kept takes over what a resource keeps by contract when its manifest leaves it out: the image (ADR 0034).
func kept(kind string, manifest, want, got map[string]any) {
	if named, _ := manifest["image"].(string); kind == "FooBar" && named == "" {
		for _, all := range []map[string]any{want, got} {
			for name, object := range all {
				switch {
				case name == "spec":
					spec := runtime.DeepCopyJSON(object.(map[string]any))
					delete(spec, "image")
					all[name] = spec
				case strings.HasPrefix(name, "Job "): // its name is a digest of the image, too
					delete(all, name)
				}
			}
		}
	}
}

func text(value any) string {
	if object, ok := value.(*unstructured.Unstructured); ok {
		value = object.Object
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
