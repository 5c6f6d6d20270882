// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json" // integers stay integers
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/watches"
)

// executed are pages whose blocks a test of their own uses, as they stand.
var executed = map[string]string{"docs/adding-a-chart-kind.md": "TestGuideToAddAChartKind"}

// foreign are kinds of others, of which only the YAML is read here.
var foreign = []string{"Certificate", "CatalogSource", "OperatorGroup", "Subscription"}

// Each manifest of a page is taken by the API server and by the webhooks; each part of one (`spec:` alone) is, in the smallest object
// of the page's kind; and so is what its `kubectl patch` makes of that object.
func TestManifestsAreTaken(t *testing.T) {
	all, checked := kinds(t), 0
	for _, page := range pagesOf(t) {
		if executed[page] != "" {
			continue
		}
		for _, b := range blocksOf(t, page) {
			if b.language != "yaml" {
				continue
			}
			for part := range strings.SplitSeq(b.text, "\n---\n") {
				checked++
				manifest(t, all, page, b.number, part)
			}
		}
		for _, command := range commandsOf(t, page) {
			if patch := regexp.MustCompile(`kubectl patch rec \S+ --type merge -p '([^']+)'`).FindStringSubmatch(command.text); patch != nil {
				checked++
				fragment(t, all["redis.middleware.hc.cn/v1alpha1 RedisCluster"], page, command.number, patch[1])
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d manifests were found", checked)
	}
}

func manifest(t *testing.T, all map[string]*kind, page string, number int, text string) {
	t.Helper()
	if strings.HasPrefix(strings.TrimSpace(text), "- group:") {
		watchesFile(t, page, number, text)
		return
	}
	encoded, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Errorf("%s:%d: %v", page, number, err)
		return
	}
	var object map[string]any
	if err := json.Unmarshal(encoded, &object); err != nil {
		t.Fatal(err)
	}
	name, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	if k := all[version+" "+name]; k != nil {
		if refused := k.refuses(t, nil, object); len(refused) > 0 {
			t.Errorf("%s:%d: %v", page, number, refused.ToAggregate())
		}
		return
	}
	if name == "" {
		for _, k := range all {
			if k.page == page || k.page == redisPage && page == redisOperationsPage {
				fragment(t, k, page, number, text)
				return
			}
		}
		if page != "docs/olm.md" { // of a Subscription
			t.Errorf("%s:%d: what kind is this part of?", page, number)
		}
		return
	}
	if slices.Contains(foreign, name) {
		return
	}
	decoder := serializer.NewCodecFactory(clientgoscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	decoded, _, err := decoder.Decode([]byte(text), nil, nil)
	if err != nil {
		t.Errorf("%s:%d: %v", page, number, err)
	}
	if secret, is := decoded.(*corev1.Secret); is {
		users := map[string][]byte{}
		for user, rules := range secret.StringData {
			users[user] = []byte(rules)
		}
		if parsed, err := access.ParseUsers(users); err != nil || len(parsed) == 0 {
			t.Errorf("%s:%d: %d users: %v", page, number, len(parsed), err)
		}
	}
}

// fragment adds a part of a manifest to the smallest one of a kind.
func fragment(t *testing.T, k *kind, page string, number int, text string) {
	t.Helper()
	if refused := k.refuses(t, nil, k.with(t, text)); len(refused) > 0 {
		t.Errorf("%s:%d: %v", page, number, refused.ToAggregate())
	}
}

// with is the smallest object of a kind with a merge patch.
func (k *kind) with(t *testing.T, patch string) map[string]any {
	t.Helper()
	version := k.crd.Spec.Group + "/" + k.crd.Spec.Versions[0].Name
	object := fmt.Appendf(nil, `{"apiVersion": %q, "kind": %q, "metadata": {"name": "example", "namespace": "shop"}}`,
		version, k.crd.Spec.Names.Kind)
	for _, text := range []string{"spec: " + k.smallest, patch} {
		encoded, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if object, err = jsonpatch.MergePatch(object, encoded); err != nil {
			t.Fatal(err)
		}
	}
	var merged map[string]any
	if err := json.Unmarshal(object, &merged); err != nil {
		t.Fatal(err)
	}
	return merged
}

// watchesFile reads entries of a watches file; their charts are not looked at.
func watchesFile(t *testing.T, page string, number int, text string) {
	t.Helper()
	files := fstest.MapFS{"watches.yaml": {Data: []byte(text)}}
	for _, chart := range regexp.MustCompile(`chart: (\S+)`).FindAllStringSubmatch(text, -1) {
		files[chart[1]+"/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: any\nversion: 0.1.0\n")}
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, files); err != nil {
		t.Fatal(err)
	}
	list, err := watches.Load(filepath.Join(folder, "watches.yaml"), func(string) (string, bool) { return "", false })
	if err != nil || len(list) == 0 {
		t.Errorf("%s:%d: %v", page, number, err)
	}
}

// A page that a test follows to the letter says which one, and there is that test.
func TestExecutedPagesSayWhatExecutesThem(t *testing.T) {
	exist := tests(t)
	for page, name := range maps.All(executed) {
		if !exist[name] || !strings.Contains(read(t, page), "as it stands here") {
			t.Errorf("%s is not executed by %s", page, name)
		}
	}
}
