// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/images"
	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/webhook"
	"middleware.hc.cn/operator/test/admit"
	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/crash"
	"middleware.hc.cn/operator/test/transitions"
)

// quickChains is how many chains `make test` makes; thoroughChains, with SIMULATION=all.
const quickChains, thoroughChains = 1, 40

// began is the manifest that chains begin with.
func began() map[string]any {
	return map[string]any{"replicas": int64(4), "shards": int64(3), "version": "8.0.6",
		"storage": map[string]any{"size": "1Gi", "storageClassName": "grows"}}
}

// admission admits RedisClusters as the webhooks do.
type admission struct {
	*admit.Server
	kind *transitions.Kind
}

var theAdmission = sync.OnceValues(func() (admission, error) {
	known := runtime.NewScheme()
	if err := manager.AddToScheme(known); err != nil {
		return admission{}, err
	}
	server, err := admit.NewServer(known, webhook.Options{Images: images.BuiltIn()})
	if err != nil {
		return admission{}, err
	}
	kinds, err := transitions.Kinds(root, server.Definitions)
	return admission{server, kinds["RedisCluster"]}, err
})

// newAdmission has the storage class that chains name made, too.
func newAdmission(t *testing.T) admission {
	t.Helper()
	a, err := theAdmission()
	check(t, err)
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows"}, Provisioner: "example.com/none",
		AllowVolumeExpansion: ptr.To(true)}
	if err := api.Create(t.Context(), class); !apierrors.IsAlreadyExists(err) {
		check(t, err)
	}
	return a
}

// chain is a cluster that is changed again and again, by an author who writes the whole manifest.
type chain struct {
	*testing.T
	admission
	cluster *v1alpha1.RedisCluster
	kubelet *kubelet
	op      *operator
	world   crash.World
	// manifest is the last that was accepted.
	manifest map[string]any
	story    []string
	looks    atomic.Int64
}

// newChain is a cluster of a manifest, at rest, with what its author may name.
func newChain(t *testing.T, a admission, manifest map[string]any) *chain {
	t.Helper()
	namespace := newNamespace(t)
	c := &chain{T: t, admission: a, cluster: &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache"}}}
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "some-settings"},
		Data: map[string]string{"redis.conf": "maxclients 200\nhz 15\n"}})
	create(t, labelled(namespace, "some-users", v1alpha1.LabelAuth, map[string]string{"alice": "on >wonder ~cache:* +@read"}))
	c.kubelet = startFaithfulKubelet(t, namespace, "8.0.6")
	c.kubelet.world.OnCommand(func(_ *redistest.Node, args []string) {
		if slices.Equal(args, []string{"CLUSTER", "NODES"}) {
			c.looks.Add(1)
		}
	})
	c.op = startOperator(t, namespace, c.kubelet.world)
	c.world = crash.World{API: api, Kinds: childKinds, Namespaces: []string{namespace}, Normalise: asUsersSee}
	t.Cleanup(func() { check(t, c.world.Clear(context.Background())) })
	c.say("begins with %s", inWords(manifest))
	if refused := c.write(manifest); len(refused) > 0 {
		c.Fatalf("%v\n%s", refused, c.told())
	}
	c.rest()
	return c
}

func (c *chain) say(format string, args ...any) {
	c.story = append(c.story, fmt.Sprintf(format, args...))
}

func (c *chain) told() string { return strings.Join(c.story, "\n") }

// write writes a manifest, unless it is refused. Each refusal names a field.
func (c *chain) write(manifest map[string]any) (refused []admit.Refusal) {
	c.Helper()
	gvk := v1alpha1.GroupVersion.WithKind("RedisCluster")
	eventually(c.T, "the manifest is written", func() string {
		var before map[string]any
		object := environment.Object(gvk, c.cluster.Namespace, c.cluster.Name)
		there := environment.Get(c.T, api, object)
		if there {
			before = runtime.DeepCopyJSON(object.Object)
		}
		object.Object["spec"] = runtime.DeepCopyJSON(manifest)
		var stored map[string]any
		var err error
		stored, _, refused, err = c.Admit(c.Context(), gvk, before, object.Object)
		check(c.T, err)
		if len(refused) > 0 {
			return ""
		}
		object.Object = stored
		if there {
			err = api.Update(c.Context(), object)
		} else {
			err = api.Create(c.Context(), object)
		}
		if apierrors.IsConflict(err) { // the operator wrote meanwhile
			return err.Error()
		}
		check(c.T, err)
		return ""
	})
	for _, r := range refused {
		if !strings.HasPrefix(r.Field, "spec") && !strings.Contains(r.Message, "spec.") || r.Message == "" {
			c.Errorf("a refusal names no field: %q: %s\n%s", r.Field, r.Message, c.told())
		}
	}
	if len(refused) == 0 {
		c.manifest = manifest
	}
	return refused
}

// rest waits until the operator has nothing more to do: nothing, or nothing before somebody changes something. Several changes of
// a template take minutes on a busy machine, so the operator has a minute from each write on, for a while.
func (c *chain) rest() {
	c.Helper()
	const longest = 20
	for minute := 1; !c.rested(minute < longest); minute++ {
		c.say("(after %d minutes: %s)", minute, c.cluster.Status.Reason)
	}
}

// rested waits until the operator is at rest; if it may write meanwhile, only until it has written for a minute.
func (c *chain) rested(writing bool) (done bool) {
	c.Helper()
	writes, since, began := -1, time.Now(), time.Now()
	eventually(c.T, "the cluster comes to rest", func() string {
		if n := c.op.writes(); n != writes {
			if writing && time.Since(began) > time.Minute {
				return ""
			}
			writes, since = n, time.Now()
			c.looks.Store(0)
		}
		get(c.T, c.cluster)
		s := c.cluster.Status
		stalled := meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled)
		if pod := toDelete.FindStringSubmatch(s.Reason); pod != nil && s.Plan != nil && s.Plan.Step == v1alpha1.ReasonRollout {
			c.say("(a person deletes %s)", pod[1])
			running := c.kubelet.uids()[pod[1]]
			c.kubelet.kill(nil, pod[1])
			eventually(c.T, pod[1]+" runs again", func() string {
				if now := c.kubelet.uids()[pod[1]]; now == "" || now == running {
					return "it does not"
				}
				return ""
			})
			writes = -1
			return "a person restarts instances"
		}
		switch {
		case s.ObservedGeneration != c.cluster.Generation, s.Plan == nil,
			s.Plan.Step != "None" && s.Phase != v1alpha1.PhasePaused && !stalled:
			return fmt.Sprintf("phase %s, reason %q, plan %+v\n%s", s.Phase, s.Reason, s.Plan, c.told())
		case time.Since(since) < 5*pollInterval || c.looks.Load() < int64(3*len(c.kubelet.uids())):
			return "the operator still works\n" + c.told()
		}
		done = true
		return ""
	})
	return done
}

// toDelete is the pod that a person is told to delete first (pod[0].updateStrategy.type OnDelete).
var toDelete = regexp.MustCompile(`when you delete them, replicas first: ([a-z0-9-]+)`)

// writes is how often an operator changed something.
func (o *operator) writes() (n int) {
	for _, request := range o.asked() {
		if !strings.HasPrefix(request, "GET ") {
			n++
		}
	}
	return n
}

// outcome is what users see.
func (c *chain) outcome() string {
	c.Helper()
	text, err := c.world.Outcome(c.Context())
	check(c.T, err)
	return text
}

// becomes waits until users see what they are to see.
func (c *chain) becomes(what, want string) {
	c.Helper()
	eventually(c.T, what, func() string {
		got := c.outcome()
		if got == want {
			return ""
		}
		time.Sleep(pollInterval) // a look at all objects has its cost
		return fmt.Sprintf("(-want +got)\n%s\n%s", cmp.Diff(want, got), c.told())
	})
}

// asUsersSee takes out of an object what a change leaves by contract, and what chance decides.
func asUsersSee(object *unstructured.Unstructured) error {
	if err := normalise(object); err != nil {
		return err
	}
	for _, path := range [][]string{
		{"metadata", "generation"}, {"metadata", "labels", "createdAt"}, {"status", "observedGeneration"},
		{"status", "refusedSettings"}, // it stays, so that they are not tried again
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	strip := func(names []string, path ...string) error {
		list, found, err := unstructured.NestedSlice(object.Object, path...)
		if err != nil || !found {
			return err
		}
		for _, entry := range list {
			for _, name := range names {
				delete(entry.(map[string]any), name)
			}
		}
		return unstructured.SetNestedSlice(object.Object, list, path...)
	}
	switch object.GetKind() {
	case "RedisCluster":
		object.SetManagedFields(nil) // of refusedSettings, too
		if err := strip([]string{"type", "slots", "masterNodeId"}, "status", "nodes"); err != nil {
			return err // who is a master, and of which slots
		}
		if err := someNode(object); err != nil {
			return err // on which node most masters are
		}
	case "PersistentVolumeClaim": // 1Gi may be written in other words
		for _, path := range [][]string{{"spec", "resources", "requests", "storage"}, {"status", "capacity", "storage"}} {
			text, _, _ := unstructured.NestedString(object.Object, path...)
			size, err := resource.ParseQuantity(text)
			if err != nil {
				return err
			}
			if err := unstructured.SetNestedField(object.Object, size.Value(), path...); err != nil {
				return err
			}
		}
	case "Pod": // the stand-ins' own, by address
		object.SetManagedFields(nil)
	case "StatefulSet": // what a claim was made with stays in its template
		if err := strip([]string{"spec"}, "spec", "volumeClaimTemplates"); err != nil {
			return err
		}
	}
	return strip([]string{"observedGeneration"}, "status", "conditions")
}

var nodeName = regexp.MustCompile(`\bnode-[0-9]+`)

// someNode takes the name of the node that has most masters out of the condition MastersSpread: with two nodes it is either.
func someNode(object *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil || len(conditions) == 0 {
		return err
	}
	for _, entry := range conditions {
		condition := entry.(map[string]any)
		if message, is := condition["message"].(string); is && condition["type"] == v1alpha1.ConditionMastersSpread {
			condition["message"] = nodeName.ReplaceAllString(message, "some node")
		}
	}
	return unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions")
}

// TestChains: a cluster that was changed again and again is, with all that the operator made of it, what a new one of the same manifest
// is. What it cannot become shows in its status, and undone it is as if it had never been asked for. To write the manifest once more
// changes nothing. What is refused names a field. SIMULATION_FIRST and SIMULATION_SEEDS choose the stories.
func TestChains(t *testing.T) {
	a := newAdmission(t)
	first, chains := number(t, "SIMULATION_FIRST", 0), quickChains
	if crash.All() {
		chains = thoroughChains
	}
	for seed := range number(t, "SIMULATION_SEEDS", chains) {
		seed += first
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			c := newChain(t, a, began())
			c.tell(rand.New(rand.NewPCG(uint64(seed), 13)))
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
	check(t, err)
	return n
}

// tell tells the story of a seed.
func (c *chain) tell(random *rand.Rand) {
	for changes := 0; changes < 3; {
		changed, what := c.kind.Change(random, c.manifest, 8)
		if inWords(changed) == inWords(c.manifest) || beyond(c.manifest, changed) {
			continue
		}
		c.say("%s", what)
		before := c.manifest
		if refused := c.write(changed); len(refused) > 0 {
			c.say("  refused: %v", refused)
			continue
		}
		changes++
		if why := unworkable(changed); why != "" {
			c.say("  undone: %s", why)
			c.seen()
			if refused := c.write(before); len(refused) > 0 {
				c.Fatalf("what cannot work cannot be undone: %v\n%s", refused, c.told())
			}
		}
		if random.IntN(2) == 0 {
			c.seen()
		}
	}
	c.rest()
	fresh := newChain(c.T, c.admission, c.manifest)
	fresh.story = append(c.story, "and a new one:")
	c.dropLeftovers()
	c.becomes("it is what a new one is", fresh.outcome())
	c.again()
}

// seen waits until the operator has seen the present manifest.
func (c *chain) seen() {
	c.Helper()
	eventually(c.T, "the operator sees the manifest", func() string {
		get(c.T, c.cluster)
		if c.cluster.Status.ObservedGeneration != c.cluster.Generation {
			return fmt.Sprintf("it has seen generation %d of %d\n%s", c.cluster.Status.ObservedGeneration, c.cluster.Generation, c.told())
		}
		return ""
	})
}

// again writes the manifest once more: nothing is written for it.
func (c *chain) again() {
	c.Helper()
	eventually(c.T, "the same manifest once more without a write", func() string {
		get(c.T, c.cluster)
		version, writes := c.cluster.ResourceVersion, c.op.writes()
		c.write(c.manifest)
		c.looks.Store(0)
		eventually(c.T, "the operator looks again", func() string {
			if c.looks.Load() < int64(2*len(c.kubelet.uids())) {
				return "it has not"
			}
			return ""
		})
		get(c.T, c.cluster)
		if c.cluster.ResourceVersion != version || c.op.writes() != writes {
			return fmt.Sprintf("%v\n%s", c.op.written(0), c.told()) // once more, if the operator was not done yet
		}
		return ""
	})
}

// dropLeftovers does what a user does about claims of instances that there are no more: they stay by policy.
func (c *chain) dropLeftovers() {
	c.Helper()
	var claims corev1.PersistentVolumeClaimList
	check(c.T, api.List(c.Context(), &claims, client.InNamespace(c.cluster.Namespace)))
	running := c.kubelet.uids()
	for i := range claims.Items {
		pod := strings.TrimPrefix(claims.Items[i].Name, "data-")
		if _, runs := running[pod]; !runs {
			c.kubelet.mu.Lock()
			check(c.T, c.kubelet.release(c.Context(), pod, "Delete"))
			c.kubelet.mu.Unlock()
		}
	}
}

// beyond reports whether a change is about what the stand-in cannot show, or what takes minutes by contract.
func beyond(before, after map[string]any) bool {
	for _, field := range []string{
		"modules", "tls", // servers of the stand-in load no modules, and TLS stays as it was
		"hibernate",               // a person wakes it, and the stand-in's claims of before go: hibernate_test.go
		"updateStrategy", "pause", // what was assigned stays assigned, and a new one that is paused is not made at all
	} {
		if inWords(before[field]) != inWords(after[field]) {
			return true
		}
	}
	if inWords(withoutUsers(before)) != inWords(withoutUsers(after)) {
		return true // every stage of another password takes minutes: test/simulation has them
	}
	var spec v1alpha1.RedisClusterSpec
	if json.Unmarshal([]byte(inWords(after)), &spec) != nil {
		return false // it will be refused
	}
	return spec.InstanceCount() > 9 || spec.ShardCount() > 5 || // they have their price
		!namedEngine.MatchString(spec.Image())
}

// withoutUsers is spec.auth without the users, which are changed at once.
func withoutUsers(manifest map[string]any) map[string]any {
	auth, _ := manifest["auth"].(map[string]any)
	rest := map[string]any{}
	maps.Copy(rest, auth)
	delete(rest, "aclSecretName")
	return rest
}

// unworkable says why no cluster can be made of a manifest that is accepted; empty when one can.
func unworkable(manifest map[string]any) string {
	var spec v1alpha1.RedisClusterSpec
	if err := json.Unmarshal([]byte(inWords(manifest)), &spec); err != nil {
		return err.Error()
	}
	template := spec.Template()
	pod := corev1.PodSpec{NodeSelector: template.NodeSelector, Affinity: template.Affinity,
		Containers: []corev1.Container{{Resources: template.Resources}}}
	switch {
	case unschedulable(&pod):
		return "no node fits"
	case template.PriorityClassName != "":
		return "there is no such priority class"
	case spec.Auth.ACLSecretName != "" && spec.Auth.ACLSecretName != "some-users":
		return "there are no such users"
	case template.Configmap != "" && template.Configmap != "some-settings":
		return "there is no such ConfigMap"
	}
	for name := range spec.Config {
		if _, known := redisconf.Defaults(column(spec.Image()))[name]; !known {
			return "servers do not know " + name
		}
	}
	return ""
}

// column is the table of settings of an image's engine.
func column(image string) string {
	named := namedEngine.FindStringSubmatch(image)
	if named == nil {
		return "redis-8.0"
	}
	parts := strings.Split(named[2], ".")
	exact := named[1] + "-" + parts[0] + "." + parts[1]
	if slices.Contains(redisconf.Engines(), exact) {
		return exact
	}
	return "redis-8.0"
}

// inWords is a value as JSON, with sorted keys.
func inWords(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
