// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"
)

// source is a Go module that carries charts, with the digest of go.sum. It is fetched as Go fetches modules, into its cache.
type source struct{ module, version, sum string }

var (
	operatorLifecycleManager = source{"github.com/operator-framework/operator-lifecycle-manager", "v0.45.0",
		"h1:3RPPL9aAEvU9R4tRjmMbN+DiI2gniW3FoYMgEgooFzk="}
	certManager   = source{"github.com/cert-manager/cert-manager", "v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68="}
	metricsServer = source{"sigs.k8s.io/metrics-server", "v0.9.0", "h1:nlqqZ2H0Xfko8eJC/1qaNVVT17hu4rxndkOi22KTZ4w="}
	descheduler   = source{"sigs.k8s.io/descheduler", "v0.36.0", "h1:fBemfJD1RhmbsdH94lKwGMOwQcbsrw67A5IK2c2fANA="}
	ingressNginx  = source{"k8s.io/ingress-nginx", "v0.0.0-20240708192948-52c50467d67d",
		"h1:tZui5g6S4GO1hxLm6yrEoIXLkl4QfeGytlmZqZ+DmdQ="}
	kyverno    = source{"github.com/kyverno/kyverno", "v1.19.1", "h1:/MkgFii3/VlQfKR1JpC9tVwNNVNQTt2S4U6qCsafsTU="}
	gatekeeper = source{"github.com/open-policy-agent/gatekeeper/v3", "v3.23.1",
		"h1:njHTm0SJ6ZEhhEgmQTpJKTGQbc99fSs4hGiEp1OIKck="}
	nodeFeatureDiscovery = source{"sigs.k8s.io/node-feature-discovery", "v0.17.3", "h1:CArk8De9LBP5bj3Z6Bz/mpnC8kDNfBhDAu0xJp4u/A8="}
	istio                = source{"istio.io/istio", "v0.0.0-20260827124520-eed52ebb66ad",
		"h1:ui9TJjRMAV/hb5ehQaZDq7IUGxuQP6dra9lapT/VjHI="}
)

// entry is a chart that nobody of this project wrote.
type entry struct {
	name string
	source
	dir string
	// without are dependencies that its repository does not carry, taken out of a copy of its Chart.yaml.
	without []string
	// kinds are the kinds it makes without writing them literally, which its watch would have to allow.
	kinds []string
	// refused are those of its own ci values that this engine refuses unless the watch allows structured values: strings whose
	// special characters decide what else is rendered cannot be told from strings that broke out of their quotes.
	refused []string
	// random tells that two renderings differ (it makes certificates), with which of its own ci values.
	random []string
	// values are ones to render it with, besides none and those of its ci directory.
	values []string
}

var catalog = []entry{
	{name: "olm", source: operatorLifecycleManager, dir: "deploy/chart",
		values: []string{"installType: upstream", "monitoring: {enabled: true}\nrbacApiVersion: rbac.authorization.k8s.io"}},
	{name: "cert-manager", source: certManager, dir: "deploy/charts/cert-manager",
		values: []string{
			"crds: {enabled: true}",
			"crds: {enabled: true, keep: false}\nprometheus: {podmonitor: {enabled: true}}\nwebhook: {networkPolicy: {enabled: true}}"}},
	{name: "metrics-server", source: metricsServer, dir: "charts/metrics-server", random: []string{"tls-helm-values.yaml"},
		values: []string{"replicas: 2\npodDisruptionBudget: {enabled: true, minAvailable: 1}"}},
	{name: "descheduler", source: descheduler, dir: "charts/descheduler",
		values: []string{"kind: Deployment", "service: {enabled: true}\nserviceMonitor: {enabled: true}\nkind: Deployment"}},
	{name: "ingress-nginx", source: ingressNginx, dir: "charts/ingress-nginx"},
	{name: "kyverno", source: kyverno, dir: "charts/kyverno", without: []string{"kyverno-api", "openreports", "reports-server"},
		refused: []string{"resourceFilters-values.yaml"}},
	{name: "kyverno-policies", source: kyverno, dir: "charts/kyverno-policies"},
	{name: "gatekeeper", source: gatekeeper, dir: "charts/gatekeeper",
		values: []string{"replicas: 1\ndisableMutation: true", "postInstall: {labelNamespace: {enabled: false}}"}},
	{name: "node-feature-discovery", source: nodeFeatureDiscovery, dir: "deployment/helm/node-feature-discovery",
		values: []string{"topologyUpdater: {enable: true}"}},
	{name: "istiod", source: istio, dir: "manifests/charts/istio-control/istio-discovery",
		values: []string{"profile: ambient", "global: {istioNamespace: ns}\nautoscaleEnabled: false"}},
	{name: "istio-base", source: istio, dir: "manifests/charts/base"},
	{name: "istio-cni", source: istio, dir: "manifests/charts/istio-cni"},
	{name: "istio-gateway", source: istio, dir: "manifests/charts/gateway", kinds: []string{"DaemonSet"}, values: []string{"kind: DaemonSet"}},
	{name: "ztunnel", source: istio, dir: "manifests/charts/ztunnel"},
}

// named is an entry of the catalog.
func named(t *testing.T, name string) entry {
	t.Helper()
	i := slices.IndexFunc(catalog, func(e entry) bool { return e.name == name })
	if i < 0 {
		t.Fatalf("the catalog has no %s", name)
	}
	return catalog[i]
}

// path is the chart's directory, fetched if it is not there yet.
func (e entry) path(t *testing.T) string {
	t.Helper()
	root, err := e.fetch()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, filepath.FromSlash(e.dir))
	if len(e.without) == 0 {
		return dir
	}
	return e.trimmed(t, dir)
}

var (
	fetching sync.Mutex
	fetched  = map[string]string{}
)

// fetch has Go fetch the module and returns its directory. A content with another digest than the pinned one is an error.
func (s source) fetch() (string, error) {
	fetching.Lock()
	defer fetching.Unlock()
	at := s.module + "@" + s.version
	if dir := fetched[at]; dir != "" {
		return dir, nil
	}
	command := exec.Command("go", "mod", "download", "-json", at)
	command.Dir = os.TempDir() // outside of any module: nothing but this version is looked at
	command.Env = append(os.Environ(), "GO111MODULE=on", "GOWORK=off", "GOFLAGS=-mod=mod")
	answer, err := command.Output()
	var found struct{ Dir, Sum, Error string }
	if problem := json.Unmarshal(answer, &found); problem != nil {
		return "", fmt.Errorf("go mod download %s: %w, %w", at, err, problem)
	}
	switch {
	case found.Error != "":
		return "", fmt.Errorf("go mod download %s: %s", at, found.Error)
	case found.Sum != s.sum:
		return "", fmt.Errorf("%s has the digest %s, not the pinned %s", at, found.Sum, s.sum)
	}
	fetched[at] = found.Dir
	return found.Dir, nil
}

// trimmed copies a chart and leaves out the dependencies that are elsewhere.
func (e entry) trimmed(t *testing.T, dir string) string {
	t.Helper()
	copied := t.TempDir()
	check(t, os.CopyFS(copied, writable{os.DirFS(dir)}))
	file := filepath.Join(copied, "Chart.yaml")
	text, err := os.ReadFile(file)
	check(t, err)
	var metadata map[string]any
	check(t, yaml.Unmarshal(text, &metadata))
	dependencies, _ := metadata["dependencies"].([]any)
	metadata["dependencies"] = slices.DeleteFunc(dependencies, func(d any) bool {
		return slices.Contains(e.without, fmt.Sprint(d.(map[string]any)["name"]))
	})
	text, err = yaml.Marshal(metadata)
	check(t, err)
	check(t, os.WriteFile(file, text, 0o600))
	return copied
}

// writable gives files their owner's right to write: those of Go's module cache have none, and their copy has to be removed.
type writable struct{ fs.FS }

func (w writable) Open(name string) (fs.File, error) {
	file, err := w.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if directory, ok := file.(fs.ReadDirFile); ok {
		return directory, nil
	}
	return writableFile{file}, nil
}

type writableFile struct{ fs.File }

func (f writableFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	return writableInfo{info}, err
}

type writableInfo struct{ fs.FileInfo }

func (i writableInfo) Mode() fs.FileMode { return i.FileInfo.Mode() | 0o200 }

// valueFiles are what a chart is rendered with: nothing, the values of the catalog, and those its authors test it with.
func (e entry) valueFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{"none": ""}
	for _, text := range e.values {
		files[strings.NewReplacer("\n", " ").Replace(text)] = text
	}
	own, err := filepath.Glob(filepath.Join(dir, "ci", "*values.yaml"))
	check(t, err)
	for _, file := range own {
		text, err := os.ReadFile(file)
		check(t, err)
		files[filepath.Base(file)] = string(text)
	}
	return files
}
