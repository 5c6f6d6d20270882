// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// tableNode is a line of CLUSTER NODES.
type tableNode struct {
	id, flags, link string
	slots           int
	open            []string // slots on their way, as [93-<-id]
}

func splitList(text, separator string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(separator, r) })
}

// table is what one instance knows.
func table(t *testing.T, cluster *v1alpha1.RedisCluster, pod string) ([]tableNode, error) {
	text, err := cli(t.Context(), cluster, pod, "cluster", "nodes")
	if err != nil {
		return nil, err
	}
	return readTable(pod, text)
}

// tables is what each instance knows.
func tables(t *testing.T, cluster *v1alpha1.RedisCluster) (map[string][]tableNode, error) {
	t.Helper()
	answers, err := askAll(t, cluster, "cluster", "nodes")
	if err != nil {
		return nil, err
	}
	all := map[string][]tableNode{}
	for name, text := range answers {
		if all[name], err = readTable(name, text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readTable reads the answer of a pod to CLUSTER NODES.
func readTable(pod, text string) (nodes []tableNode, err error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 {
			return nil, fmt.Errorf("%s answers CLUSTER NODES with %q", pod, line)
		}
		node := tableNode{id: words[0], flags: words[2], link: words[7]}
		for _, word := range words[8:] {
			if strings.HasPrefix(word, "[") {
				node.open = append(node.open, word)
			} else {
				node.slots += countSlots(word)
			}
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// wantTables asks every instance: no slot is on its way, and the masters own so many slots each (most first). All of them know
// exactly the instances of the status and are linked and well, or are again soon: instances drop links that were silent for half
// of the node timeout, as those of a machine that stalled were; and one of Valkey that was forgotten and has not ended within a
// node timeout introduces itself once more (valkey-io/valkey#2788), so that others know it until they have forgotten it again.
func wantTables(t *testing.T, cluster *v1alpha1.RedisCluster, owned []int) {
	t.Helper()
	all, err := tables(t, cluster)
	if err != nil {
		t.Error(err)
	}
	for name, nodes := range all {
		var counts []int
		for _, other := range nodes {
			if other.slots > 0 {
				counts = append(counts, other.slots)
			}
			if len(other.open) > 0 {
				t.Errorf("%s has open slots: %v", name, other.open)
			}
		}
		slices.Sort(counts)
		slices.Reverse(counts)
		if diff := cmp.Diff(owned, counts); diff != "" {
			t.Errorf("slots by master in the eyes of %s (-want +got):\n%s", name, diff)
		}
	}
	live.Eventually(t, "all instances are linked", func() error { return linked(t, cluster) })
}

// linked is nil when every instance knows exactly those of the status, has links to all others and takes none for failing.
func linked(t *testing.T, cluster *v1alpha1.RedisCluster) error {
	var members []string
	for _, node := range cluster.Status.Nodes {
		members = append(members, node.NodeID)
	}
	slices.Sort(members)
	all, problems := tables(t, cluster)
	for name, nodes := range all {
		var known []string
		for _, other := range nodes {
			known = append(known, other.id)
			flags := strings.ReplaceAll(other.flags, "nofailover", "")
			unwell := strings.Contains(flags, "fail") || strings.Contains(flags, "handshake") || strings.Contains(flags, "noaddr")
			if unwell || other.link != "connected" {
				problems = errors.Join(problems, fmt.Errorf("in the eyes of %s, %s is %s, %s", name, other.id, other.flags, other.link))
			}
		}
		slices.Sort(known)
		if diff := cmp.Diff(members, known); diff != "" {
			problems = errors.Join(problems, fmt.Errorf("%s knows other nodes than the cluster has (-has +knows):\n%s", name, diff))
		}
	}
	return problems
}
