// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/forecast"
)

// answering is an API server that answers each write with an error, and the question for a right with may.
type answering struct {
	client.Client
	err     error
	may     bool
	unknown error
}

func (a answering) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	review, is := object.(*authorizationv1.SelfSubjectAccessReview)
	if !is {
		return a.err
	}
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = a.may && asked.Resource == "redisclusters" && asked.Name == "cache"
	return a.unknown
}

func (a answering) Update(context.Context, client.Object, ...client.UpdateOption) error { return a.err }

// What somebody's admission or quota forbids is a refusal; the lack of a right, and a webhook that knows no dry run, are not.
func TestWhatADryRunSays(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "redisclusters"}, "cache", errors.New("exceeded quota"))
	for name, tt := range map[string]struct {
		server        answering
		refused, note string
	}{
		"it is taken":               {answering{}, "", ""},
		"a quota":                   {answering{err: forbidden, may: true}, "exceeded quota", ""},
		"no right":                  {answering{err: forbidden}, "", "takes the right to write"},
		"a right that is not known": {answering{err: forbidden, may: true, unknown: errors.New("x")}, "", "takes the right to write"},
		"no dry run": {answering{err: apierrors.NewBadRequest(`admission webhook "a.example" does not support dry run`)}, "",
			"was not asked in a dry run"},
		"a refusal that says so": {answering{err: apierrors.NewBadRequest(`admission webhook "a" denied: it does not support dry run`)},
			"denied", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []*v1alpha1.RedisCluster{nil, {}} {
				change := forecast.Change{Before: before}
				next := &unstructured.Unstructured{Object: map[string]any{}}
				next.SetName("cache")
				if err := (&cluster{Client: tt.server}).ask(context.Background(), next, &change); err != nil {
					t.Fatal(err)
				}
				notes := strings.Join(change.Notes, " ")
				if (change.Refused == "") != (tt.refused == "") || !strings.Contains(change.Refused, tt.refused) ||
					(notes == "") != (tt.note == "") || !strings.Contains(notes, tt.note) {
					t.Errorf("refused %q, notes %q", change.Refused, notes)
				}
			}
		})
	}
}
