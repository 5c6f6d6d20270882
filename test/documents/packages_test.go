// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "middleware.hc.cn/operator/"

// packageTable is the table of architecture.md: what each package may not import, by the package's folder. A kind's name in a folder
// is a star.
func packageTable(t *testing.T) map[string]string {
	t.Helper()
	table, kind := map[string]string{}, regexp.MustCompile(`<[a-z]+>`)
	for _, row := range rowsOf(t, "docs/architecture.md", "| package | holds | must not import |") {
		for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
			folder := kind.ReplaceAllString(strings.TrimSuffix(match[1], "/"), "*")
			table[folder] = row[len(row)-1]
			if there, err := filepath.Glob(filepath.Join(repository, folder)); err != nil || len(there) == 0 {
				t.Errorf("docs/architecture.md lists %s, which is not there (%v)", folder, err)
			}
		}
	}
	return table
}

// The table lists each package of the operator, and no other.
func TestPackagesAreInTheTable(t *testing.T) {
	table := packageTable(t)
	for _, file := range goFiles(t, "internal") {
		folder := filepath.Dir(file)
		_, listed := table[folder]
		if kind, of := strings.CutPrefix(folder, "internal/admission/"); of && !listed {
			_, err := os.Stat(filepath.Join(repository, "api", kind))
			listed = err == nil
		}
		if !listed {
			t.Errorf("docs/architecture.md does not list %s", folder)
		}
	}
}

// forbidden is what the right column of the table stands for: the beginnings of import paths; with a $ at the end, the whole.
var forbidden = map[string][]string{
	"internal":                     {module + "internal"},
	"controller-runtime":           {"sigs.k8s.io/controller-runtime"},
	"clients":                      {"k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
	"Kubernetes clients":           {"k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
	"contexts":                     {"context$"},
	"loggers":                      {"log$", "log/slog$", "github.com/go-logr"},
	"API types":                    {module + "api"},
	"API types of a single kind":   {module + "api/app", module + "api/crontab", module + "api/foobar", module + "api/rediscluster"},
	"object stores":                {"gocloud.dev", module + "internal/archive$"},
	"Helm":                         {"helm.sh/helm"},
	"Redis":                        {module + "internal/redis"},
	"Kubernetes":                   {"k8s.io/", "sigs.k8s.io/"},
	"internal/redis":               {module + "internal/redis$"},
	"internal/chart":               {module + "internal/chart$"},
	"plan":                         {module + "internal/rediscluster/plan"},
	"apply":                        {module + "internal/apply"},
	"all but the standard library": {"*.*/"},
}

// No package imports what the table says that it must not.
func TestImportsKeepToTheTable(t *testing.T) {
	checked, table := 0, packageTable(t)
	for folder, column := range table {
		if column == "" || strings.HasPrefix(column, "|") {
			continue
		}
		var never []string
		for name := range strings.SplitSeq(strings.ReplaceAll(column, "`", ""), ", ") {
			if forbidden[name] == nil {
				t.Errorf("docs/architecture.md: what is %q, which %s must not import?", name, folder)
			}
			never = append(never, forbidden[name]...)
		}
		there, err := filepath.Glob(filepath.Join(repository, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range there {
			for _, file := range goFiles(t, strings.TrimPrefix(path, repository+"/")) {
				if _, own := table[filepath.Dir(file)]; own && filepath.Dir(file) != folder {
					continue // it has a row of its own
				}
				checked++
				for _, imported := range importsOf(t, file) {
					if slices.ContainsFunc(never, func(n string) bool { return matches(imported, n) }) {
						t.Errorf("%s imports %s; docs/architecture.md: %s must not import %s", file, imported, folder, column)
					}
				}
			}
		}
	}
	for _, file := range slices.Concat(goFiles(t, "internal"), goFiles(t, "cmd"), goFiles(t, "api")) {
		for _, imported := range importsOf(t, file) {
			if strings.HasPrefix(imported, "helm.sh/") && filepath.Dir(file) != "internal/chart" {
				t.Errorf("%s imports %s; docs/architecture.md: internal/chart is the only importer of Helm", file, imported)
			}
			// docs/security.md: the operator starts no shell and no redis-cli. The plugin starts kubectl, for who runs it.
			exec := imported == "os/exec" && file != "internal/plugin/cli.go"
			if exec || strings.HasPrefix(imported, "k8s.io/client-go/tools/remotecommand") {
				t.Errorf("%s imports %s; docs/security.md: the operator starts no program, and runs none in pods", file, imported)
			}
			ofPlugin := strings.HasPrefix(file, "internal/plugin/") || strings.HasPrefix(file, "cmd/kubectl-middleware/")
			if strings.HasPrefix(imported, module+"internal/plugin") && !ofPlugin {
				t.Errorf("%s imports %s: what the plugin may do, the operator may not", file, imported)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d files were looked at", checked)
	}
}

func matches(imported, never string) bool {
	if never == "*.*/" {
		first, _, _ := strings.Cut(imported, "/")
		return strings.Contains(first, ".")
	}
	whole, exact := strings.CutSuffix(never, "$")
	return imported == whole || !exact && strings.HasPrefix(imported, whole)
}

// importsOf are the packages that a file imports, without the exceptions that say why (nolint:depguard).
func importsOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repository, file), nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range parsed.Imports {
		if spec.Comment != nil && strings.HasPrefix(spec.Comment.List[0].Text, "//nolint:depguard // ") {
			continue
		}
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// goFiles are the Go files below a folder of the checkout that are no tests.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	return slices.DeleteFunc(filesOf(t, root), func(path string) bool {
		return !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go")
	})
}

// filesOf are the files below a folder of the checkout.
func filesOf(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(repository, root), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, strings.TrimPrefix(path, repository+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
