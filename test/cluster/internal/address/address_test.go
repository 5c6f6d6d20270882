// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChooseHostLink(t *testing.T) {
	prefixes := func(texts ...string) []netip.Prefix {
		var out []netip.Prefix
		for _, s := range texts {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	tests := map[string]struct {
		used []netip.Prefix
		want string // the control plane's address; empty for a refusal
	}{
		"nothing used":          {prefixes("10.0.0.0/8"), "198.51.100.2"},
		"another cluster is up": {prefixes("198.51.100.0/30"), "198.51.100.242"},
		"two other clusters are up and the machine has a range": {
			prefixes("198.51.100.0/30", "198.51.100.240/30", "192.0.2.0/24"), "198.51.100.122",
		},
		"the machine's own range": {prefixes("198.51.100.0/24"), "192.0.2.242"},
		"everything used":         {prefixes("198.51.100.0/24", "192.0.2.0/24"), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			link, err := ChooseHostLink(test.used)
			if test.want == "" {
				if err == nil {
					t.Fatalf("got %v, want an error", link)
				}
				return
			}
			if err != nil || link.ControlPlane.String() != test.want {
				t.Errorf("got %v, %v; want %s", link, err, test.want)
			}
		})
	}
}

func TestParseRoutes(t *testing.T) {
	const table = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
`
	want := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} // not the default route
	got := parseRoutes(table)
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestNodesAndPodsDoNotOverlap(t *testing.T) {
	pods := netip.MustParsePrefix(Pods)
	seen := map[netip.Prefix]bool{}
	for n := 1; n <= MaxNodes; n++ {
		p := netip.MustParsePrefix(PodRange(n))
		if !pods.Overlaps(p) || seen[p] {
			t.Errorf("node %d: %s is not a part of its own of %s", n, p, pods)
		}
		seen[p] = true
		if a := netip.MustParseAddr(Node(n)); a.String() == Bridge {
			t.Errorf("node %d has the control plane's address", n)
		}
	}
}
