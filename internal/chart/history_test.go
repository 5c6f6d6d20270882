// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"
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
			data, first, err := SetStatus(stored.Data["release"], StatusSuperseded)
			if err != nil || !first.Equal(at) {
				t.Fatalf("SetStatus: first deployed %v, %v", first, err)
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

const hookedJob = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: '3'}\n"

func TestHooksAreStored(t *testing.T) {
	c := load(t,
		map[string]string{
			"templates/job.yaml": hookedJob,
			"templates/list.yaml": "apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: post-delete}}\n" +
				"items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}, {apiVersion: v1, kind: Pod, metadata: {name: b}}]\n"})
	rendered, err := c.Render(nil, shop, Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := c.EncodeRelease(rendered, Record{Release: shop, Status: StatusFailed, LastDeployed: time.Unix(1700000000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	read, err := storage.Init(secretsWith(t, stored)).Get("web", 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Hooks) != 2 || read.Hooks[1].Name != "migrate" || read.Hooks[1].Path != "demo/templates/job.yaml" ||
		read.Hooks[1].Weight != 3 ||
		read.Hooks[1].Manifest != strings.TrimSpace(hookedJob) || read.Hooks[1].DeletePolicies[0] != helmrelease.HookBeforeHookCreation {
		t.Errorf("helm get hooks: %+v", read.Hooks)
	}
	if read.Info.Status != helmrelease.StatusFailed {
		t.Errorf("helm status: %s", read.Info.Status)
	}
}

func secretsWith(t *testing.T, stored Stored) driver.Driver {
	t.Helper()
	secrets := fake.NewClientset().CoreV1().Secrets("shop")
	if _, err := secrets.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: stored.Name, Labels: stored.Labels},
		Type: corev1.SecretType(stored.Type), Data: stored.Data}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return driver.NewSecrets(secrets)
}

func TestDecodeWhatHelmStored(t *testing.T) {
	at := helmtime.Time{Time: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	secrets := fake.NewClientset().CoreV1().Secrets("shop")
	if err := storage.Init(driver.NewSecrets(secrets)).Create(&helmrelease.Release{
		Name: "web", Namespace: "shop", Version: 4, Config: map[string]any{"replicas": 2.0},
		Chart: &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "site", Version: "0.9.0", APIVersion: "v2"}},
		Info: &helmrelease.Info{Status: helmrelease.StatusPendingUpgrade, FirstDeployed: at, LastDeployed: at, Notes: "Hello.",
			Description: "Preparing upgrade"},
		Manifest: "---\n# Source: site/templates/s.yaml\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
		Hooks:    []*helmrelease.Hook{{Name: "migrate", Kind: "Job", Path: "site/templates/job.yaml", Manifest: hookedJob, Weight: 3}},
	}); err != nil {
		t.Fatal(err)
	}
	secret, err := secrets.Get(context.Background(), StoredName("web", 4), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	past, err := DecodeRelease(secret.Data["release"])
	if err != nil {
		t.Fatal(err)
	}
	if past.Name != "web" || past.Namespace != "shop" || past.Revision != 4 || past.ChartName != "site" || past.ChartVersion != "0.9.0" ||
		past.Status != StatusPendingUpgrade || !past.FirstDeployed.Equal(at.Time) || past.Rendered.Notes != "Hello." {
		t.Errorf("got %+v", past)
	}
	if diff := cmp.Diff([]string{"Service/web", "ConfigMap/web"}, names(past.Rendered)); diff != "" {
		t.Error(diff)
	}
	if len(past.Rendered.Hooks) != 1 || past.Rendered.Hooks[0].Weight != 3 || len(past.Rendered.Hooks[0].Events) != 2 {
		t.Errorf("hooks: %+v", past.Rendered.Hooks)
	}
	restated, _, err := SetStatus(secret.Data["release"], StatusSuperseded)
	if err != nil {
		t.Fatal(err)
	}
	secret.Data["release"] = restated
	if _, err := secrets.Update(context.Background(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	again, err := storage.Init(driver.NewSecrets(secrets)).Get("web", 4)
	if err != nil || again.Info.Status != helmrelease.StatusSuperseded || again.Chart.Metadata.Name != "site" || len(again.Hooks) != 1 ||
		again.Config["replicas"] != 2.0 {
		t.Errorf("restated: %+v, %v", again, err)
	}
}

func TestDecodeNoRelease(t *testing.T) {
	for _, data := range []string{"", "!", "e30=", "bnVsbA==", "H4sI"} {
		if past, err := DecodeRelease([]byte(data)); err == nil || !strings.Contains(err.Error(), "read the stored release") {
			t.Errorf("%q: got %v, %v", data, past, err)
		}
	}
}
