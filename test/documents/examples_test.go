// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Each kind is found by the names that its page and README give it: plural, short names, and the category of all five.
func TestKindsAreFoundByTheNamesOfThePages(t *testing.T) {
	for name, k := range kinds(t) {
		names := k.crd.Spec.Names
		version, _, _ := strings.Cut(name, " ")
		intro := "`" + version + "`, plural `" + names.Plural + "`"
		if len(names.ShortNames) > 0 {
			intro += ", short name `" + names.ShortNames[0] + "`"
		}
		if !strings.Contains(read(t, k.page), "\n"+intro+".") {
			t.Errorf("%s does not begin with %q", k.page, intro)
		}
		if !slices.Contains(names.Categories, "middleware") {
			t.Errorf("`kubectl get middleware` of README.md leaves out %s", name)
		}
	}
}

// The numbers of instances, shards and replicas that the pages give as examples.
func TestShardsAreAsThePageSays(t *testing.T) {
	for _, row := range []struct {
		sentence         string
		replicas, shards *int32
		want             redisv1alpha1.Topology
	}{
		{"7 instances in 3 shards are shards of 3, 2 and 2", ptr.To[int32](7), ptr.To[int32](3), redisv1alpha1.Topology{3, 2, 2}},
		{"`replicas` counts **instances**, masters and replicas together. Default 6.", nil, nil, redisv1alpha1.Topology{2, 2, 2}},
		{"half of `replicas`, rounded down, and at least 3", ptr.To[int32](9), nil, redisv1alpha1.Topology{3, 2, 2, 2}},
		{"half of `replicas`, rounded down, and at least 3", ptr.To[int32](4), nil, redisv1alpha1.Topology{2, 1, 1}},
		{"--replicas=8                                                  # 8 instances: 4 shards of 2", ptr.To[int32](8), nil,
			redisv1alpha1.Topology{2, 2, 2, 2}},
		{`"shards":3,"replicas":9}}'          # 3 shards of 3`, ptr.To[int32](9), ptr.To[int32](3), redisv1alpha1.Topology{3, 3, 3}},
	} {
		if !strings.Contains(read(t, redisPage)+read(t, redisOperationsPage), row.sentence) {
			t.Errorf("%s and %s do not say %q", redisPage, redisOperationsPage, row.sentence)
		}
		spec := redisv1alpha1.RedisClusterSpec{Replicas: row.replicas, Shards: row.shards}
		if diff := cmp.Diff(row.want, spec.Topology()); diff != "" {
			t.Errorf("%s (-page +code):\n%s", row.sentence, diff)
		}
	}
}

// builtIn are words that the scripts run and a shell has itself; redis is a function of theirs, and what they call so.
var builtIn = strings.Fields(`. [ break case cd continue do done echo elif else esac eval exec exit export fi for if in local printf
	read return set shift test then trap true unset until wait while ! { }`)

// What an image must hold for the scripts of the pods is what they run: nothing is missing in the list, and nothing is too much.
func TestScriptsUseWhatThePageLists(t *testing.T) {
	var listed []string
	for _, l := range linesOf(t, redisPage) {
		if strings.HasPrefix(l.text, "- for the scripts: ") {
			programs, _, _ := strings.Cut(l.text, ", of Debian or BusyBox")
			listed = quoted(programs)
		}
	}
	comment, text := regexp.MustCompile(`(?m)(^|\s)#.*$`), regexp.MustCompile(`'[^']*'|\$\(\(|echo "[^"(]*"`)
	function := regexp.MustCompile(`(?m)^([a-z_]+)\(\)`)
	command := regexp.MustCompile(`(?m)(?:^|[;|&]|\$\(|\bif|\bwhile|\buntil|\bdo|\bthen|\belse|! )\s*` +
		`(?:[A-Za-z_]+=\S* +)*([a-z][a-z-]*)(?:[ \t]|$)`)
	var used []string
	for _, file := range []string{"helm-charts/rediscluster/start.sh", "helm-charts/rediscluster/switchover.sh",
		"helm-charts/rediscluster/alive.sh"} {
		script := text.ReplaceAllString(comment.ReplaceAllString(read(t, file), ""), "''")
		own := []string{}
		for _, match := range function.FindAllStringSubmatch(script, -1) {
			own = append(own, match[1])
		}
		for _, match := range command.FindAllStringSubmatch(script, -1) {
			if !slices.Contains(own, match[1]) && !slices.Contains(builtIn, match[1]) {
				used = append(used, match[1])
			}
		}
		for _, program := range listed { // those that stand behind another word: `timeout 2 redis-cli`, `trap … sleep`
			if regexp.MustCompile(`(?m)(^|[^\w.-])` + program + `( |$)`).MatchString(script) {
				used = append(used, program)
			}
		}
	}
	slices.Sort(used)
	used = slices.Compact(used)
	if diff := cmp.Diff(slices.DeleteFunc(slices.Clone(listed), func(p string) bool { return p == "sh" }), used); diff != "" {
		t.Errorf("the programs of the scripts are not those of %s (-page +scripts):\n%s", redisPage, diff)
	}
}
