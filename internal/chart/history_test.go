// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestHelmReadsWhatWeStore(t *testing.T) {
	c := load(t, map[string]string{"templates/c.yaml": configMap, "values.yaml": "text: default\n"})
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	secrets := fake.NewClientset().CoreV1().Secrets("shop")
	for revision := 1; revision <= 2; revision++ {
		release := shop
		release.Revision = revision
		rendered, err := c.Render(map[string]any{"text": "hello"}, release, Capabilities{})
		if err != nil {
			t.Fatal(err)
		}
		stored, err := c.EncodeRelease(rendered, Record{Release: release, Status: StatusDeployed, Description: "Install complete",
			FirstDeployed: at, LastDeployed: at.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if revision == 1 {
			data, first, err := Restate(stored.Data["release"], StatusSuperseded)
			if err != nil || !first.Equal(at) {
				t.Fatalf("Restate: first deployed %v, %v", first, err)
			}
			stored.Data["release"], stored.Labels["status"] = data, string(StatusSuperseded)
		}
		if _, err := secrets.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: stored.Name, Labels: stored.Labels},
			Type: corev1.SecretType(stored.Type), Data: stored.Data}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	helm := storage.Init(driver.NewSecrets(secrets))
	history, err := helm.History("web")
	if err != nil || len(history) != 2 {
		t.Fatalf("helm history: %d revisions, %v", len(history), err)
	}
	deployed, err := helm.Deployed("web")
	if err != nil {
		t.Fatal(err)
	}
	if deployed.Version != 2 || deployed.Chart.Metadata.Version != "1.2.3" || deployed.Info.Status != helmrelease.StatusDeployed {
		t.Errorf("helm status: %+v", deployed)
	}
	if diff := cmp.Diff(map[string]any{"text": "hello"}, deployed.Config); diff != "" {
		t.Errorf("helm get values: %s", diff)
	}
	if superseded, err := helm.Get("web", 1); err != nil || superseded.Info.Status != helmrelease.StatusSuperseded {
		t.Errorf("the first revision is superseded: %+v, %v", superseded, err)
	}
}
