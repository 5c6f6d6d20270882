// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"testing"
)

const looking = `{{- $found := lookup "v1" "Secret" .Release.Namespace "token" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  token: {{ if $found }}{{ $found.data.token | quote }}{{ else }}"none"{{ end }}
  count: {{ (lookup "v1" "Secret" "" "").items | default list | len | quote }}
`

func TestLookup(t *testing.T) {
	c := load(t, map[string]string{"templates/a.yaml": looking})
	refused := errors.New("secrets is forbidden")
	for _, tc := range []struct {
		name         string
		ask          Lookup
		token, count string
		err          error
	}{
		{"nobody to ask", nil, "none", "0", nil},
		{"nothing there", func(string, string, string, string) (map[string]any, error) { return nil, nil }, "none", "0", nil},
		{"an object and a list", func(apiVersion, kind, namespace, name string) (map[string]any, error) {
			secret := map[string]any{"apiVersion": apiVersion, "kind": kind, "data": map[string]any{"token": namespace + "/" + name}}
			if name == "" {
				return map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "items": []any{secret, secret}}, nil
			}
			return secret, nil
		}, "shop/token", "2", nil},
		{"refused", func(string, string, string, string) (map[string]any, error) { return nil, refused }, "", "", refused},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rendered, err := c.Render(nil, shop, Capabilities{Lookup: tc.ask})
			if tc.err != nil {
				var final *Error
				if !errors.Is(err, tc.err) || errors.As(err, &final) || !strings.Contains(err.Error(), "look up Secret shop/token") {
					t.Errorf("got %v; a lookup that failed may work later, so it is no *Error", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data := rendered.Objects[0].Object["data"].(map[string]any)
			if data["token"] != tc.token || data["count"] != tc.count {
				t.Errorf("got %v, want token %s, count %s", data, tc.token, tc.count)
			}
		})
	}
}
