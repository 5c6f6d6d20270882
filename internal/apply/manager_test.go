// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manager has a way to an API server, on which there is nothing. It notes what is asked.
type manager struct {
	ctrl.Manager
	config *rest.Config
	asked  []string
}

func (m *manager) GetConfig() *rest.Config        { return m.config }
func (m *manager) GetHTTPClient() *http.Client    { return &http.Client{Transport: m} }
func (m *manager) GetScheme() *runtime.Scheme     { return scheme.Scheme }
func (m *manager) GetRESTMapper() meta.RESTMapper { return newDesk(nil, nil).client.RESTMapper() }

func (m *manager) RoundTrip(r *http.Request) (*http.Response, error) {
	m.asked = append(m.asked, r.Method+" "+r.URL.Path)
	const absent = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(absent)), Request: r}, nil
}

// What the API server does not have is gone, whatever the cache shows.
func TestForManager(t *testing.T) {
	m := &manager{config: &rest.Config{Host: "http://api"}}
	a, err := ForManager(m, newDesk(nil, existing(t, configText)).children)
	if err != nil {
		t.Fatal(err)
	}
	remaining, err := a.Gone(t.Context(), shop, refs("a"))
	if diff := cmp.Diff([]string{"GET /api/v1/namespaces/n/configmaps/a"}, m.asked); diff != "" || err != nil || len(remaining) > 0 {
		t.Errorf("%v, %v, asked (-want +got):\n%s", remaining, err, diff)
	}
	if _, err := ForManager(&manager{}, nil); err == nil {
		t.Error("without a way to the API server")
	}
}

// What a cache has whole is read whole, and its metadata are told; what it does not have is not found.
func TestGetMetadata(t *testing.T) {
	whole := existing(t, configText, keeps)
	cache, key := newDesk(nil, whole).children, client.ObjectKeyFromObject(whole)
	got := &metav1.PartialObjectMetadata{}
	got.SetGroupVersionKind(configs)
	err := GetMetadata(t.Context(), cache, key, got)
	if err != nil || got.UID != "a" || got.ResourceVersion != "100" || !IsKept(got.Annotations) || got.GroupVersionKind() != configs ||
		markOf(got.ManagedFields) != markOf(whole.GetManagedFields()) {
		t.Errorf("%+v, %v", got, err)
	}
	key.Name = "b"
	if err := GetMetadata(t.Context(), cache, key, got); !apierrors.IsNotFound(err) {
		t.Errorf("what is not there: %v", err)
	}
}
