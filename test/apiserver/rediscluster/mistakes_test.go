// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/crash"
)

// shows is what the status says of the mistakes that are accepted. All others are refused, with the path of a field.
var shows = map[string]string{
	"a ConfigMap that there is not":   "ConfigMap no-such-config does not exist",
	"a Secret that there is not":      "Secret no-such-secret does not exist",
	"a node that there is not":        "not scheduled: 0/3 nodes are available",
	"a setting that is not":           "redis 8.0.6 has no such setting",
	"a value that is refused":         `refuses the value "least-loved"`,
	"an image that is nowhere":        "ImagePullBackOff",
	"an account that there is not":    "there is no ServiceAccount no-such-account in this namespace",
	"more memory than any node has":   "not scheduled: 0/3 nodes are available",
	"two families where there is one": "not configured on this cluster",
	"users that there are not":        "Secret no-such-secret does not exist",
}

// TestMistakesAreUndone: whatever people do wrong to a cluster that runs is refused with the path of a field or shows in its status,
// leaves every slot served and every key where it is, and is as if it had never been when it is undone. Some of those that are
// accepted; SIMULATION=all makes all.
func TestMistakesAreUndone(t *testing.T) {
	t.Parallel()
	manifest := began()
	manifest["replicas"] = int64(6)
	c := newChain(t, newAdmission(t), manifest)
	keys := c.fill()
	before := c.outcome()
	for i, mistake := range c.kind.Mistakes() {
		if shows[mistake] != "" && i%3 > 0 && !crash.All() {
			continue
		}
		wrong, err := c.kind.With(mistake, manifest)
		check(t, err)
		c.say("%s", mistake)
		refused := c.write(wrong)
		if accepted := len(refused) == 0; accepted != (shows[mistake] != "") {
			t.Errorf("%s: refused %v, and is to show %q", mistake, refused, shows[mistake])
		}
		if len(refused) > 0 {
			continue
		}
		eventually(t, mistake+" shows", func() string {
			get(t, c.cluster)
			s := c.cluster.Status
			said := s.Reason
			for _, condition := range s.Conditions {
				said += "\n" + condition.Message
			}
			for _, node := range s.Nodes {
				said += "\n" + node.Message
			}
			if s.ObservedGeneration != c.cluster.Generation || !strings.Contains(said, shows[mistake]) {
				return fmt.Sprintf("generation %d, plan %+v: %s", s.ObservedGeneration, s.Plan, said)
			}
			return ""
		})
		if !meta.IsStatusConditionTrue(c.cluster.Status.Conditions, v1alpha1.ConditionSlotsCovered) {
			t.Errorf("%s: not every slot is served: %s", mistake, c.cluster.Status.Reason)
		}
		if refused := c.write(manifest); len(refused) > 0 {
			t.Fatalf("%s cannot be undone: %v", mistake, refused)
		}
		c.rest()
		c.becomes(mistake+" has never been", before)
	}
	for _, key := range keys {
		if len(c.kubelet.world.Holders(key)) == 0 {
			t.Errorf("%s is lost", key)
		}
	}
	for mistake := range shows {
		if !slices.Contains(c.kind.Mistakes(), mistake) {
			t.Errorf("there is no mistake %q", mistake)
		}
	}
}

// fill writes keys, and waits until the replicas have them.
func (c *chain) fill() (keys []string) {
	c.Helper()
	for n := range 24 {
		key := fmt.Sprintf("key:%d", n)
		for _, node := range instances(c.kubelet, c.cluster) {
			if try(c.T, c.kubelet, c.cluster, node, "SET", key, n) == nil {
				keys = append(keys, key)
			}
		}
		eventually(c.T, key+" is at both instances of its shard", func() string {
			if n := len(c.kubelet.world.Holders(key)); n != 2 {
				return fmt.Sprintf("it is at %d", n)
			}
			return ""
		})
	}
	return keys
}
