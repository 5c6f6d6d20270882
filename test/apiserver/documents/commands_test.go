// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// elsewhere are command lines that are not typed here, by their beginnings: the test that does it, and what it does; or why none can.
var elsewhere = []struct{ begins, test, what string }{
	{"make ", "TestMakeTargetsExist", "the target is there; CI runs most of them"},
	{"hack/cluster.sh", "TestVerbsAndToolsExist", "the verb is there; every end-to-end test is on that cluster"},
	{"export KUBECONFIG=$(hack/cluster.sh", "TestVerbsAndToolsExist", "likewise"},
	{"export SSL_CERT_FILE=$(hack/cluster.sh", "TestVerbsAndToolsExist", "likewise"},
	{"registry=$(hack/cluster.sh", "TestVerbsAndToolsExist", "likewise"},
	{"$(hack/tool.sh", "TestVerbsAndToolsExist", "the tool is there"},
	{"sdk=$(hack/tool.sh", "TestKindsThatOperatorSDKAdds", "adds kinds to a copy of the checkout"},
	{"$sdk ", "TestKindsThatOperatorSDKAdds", "likewise"},
	{"helm ", "TestTheChartLives", "installs, upgrades and uninstalls the chart with Helm"},
	{"manager ", "TestDocumentedCommandLinesParse", "the program takes the line"},
	{"backup ", "TestDocumentedBackupCommandLinesParse", "likewise"},
	{"kubectl middleware ", "TestPluginCommands", "likewise"},
	{"go run ./examples/", "TestTheExample", "builds and runs it"},
	{"operator-sdk run ", "TestRunBundle", "does it on a real OLM"},
	{"operator-sdk cleanup ", "TestRunBundle", "likewise"},
	{"operator-sdk scorecard ", "TestScorecard", "likewise"},
	{"kubectl -n middleware-operator-system get csv", "TestInstallModes", "OLM's kinds are there only"},
	{"kubectl -n middleware-operator-system get operatorconditions", "TestInstallModes", "likewise"},
	{"kubectl -n middleware-operator-system delete subscription", "TestInstallModes", "likewise"},
	{"kubectl -n middleware-operator-system delete csv", "TestInstallModes", "likewise"},
	{"kubectl apply --server-side -f dist/install.yaml", "TestTheChartIsTheInstallation", "compares that file with the chart"},
	{"kubectl apply --server-side -k config/overlays/cert-manager", "", "needs cert-manager; make verify builds every overlay"},
	{"kubectl krew ", "", "needs a published release"},
	{"printf '#!/bin/sh\\nexec kubectl middleware", "", "completion of a terminal"},
	{"chmod +x ~/.local/bin/", "", "likewise"},
	{"docker ", "", "needs Docker and a registry; hack/image.sh builds the image from the same file"},
	{"cosign ", "", "needs a published release"},
	{"age ", "TestBackupAndRestore", "does it without the program"},
	{"printf 'file appendonly.aof", "TestBackupAndRestore", "likewise"},
	{"sed '1,/^spec:/d", "TestAlertsFire", "rules without their operator are what promtool reads"},
}

// absent are commands that wait for what an API server alone has not: pods, controllers, other kinds. Their flags are read.
var absent = regexp.MustCompile(`^kubectl (-n \S+ )?(wait|logs|exec|run|rollout|get httproute|get .* -w\b|get rec -w)`)

// typed are the command lines of the pages that are typed here. A page that a test of its own follows to the letter is left to that.
func typed(t *testing.T, used map[string]bool) map[string][][]string {
	t.Helper()
	blocks := map[string][][]string{}
	fence := regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```$")
	bare := regexp.MustCompile(`^(kubectl|make|helm|backup|manager|hack/\S+) `)
	for _, pattern := range []string{"*.md", "docs/*.md", "test/*/README.md", "hack/*/README.md", "deploy/*/README.md"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		shared.Check(t, err)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			shared.Check(t, err)
			name := strings.TrimPrefix(page, root+"/")
			if name == "docs/adding-a-chart-kind.md" { // TestGuideToAddAChartKind
				continue
			}
			for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
				switch language, text := block[1], block[2]; {
				case language == "sh" || language == "console":
					blocks[name] = append(blocks[name], lines(t, name, language, text, used))
				case language == "" && bare.MatchString(text):
					t.Errorf("%s: say that this is `sh`:\n%s", name, text)
				}
			}
		}
	}
	return blocks
}

func lines(t *testing.T, page, language, block string, used map[string]bool) (list []string) {
	t.Helper()
	comment := regexp.MustCompile(`(^|\s)#.*$`)
	for line := range strings.SplitSeq(strings.ReplaceAll(block, "\\\n", " "), "\n") {
		command, prompt := strings.CutPrefix(line, "$ ")
		if line = strings.TrimSpace(comment.ReplaceAllString(command, "")); line == "" || language == "console" && !prompt {
			continue
		}
		of := slices.IndexFunc(elsewhere, func(e struct{ begins, test, what string }) bool { return strings.HasPrefix(line, e.begins) })
		switch {
		case of >= 0:
			used[elsewhere[of].begins] = true
		case regexp.MustCompile(`^(\w+=\$\()?kubectl |^\$\(hack/tool.sh kubernetes kubectl\) `).MatchString(line):
			list = append(list, line)
		case strings.HasPrefix(line, "redis-cli "): // of a client outside
		default:
			t.Errorf("%s: %s\nno test runs it: say in `elsewhere` which one does, or why none can", page, line)
		}
	}
	return list
}

// TestCommandsOfThePages types each kubectl command of the pages: it is taken by kubectl and by the API server, on the objects that the
// pages are about. What other tests run is listed, with their names.
func TestCommandsOfThePages(t *testing.T) {
	used, ran := map[string]bool{}, 0
	pages := typed(t, used)
	for _, e := range elsewhere {
		if !used[e.begins] {
			t.Errorf("no page has a command that begins with %q", e.begins)
		}
	}
	environment := terminal(t)
	for page, blocks := range pages {
		for _, block := range blocks {
			if len(block) > 0 {
				putObjects(t)
			}
			assigned := ""
			for _, line := range block {
				ran++
				if out, err := run(t, environment, assigned+asTyped(line)); err != nil {
					t.Errorf("%s: %s\n%v: %s", page, line, err, out)
				}
				if strings.Contains(line, "kubectl delete ") { // and it comes back, or is kept by a finalizer
					putObjects(t)
				}
				if name, _, _ := strings.Cut(line, "=$("); !strings.Contains(name, " ") {
					assigned += asTyped(line) + "\n"
				}
			}
		}
	}
	if ran < 80 {
		t.Errorf("only %d commands were found", ran)
	}
}

// asTyped is a line with names in place of those that a reader has to fill in. What was made by another page is made anew; what needs more
// than an API server is only read.
func asTyped(line string) string {
	line = strings.NewReplacer("KIND/NAME", "rediscluster.redis.middleware.hc.cn/cache", "KIND NAME", "rec cache", "NAMESPACE", "shop",
		"NAME", "cache", "$(hack/tool.sh kubernetes kubectl)", "kubectl").Replace(line)
	switch {
	case absent.MatchString(line):
		before, after, found := strings.Cut(line, " -- ")
		if line = before + " --help >/dev/null"; found {
			line += " # " + after
		}
	case strings.HasPrefix(line, "kubectl create namespace "):
		line += " --dry-run=client"
	case strings.HasPrefix(line, "kubectl create "):
		line = line + " --dry-run=client -o yaml | kubectl delete --ignore-not-found -f - && " + line
	}
	return line
}

func terminal(t *testing.T) []string {
	t.Helper()
	user, err := server.AddUser(envtest.User{Name: "reader", Groups: []string{"system:masters"}}, nil)
	shared.Check(t, err)
	access, err := user.KubeConfig()
	shared.Check(t, err)
	home := t.TempDir()
	file := filepath.Join(home, "config")
	shared.Check(t, os.WriteFile(file, access, 0o600))
	return append(os.Environ(), "HOME="+home, "KUBECONFIG="+file, "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"))
}

// run types a script, again when kubectl gave up connecting, which it does after ten seconds: nothing was asked then.
func run(t *testing.T, environment []string, script string) (string, error) {
	t.Helper()
	const tries = 6
	for try := 1; ; try++ {
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		command.Dir, command.Env = root, environment
		out, err := command.CombinedOutput()
		if err == nil || try == tries || !strings.Contains(string(out), "net/http: TLS handshake timeout") {
			return string(out), err
		}
	}
}

// putObjects makes the objects anew that the pages are about.
func putObjects(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "objects.yaml"))
	shared.Check(t, err)
	for _, name := range []string{"shop", "monitoring", "middleware-operator-system", "scorecard"} {
		namespace := &corev1.Namespace{}
		namespace.Name = name
		if err := api.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		shared.Check(t, yaml.Unmarshal([]byte(part), object))
		namespaces := []string{object.GetNamespace()}
		if object.GetNamespace() == "" && object.GetKind() != "ClusterRole" {
			namespaces = []string{"default", "shop"}
		}
		for _, namespace := range namespaces {
			made := object.DeepCopy()
			made.SetNamespace(namespace)
			err := api.Delete(t.Context(), made.DeepCopy(), client.GracePeriodSeconds(0), client.PropagationPolicy("Background"))
			if err := errors.Join(client.IgnoreNotFound(err), api.Create(t.Context(), made)); err != nil {
				t.Fatalf("%s %s: %v", made.GetKind(), made.GetName(), err)
			}
		}
	}
}

// The tests that run what is not typed here exist.
func TestOtherTestsExist(t *testing.T) {
	list, err := run(t, os.Environ(), "grep -rhoE --include='*_test.go' '^func Test[A-Za-z0-9]+' .")
	shared.Check(t, err)
	for _, e := range elsewhere {
		if e.what == "" || e.test != "" && !slices.Contains(strings.Fields(list), e.test) {
			t.Errorf("%s: there is no %s", e.begins, e.test)
		}
	}
}
