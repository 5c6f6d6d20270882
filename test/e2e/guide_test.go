// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"middleware.hc.cn/operator/test/live"
)

// guide is a page for people that this test follows to the letter: it writes the files, runs the commands, and looks for the
// output that the page promises.
const guide = "docs/adding-a-chart-kind.md"

// guideImage is the one thing that the page asks its readers to replace.
const guideImage = "registry.example.com/middleware-operator:0.1.0"

// block is a fenced code block of a Markdown page.
type block struct {
	line           int // of its fence, from 1
	language, text string
}

var fileName = regexp.MustCompile(`^# ([a-z][a-zA-Z0-9./_-]*)\n`)

// blocks are the code blocks of a page, in order.
func blocks(page string) []block {
	var found []block
	open := -1
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open < 0:
			open = i
			found = append(found, block{line: i + 1, language: language})
		case fence:
			found[len(found)-1].text = strings.Join(lines[open+1:i], "\n") + "\n"
			open = -1
		}
	}
	return found
}

func TestGuideToAddAChartKind(t *testing.T) {
	shownElsewhere(t, "TestKindsThatOperatorSDKAdds and TestCommandsOfThePages of test/apiserver")
	parallel(t)
	page, err := os.ReadFile(filepath.Join("..", "..", guide))
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	ran := 0
	for _, b := range blocks(strings.ReplaceAll(string(page), guideImage, r.image)) {
		switch b.language {
		case "yaml":
			name := fileName.FindStringSubmatch(b.text)
			if name == nil {
				t.Fatalf("%s:%d: a file without a name in its first line", guide, b.line)
			}
			r.write(t, name[1], strings.TrimPrefix(b.text, name[0]))
		case "sh":
			r.run(t, b)
			ran++
		case "text":
			r.said(t, b)
		case "dockerfile": // this cluster has no registry to pull an image of one's own from
		default:
			t.Fatalf("%s:%d: what is a block of %q?", guide, b.line, b.language)
		}
	}
	if ran < 5 {
		t.Errorf("the page has %d blocks of commands", ran)
	}
}

// reader is who follows the page: a directory, a PATH, an image, and what the last commands printed.
type reader struct {
	dir, image, output string
	environment        []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	var operator appsv1.Deployment
	operator.Namespace, operator.Name = live.OperatorNamespace, live.OperatorDeployment
	if err := live.Get(t, &operator); err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	root := filepath.Join("..", "..")
	build := exec.Command("go", "build", "-o", filepath.Join(tools, "manager"), "./cmd")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", build, err, output)
	}
	helm, err := exec.Command(filepath.Join(root, "hack", "tool.sh"), "helm").Output()
	if err != nil {
		t.Fatalf("build helm: %v", err)
	}
	r := &reader{dir: t.TempDir(), image: operator.Spec.Template.Spec.Containers[0].Image}
	r.environment = append(os.Environ(), "PATH="+strings.Join([]string{tools, filepath.Dir(string(helm)), os.Getenv("PATH")}, ":"))
	t.Cleanup(func() { r.cleanUp(t) })
	return r
}

func (r *reader) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *reader) run(t *testing.T, b block) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), live.Timeout)
	defer cancel()
	output, err := r.shell(ctx, b.text)
	r.output = output
	t.Logf("%s:%d:\n%s%s", guide, b.line, b.text, output)
	if err != nil {
		t.Fatalf("%s:%d: %v", guide, b.line, err)
	}
}

func (r *reader) shell(ctx context.Context, script string) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir, command.Env = r.dir, r.environment
	output, err := command.CombinedOutput()
	return string(output), err
}

// said checks that the last commands printed every line of a block.
func (r *reader) said(t *testing.T, b block) {
	t.Helper()
	for line := range strings.Lines(b.text) {
		if !strings.Contains(r.output, strings.TrimSuffix(line, "\n")) {
			t.Errorf("%s:%d: the commands did not print %q", guide, b.line, line)
		}
	}
}

// cleanUp removes what a page that was not followed to its end has left.
func (r *reader) cleanUp(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	live.Report(t, "team-a")
	live.Report(t, "site-operator")
	output, err := r.shell(context.Background(), `
kubectl get sites --all-namespaces -o yaml || true
kubectl logs -n site-operator deployment/site-operator --tail=40 || true
kubectl delete sites --all -n team-a --timeout=30s || true
kubectl delete clusterrole/site-operator customresourcedefinition/sites.example.com namespace/site-operator namespace/team-a \
  --ignore-not-found --wait=false`)
	t.Logf("%v\n%s", err, output)
}
