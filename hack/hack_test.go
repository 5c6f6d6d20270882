// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hack tests what the scripts decide. The programs that they decide on are stand-ins that tell how they were called.
package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// script runs a script of a copy of hack/, with stand-ins in place of programs and of other scripts, and returns what it and they said.
func script(t *testing.T, standIns map[string]string, environment []string, args ...string) (said string, failed bool) {
	t.Helper()
	root := t.TempDir()
	bin := filepath.Join(root, "bin")
	for _, dir := range []string{bin, filepath.Join(root, "hack")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	standIns["hack/"+args[0]] = text(t, args[0])
	for name, body := range standIns {
		if !strings.HasPrefix(name, "hack/") {
			name = "bin/" + name
		}
		if !strings.HasPrefix(body, "#!") {
			body = "#!/usr/bin/env bash\n" + body
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(body), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(root, "hack", args[0]), args[1:]...)
	// The stand-ins before the system's own programs, and nothing else: the machine may have the real ones.
	cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + root}, environment...)
	out, err := cmd.CombinedOutput()
	return strings.ReplaceAll(string(out), root, "ROOT"), err != nil
}

const (
	works   = "exit 0"
	refused = "exit 1"
	told    = `echo "KUBECONFIG=${KUBECONFIG:-} LOAD_IMAGE=${LOAD_IMAGE:-} CLUSTER_DOWN=${CLUSTER_DOWN:-} RUN $*"`
	// A tool that has a cluster once it was told to create one.
	creates = `case "$*" in *create*) echo "made: $(basename "$0") $*" >&2; touch "$HOME/made" ;; *) [[ -e $HOME/made ]] && echo config ;; esac`
)

func TestWhereTheDemonstrationRuns(t *testing.T) {
	const kind = "KUBECONFIG=ROOT/build/demo/kubeconfig LOAD_IMAGE=kind load image-archive --name middleware-operator " +
		"CLUSTER_DOWN=kind delete cluster --name middleware-operator RUN it"
	for name, tt := range map[string]struct {
		standIns    map[string]string
		environment []string
		want        []string
	}{
		"a named cluster comes first": {map[string]string{"docker": works, "kind": creates}, []string{"KUBECONFIG=/mine"},
			[]string{"demo: on the cluster of KUBECONFIG", "KUBECONFIG=/mine LOAD_IMAGE= CLUSTER_DOWN= RUN it"}},
		"kind is made": {map[string]string{"docker": works, "kind": creates}, nil, []string{
			"demo: making the cluster middleware-operator with kind",
			"made: kind create cluster --name middleware-operator --kubeconfig ROOT/build/demo/kubeconfig.kind --wait 3m", kind}},
		"kind that is there is kept": {map[string]string{"docker": works, "kind": "echo config", "k3d": creates}, nil, []string{kind}},
		"k3d": {map[string]string{"docker": works, "k3d": creates}, nil, []string{
			"demo: making the cluster middleware-operator with k3d",
			"made: k3d cluster create middleware-operator --wait --timeout 3m --kubeconfig-update-default=false",
			"KUBECONFIG=ROOT/build/demo/kubeconfig LOAD_IMAGE=k3d image import --cluster middleware-operator " +
				"CLUSTER_DOWN=k3d cluster delete middleware-operator RUN it"}},
		"a Docker that does not run": {map[string]string{"docker": refused, "kind": creates}, nil,
			[]string{"demo: on the local cluster", "KUBECONFIG= LOAD_IMAGE= CLUSTER_DOWN=make cluster-down RUN it"}},
		"Docker alone": {map[string]string{"docker": works}, nil,
			[]string{"demo: on the local cluster", "KUBECONFIG= LOAD_IMAGE= CLUSTER_DOWN=make cluster-down RUN it"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.standIns["hack/with-cluster.sh"] = told
			said, failed := script(t, tt.standIns, tt.environment, "demo-cluster.sh", "it")
			if diff := cmp.Diff(tt.want, strings.Split(strings.TrimSpace(said), "\n")); diff != "" || failed {
				t.Errorf("failed %t, want (-), said (+):\n%s", failed, diff)
			}
		})
	}
}

func TestTheDemonstrationEndsWithoutACluster(t *testing.T) {
	said, failed := script(t, map[string]string{"docker": works, "kind": refused, "hack/with-cluster.sh": told}, nil, "demo-cluster.sh", "it")
	if !failed || strings.Contains(said, "RUN it") {
		t.Errorf("failed %t: %s", failed, said)
	}
}

// The first layer that fails, in whichever lane, ends the run; what ran is in the table.
func TestLayers(t *testing.T) {
	const follows = `echo "did $1"`
	for name, tt := range map[string]struct {
		make   string
		failed bool
		want   []string
		never  string
	}{
		"all pass":          {follows, false, []string{"did cluster", "did e2e", "did lint", "did unit", "in all"}, "failed"},
		"one fails":         {follows + `; [[ $1 != cluster ]]`, true, []string{"did cluster", "cluster (failed)", "in all"}, "did e2e"},
		"one beside fails":  {follows + `; [[ $1 != lint ]]`, true, []string{"did lint", "lint (failed)"}, "did unit"},
		"what runs on ends": {`if [[ $1 == lint ]]; then sleep 30; fi; exit 1`, true, []string{"cluster (failed)"}, "lint"},
	} {
		t.Run(name, func(t *testing.T) {
			said, failed := script(t, map[string]string{"make": tt.make}, nil,
				"test.sh", "--beside", "lint unit", "cluster", "e2e")
			if failed != tt.failed || strings.Contains(said, tt.never) {
				t.Errorf("failed %t, or it said %q:\n%s", failed, tt.never, said)
			}
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

// What runs beside a layer that fails is ended with it.
func TestLayersLeaveNothingBehind(t *testing.T) {
	begun, ended := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "ended")
	const runs = `if [[ $1 == beside ]]; then
  trap 'touch "$ENDED"; exit' TERM
  touch "$BEGUN"
  sleep 60 & wait
fi
until [[ -e $BEGUN ]]; do sleep 0.05; done
exit 1`
	said, failed := script(t, map[string]string{"make": runs}, []string{"BEGUN=" + begun, "ENDED=" + ended},
		"test.sh", "--beside", "beside", "unit")
	if _, err := os.Stat(ended); err != nil || !failed {
		t.Errorf("failed %t, %v:\n%s", failed, err, said)
	}
}

func TestAreas(t *testing.T) {
	list := `imports=; [[ "$*" != *-f* ]] || imports=" m/internal/admission/app"
printf '%s\n' m/api/app/v1 m/internal/admission/app "m/internal/webhook$imports" m/internal/apply m/test/e2e/app m/pkg/generated/app |
  sed "s|m/|middleware.hc.cn/operator/|g"`
	said, failed := script(t, map[string]string{"go": list}, nil, "packages.sh", "area", "app")
	const module = "middleware.hc.cn/operator/"
	want := []string{module + "api/app/v1", module + "internal/admission/app", module + "internal/webhook"}
	if diff := cmp.Diff(want, strings.Fields(said)); diff != "" || failed {
		t.Errorf("failed %t, want (-), said (+):\n%s", failed, diff)
	}
	said, failed = script(t, map[string]string{"go": list}, nil, "packages.sh", "area", "ap")
	if want := `there is no area "ap"; there are: admission api app apply internal webhook`; strings.TrimSpace(said) != want || !failed {
		t.Errorf("failed %t: %s", failed, said)
	}
}

// What a release would be wrong with ends it before anything is built.
func TestReleaseIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		environment, args []string
		want              string
	}{
		"an image of another version": {nil, []string{"0.2.0", "r:5000/operator:0.1.0"}, "the tag of the image must be the version, 0.2.0"},
		"no digest":                   {nil, []string{"0.1.0", "r:5000/operator:0.1.0"}, "DIGEST is missing: push the image first"},
		"a checkout of another version": {nil, []string{"0.1.0", "r:5000/operator:0.1.0", "sha256:1"},
			"is of another version: make update VERSION=0.1.0"},
		"the same, and nothing published": {[]string{"SNAPSHOT=yes"}, []string{"0.1.0", "r:5000/operator:0.1.0"}, "is of another version"},
	} {
		t.Run(name, func(t *testing.T) {
			standIns := map[string]string{"go": "echo built >&2", "hack/release-check.sh": text(t, "release-check.sh")}
			said, failed := script(t, standIns, tt.environment, append([]string{"release.sh"}, tt.args...)...)
			if !failed || !strings.Contains(said, tt.want) || strings.Contains(said, "built") {
				t.Errorf("failed %t, want %q:\n%s", failed, tt.want, said)
			}
		})
	}
}

// The same is asked before anything is pushed, and that the commit was merged.
func TestReleaseIsCheckedFirst(t *testing.T) {
	const branch = "BRANCH=origin/main"
	for name, tt := range map[string]struct {
		grep, git, changes string
		environment        []string
		want               string
	}{
		"all is well":                  {works, works, works, []string{branch}, ""},
		"an old chart or bundle":       {refused, works, works, []string{branch}, "is of another version: make update VERSION=0.1.0"},
		"a commit that was not merged": {works, refused, works, []string{branch}, "the commit is not in origin/main"},
		"the same, on a laptop":        {works, refused, works, nil, ""},
		"nothing in the changelog":     {works, works, `echo "no heading" >&2; exit 1`, []string{branch}, "no heading"},
	} {
		t.Run(name, func(t *testing.T) {
			standIns := map[string]string{"grep": tt.grep, "git": tt.git, "go": tt.changes}
			said, failed := script(t, standIns, tt.environment, "release-check.sh", "0.1.0")
			if failed != (tt.want != "") || !strings.Contains(said, tt.want) {
				t.Errorf("failed %t, want %q:\n%s", failed, tt.want, said)
			}
		})
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
