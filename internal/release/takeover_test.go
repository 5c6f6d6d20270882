// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/chart"
)

// All records are read, a few at a time, and only the newest keeps what its objects consist of.
func TestRecordsAreReadAFewAtATime(t *testing.T) {
	cr := parse(t, "{apiVersion: a/v1, kind: Web, metadata: {name: web, namespace: shop, uid: u}}")
	stored := fake.NewClientBuilder()
	for revision := range 2*recordsAtOnce + 1 {
		record := fmt.Sprintf(`{"version":%d,"info":{},"manifest":"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}"}`, revision+1)
		stored.WithObjects(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: chart.StoredName("web", revision+1),
				Labels: map[string]string{"owner": "helm", "name": "web"}, OwnerReferences: []metav1.OwnerReference{{UID: types.UID("u")}}},
			Type: chart.StoredType, Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString([]byte(record)))},
		})
	}
	pages := 0
	live := interceptor.NewClient(stored.Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, how ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(how)
			into, all := list.(*corev1.SecretList), &corev1.SecretList{}
			if err := c.List(ctx, all, &client.ListOptions{Namespace: options.Namespace, LabelSelector: options.LabelSelector}); err != nil {
				return err
			}
			from, _ := strconv.Atoi(options.Continue)
			to := min(from+int(options.Limit), len(all.Items))
			into.Items = append(into.Items, all.Items[from:to]...)
			if pages++; to < len(all.Items) { // what an answer leaves out stays as it was
				into.Continue = strconv.Itoa(to)
			}
			return nil
		}})
	past, err := (&Reconciler{live: live}).recordedReleases(t.Context(), cr)
	if err != nil || len(past) != 2*recordsAtOnce+1 || pages != 3 {
		t.Fatalf("%d records in %d pages, %v", len(past), pages, err)
	}
	for _, recorded := range past {
		object := recorded.Rendered.Objects[0]
		_, whole := object.Object["data"]
		if whole != (recorded.Revision == len(past)) || object.GetName() != "c" || object.GetKind() != "ConfigMap" {
			t.Errorf("revision %d: %v", recorded.Revision, object)
		}
	}
}
