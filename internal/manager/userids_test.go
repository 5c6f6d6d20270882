// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unreachable is an API server that does not answer.
type unreachable struct{ meta.RESTMapper }

func (unreachable) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("connection refused")
}

func TestWhoGivesUserIDs(t *testing.T) {
	openshift := meta.NewDefaultRESTMapper(nil)
	openshift.Add(securityContextConstraints, meta.RESTScopeRoot)
	elsewhere := meta.NewDefaultRESTMapper(nil)
	tests := map[string]struct {
		mode     UserIDMode
		hostPath bool
		mapper   meta.RESTMapper
		want     bool
		fails    bool
	}{
		"auto on OpenShift":                {mode: UserIDsAuto, mapper: openshift, want: true},
		"auto elsewhere":                   {mode: UserIDsAuto, mapper: elsewhere},
		"auto with directories of nodes":   {mode: UserIDsAuto, hostPath: true, mapper: openshift},
		"auto, and nobody answers":         {mode: UserIDsAuto, mapper: unreachable{}, fails: true},
		"on elsewhere":                     {mode: UserIDsOn, mapper: elsewhere, want: true},
		"off on OpenShift, nobody answers": {mode: UserIDsOff, mapper: unreachable{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Options{PlatformUserIDs: test.mode, AllowHostPath: test.hostPath}.platformUserIDs(test.mapper)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
