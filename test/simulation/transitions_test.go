// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
)

// settings are what users of clusters that are changed set, and, at the end, what engines refuse.
var settings = []map[string]string{
	nil,
	{"cluster-node-timeout": "5000", "hz": "20"},
	{"maxmemory-policy": "allkeys-lru"},
	{"maxmemory": "64mb", "maxmemory-policy": "volatile-lru", "hz": "50"},
	{"maxmemory-policy": "least-loved"},
	{"no-such-setting": "1"},
}

// TestChains: a cluster whose spec was changed again and again, in the midst of what the change before it asked for, is what a new
// cluster of its last spec is, but for which slots each shard has; no acknowledged write is lost on the way. Among the changes are
// images of other versions and engines, passwords, users and certificates, and mistakes: what an engine refuses, fewer instances than
// shards, an older version. A cluster whose instances a person restarts (OnDelete) has such a person.
func TestChains(t *testing.T) {
	first := environment(t, "SIMULATION_FIRST", 0)
	for seed := range environment(t, "SIMULATION_SEEDS", 3) {
		seed += first
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var spec v1alpha1.RedisClusterSpec
			var want, got, story string
			synctest.Test(t, func(t *testing.T) { spec, got, story = chain(t, seed) })
			synctest.Test(t, func(t *testing.T) { want = newOf(t, seed, spec).finally() })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("not what a new cluster is (-new +changed):\n%s\n%s", diff, story)
			}
		})
	}
}

// newOf is a new cluster of a spec, with what the spec names.
func newOf(t *testing.T, seed uint64, spec v1alpha1.RedisClusterSpec) *simulation {
	t.Helper()
	s := prepared(t, seed, 1, false)
	s.renders, s.bringsBack = true, true
	s.cluster.Spec = spec
	s.cluster.Spec.Config = nil // no server starts with a setting that it refuses: it is asked for when they run
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: "some-users",
		Labels: map[string]string{v1alpha1.LabelAuth: "true"}}, Data: map[string][]byte{"alice": []byte("on >wonder ~cache:* +@read")}})
	if spec.TLS != nil {
		s.encrypt()
	}
	s.populate()
	if s.cluster.AuthEnabled() {
		s.guard()
	}
	s.cluster.Spec.Config = spec.Config
	return s
}

// engines are images that a cluster may change to, each to those after it, in the order of their versions, as far as the one engine
// reads the files of the other.
var engines = []struct{ repository, version string }{
	{"docker.io/library/redis", "7.0.15"}, {"mirror.example.com/redis", "7.0.15"}, {"docker.io/library/redis", "8.0.6"},
	{"docker.io/valkey/valkey", "8.1.1"}, {"docker.io/valkey/valkey", "9.1.2"}, {"mirror.example.com/valkey", "9.1.2"},
}

// beginning is the spec that a chain begins with: of either engine, with a password or without, encrypted or not.
func beginning(seed uint64) v1alpha1.RedisClusterSpec {
	image := engines[[]int{0, 4, 0, 3}[seed%4]]
	spec := v1alpha1.RedisClusterSpec{Replicas: ptr.To[int32](6), Shards: ptr.To[int32](3), SpreadMasters: ptr.To(false),
		Repository: image.repository, Version: image.version,
		Auth: v1alpha1.Auth{Enabled: ptr.To(seed%3 == 1), PreviousPasswordFor: &metav1.Duration{Duration: 3 * time.Minute}},
		Pod:  []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}}}}
	if seed%5 == 2 {
		spec.TLS = &v1alpha1.TLS{SecretName: "certificate"}
	}
	return spec
}

// chain changes a cluster again and again.
func chain(t *testing.T, seed uint64) (last v1alpha1.RedisClusterSpec, outcome, story string) {
	t.Helper()
	s := newOf(t, seed, beginning(seed))
	s.converge()
	app := newApplication(s)
	for key := range 24 {
		app.write(fmt.Sprintf("key:%d", key))
	}
	s.world.Run(2 * time.Second)
	for range 2 + s.random.IntN(3) {
		s.change()
		for range s.random.IntN(40) { // often less than it takes
			s.reconcile()
			s.world.Run(time.Second)
		}
	}
	s.cluster.Spec.Pause = false
	if c := s.cluster.Spec.Config; c["maxmemory-policy"] == "least-loved" || c["no-such-setting"] != "" {
		s.cluster.Spec.Config, s.cluster.Generation = nil, s.cluster.Generation+1 // what was before stays as long as it is refused
	}
	outcome = s.finally()
	s.wantHealthy()
	app.wantAll()
	return *s.cluster.Spec.DeepCopy(), outcome, strings.Join(s.narrative, "\n")
}

// remembered is what engines refused: it stays in the status when nobody asks for it any more, so that it is not tried again.
var remembered = regexp.MustCompile(`, refused \[.*\], data `)

// whereMasters depends on how often they switched over.
var whereMasters = regexp.MustCompile(`MastersSpread is .*\n`)

// finally is what comes of a cluster.
func (s *simulation) finally() string {
	s.rest()
	s.reconcile() // that the cluster has formed is read from the status: users are accepted from then on
	s.rest()
	return remembered.ReplaceAllString(whereMasters.ReplaceAllString(s.outcome(true), ""), ", data ")
}

// change changes the spec, if admission takes the change, or the certificate of an encrypted cluster.
func (s *simulation) change() {
	before := s.cluster.DeepCopy()
	spec := &s.cluster.Spec
	template := &spec.Pod[0]
	switch s.random.IntN(13) {
	case 0, 1:
		shards := int32(3 + s.random.IntN(3))
		spec.Shards, spec.Replicas = &shards, ptr.To(shards*int32(1+s.random.IntN(3)))
	case 2:
		spec.Replicas = ptr.To(int32(2 + s.random.IntN(12)))
	case 3, 4:
		spec.Config = maps.Clone(settings[s.random.IntN(len(settings))])
	case 5:
		spec.Pause = !spec.Pause
		spec.UpdateStrategy = v1alpha1.SlotStrategy{Type: v1alpha1.AutoReceive, Pipeline: "7", KeysPerSecond: 1000}
	case 6, 7:
		image := engines[s.random.IntN(len(engines))]
		spec.Repository, spec.Version = image.repository, image.version
	case 8:
		template.Labels = map[string]string{"team": fmt.Sprint(s.random.IntN(3))}
	case 9:
		template.UpdateStrategy.Type = []v1alpha1.PodUpdateStrategyType{v1alpha1.OnDelete, v1alpha1.RollingUpdate}[s.random.IntN(2)]
	case 10:
		spec.Auth.Rotate = fmt.Sprintf("the %d.", s.random.IntN(100))
	case 11:
		spec.Auth.ACLSecretName = []string{"", "some-users"}[s.random.IntN(2)]
	case 12:
		if s.encryption != nil {
			s.renew()
		}
	}
	after := s.cluster.DeepCopy()
	admission.Default(after)
	refused := append(admission.Validate(after, admission.Options{}), admission.ValidateUpdate(before, after, admission.Options{})...)
	s.say("--- %d shards of %d instances, %v, paused %t, image %s, labels %v, %s, auth %+v: refused %v", spec.ShardCount(),
		spec.InstanceCount(), spec.Config, spec.Pause, spec.Image(), template.Labels, template.UpdateStrategy.Type, spec.Auth, refused)
	if len(refused) > 0 {
		s.cluster.Spec = before.Spec
		return
	}
	s.cluster.Generation++
}
