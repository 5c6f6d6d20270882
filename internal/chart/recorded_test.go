// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recordOf is a record as it lies in a Secret.
func recordOf(t testing.TB, plain string) []byte {
	t.Helper()
	packed, err := pack(plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.AppendEncode(nil, packed)
}

// Whoever may write a Secret may write one of some KiB that unpacks to as much as there is. None takes more memory than the operator
// has to spare: its container has 512 MiB.
func TestRecordsThatAreBombs(t *testing.T) {
	const begin = `{"version":1,"info":{},`
	for name, tc := range map[string]struct{ plain, says string }{
		"text":      {begin + `"manifest":"` + strings.Repeat("x", maxRelease) + `"}`, "it unpacks to more than"},
		"values":    {begin + `"config":{"a":[` + strings.Repeat("0,", 3<<20) + `0]}}`, ""},
		"chart":     {begin + `"chart":{"files":[` + strings.Repeat("{},", 1<<20) + `{}]}}`, ""},
		"a list":    {begin + `"manifest":"` + strings.Repeat(`- a\n`, 1<<19) + `"}`, "entries, more than"},
		"in a line": {begin + `"manifest":"a: [` + strings.Repeat(`0,`, 1<<19) + `0]"}`, "entries, more than"},
		"documents": {begin + `"manifest":"` + strings.Repeat(`a: b\n---\n`, 4000) + `"}`, "documents, more than"},
		"long":      {begin + `"manifest":"` + strings.Repeat(`x`, 9<<20) + `"}`, "bytes, more than"},
		"no hooks":  {begin + `"hooks":[` + strings.Repeat(`null,`, 100_000) + `null]}`, "hook 1 is null"},
		"hooks":     {begin + `"hooks":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`, "entries, more than"},
	} {
		data := recordOf(t, tc.plain)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeRelease(data)
		runtime.ReadMemStats(&after)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 150 {
			t.Errorf("%s: %d KiB took %d MiB", name, len(data)>>10, took)
		}
	}
}

// A record that was read and written again says the same.
func TestRecordsAreWrittenAsTheyWereRead(t *testing.T) {
	c := load(t, map[string]string{"templates/c.yaml": configMap, "templates/job.yaml": hookedJob, "values.yaml": "text: default\n"})
	rendered, err := c.Render(map[string]any{"text": "hello"}, shop, Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	record := Record{Release: shop, Status: StatusDeployed, LastDeployed: time.Unix(1700000000, 0)}
	first, err := c.EncodeRelease(rendered, record)
	if err != nil {
		t.Fatal(err)
	}
	read, err := DecodeRelease(first.Data["release"])
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.EncodeRelease(read.Rendered, record)
	if diff := cmp.Diff(first, second); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// FuzzRecord reads whatever somebody wrote into a Secret of Helm's: it is refused, or its objects are ones that can be named, and it
// can be marked as superseded without becoming another.
func FuzzRecord(f *testing.F) {
	for _, manifest := range append([]string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
		"kind: List\napiVersion: v1\nitems: [{}]",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]", hookedJob}, fuzzSeeds...) {
		f.Add(manifest, manifest, `{"metadata":{"name":"site","version":"1"}}`, `{"a":[1]}`, 1)
	}
	for _, part := range []string{"", "null", "{}", "[]", "[null]", `"x"`, `{"metadata":[]}`, "1e999", `{"a":`, `[{"manifest":"a"}]`} {
		f.Add("", part, part, part, -1)
	}
	f.Fuzz(func(t *testing.T, manifest, hook, chart, config string, version int) {
		hooks := fmt.Sprintf(`[{"name":"a","path":"a/b.yaml","manifest":%s}]`, quoted(t, hook))
		if version%2 == 0 {
			hooks = hook
		}
		plain := fmt.Sprintf(`{"manifest":%s,"version":%d,"info":{"status":"deployed"}`, quoted(t, manifest), version)
		for name, text := range map[string]string{"hooks": hooks, "chart": chart, "config": config} {
			if text != "" {
				plain += fmt.Sprintf(`,"%s":%s`, name, text)
			}
		}
		tryRecord(t, recordOf(t, plain+"}"))
		tryRecord(t, recordOf(t, manifest))
		tryRecord(t, []byte(base64.StdEncoding.EncodeToString([]byte(plain+"}")))) // as Helm once stored them
		tryRecord(t, []byte(manifest))
	})
}

func quoted(t *testing.T, text string) []byte {
	t.Helper()
	encoded, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func tryRecord(t *testing.T, data []byte) {
	t.Helper()
	read, err := DecodeRelease(data)
	if err != nil {
		return
	}
	for _, object := range read.Rendered.Made() {
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" || object.IsList() {
			t.Errorf("an object that nobody can name: %v", object)
		}
	}
	restated, _, err := SetStatus(data, StatusSuperseded)
	if err != nil {
		t.Fatalf("it can be read and not be superseded: %v", err)
	}
	again, err := DecodeRelease(restated)
	if err != nil || again.Status != StatusSuperseded {
		t.Fatalf("superseded: %v, %v", again, err)
	}
	if diff := cmp.Diff(read.Rendered.Made(), again.Rendered.Made()); diff != "" || again.Revision != read.Revision {
		t.Errorf("it became another: %s", diff)
	}
}
