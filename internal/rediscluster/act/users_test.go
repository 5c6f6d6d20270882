// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// Every instance accepts the passwords before any logs in to another with them, and has the users that are asked for and no others.
func TestSetAccess(t *testing.T) {
	b := world3(t, interceptor.Funcs{})
	b.subject.Access.Users = []access.User{{Name: "app", Rules: []string{"on", "+get", "~*"}}}
	if err := b.pool.Node(b.nodes[0].Addr(), redis.Credentials{}).SetUser(t.Context(), "former", []string{"on"}); err != nil {
		t.Fatal(err)
	}
	told := b.told("")
	b.must(plan.SetAccess{On: b.targets})
	last, first := -1, len(*told)
	for i, command := range *told {
		if strings.Contains(command, "ACL SETUSER default") {
			last = i
		}
		if strings.Contains(command, "CONFIG SET masterauth") {
			first = min(first, i)
		}
	}
	if last < 0 || first == len(*told) || first < last {
		t.Errorf("the last password at %d, the first login at %d of %q", last, first, *told)
	}
	for i := range b.nodes {
		found, err := b.pool.Node(b.nodes[i].Addr(), redis.Credentials{Password: "one"}).Access(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"app", "exporter", "operator-backup"}, slices.Sorted(maps.Keys(found.Users))); diff != "" {
			t.Errorf("users of node %d (-want +got):\n%s", i, diff)
		}
	}
	again := b.told("ACL SETUSER APP")
	b.must(plan.SetAccess{On: b.targets})
	if len(*again) > 0 {
		t.Errorf("users that are as asked for are told again: %q", *again)
	}
	b.subject.Access = nil
	if err := b.do(plan.SetAccess{On: b.targets}); err == nil {
		t.Error("the password is not known, and there is no error")
	}
}

// A right that is in no file is given to the user of backups, on the instances that are to have it, and taken again.
func TestLiveRightsAreSet(t *testing.T) {
	b := world3(t, interceptor.Funcs{})
	b.must(plan.SetAccess{On: b.targets, Live: map[string][]string{b.targets[0].Pod: {redis.RightToSeeJobs}}})
	has := func(i int) bool {
		found, err := b.pool.Node(b.nodes[i].Addr(), redis.Credentials{Password: "one"}).Access(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(found.Users[access.BackupUser], redis.RightToSeeJobs)
	}
	if !has(0) || has(1) {
		t.Errorf("the first has it: %t, the second: %t", has(0), has(1))
	}
	b.must(plan.SetAccess{On: b.targets})
	if has(0) {
		t.Error("the right stays when the archive is given up")
	}
}
