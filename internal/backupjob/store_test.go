// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// described is what a pod is given, in a few lines.
func described(pod corev1.PodSpec) (lines []string) {
	c := Of(pod)
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			ref := e.ValueFrom.SecretKeyRef
			lines = append(lines, fmt.Sprintf("%s from %s, optional %t", e.Name, ref.Name, *ref.Optional))
			continue
		}
		lines = append(lines, e.Name+"="+e.Value)
	}
	for i, v := range pod.Volumes {
		m := c.VolumeMounts[i]
		if v.Secret != nil {
			lines = append(lines, fmt.Sprintf("%s/%s at %s, read-only %t", v.Secret.SecretName, v.Secret.Items[0].Key, m.MountPath, m.ReadOnly))
			continue
		}
		claim := v.PersistentVolumeClaim
		lines = append(lines, fmt.Sprintf("claim %s at %s, read-only %t and %t", claim.ClaimName, m.MountPath, claim.ReadOnly, m.ReadOnly))
	}
	if pod.ServiceAccountName != "" {
		lines = append(lines, "as "+pod.ServiceAccountName)
	}
	return lines
}

// Each store has its own address, of which no part can become another one, its own keys by name, and no identity but one that was named.
func TestJobsOfStores(t *testing.T) {
	const hostile = "a&b=c"
	for name, tt := range map[string]struct {
		store v1alpha1.BackupStore
		arg   string
		given []string
		needs string
	}{
		"s3 as the pod": {v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "b", Region: "r"}, ServiceAccountName: "backups"},
			"s3://b?prefix=shop%2Fcache%2F&region=r", []string{"AWS_EC2_METADATA_DISABLED=true", "as backups"},
			"ServiceAccount at.serviceAccountName=backups"},
		"gcs": {v1alpha1.BackupStore{GCS: &v1alpha1.GCSStore{Bucket: "b", Prefix: hostile, CredentialsSecretName: "s"}},
			"gs://b?prefix=a%26b%3Dc%2Fshop%2Fcache%2F", []string{"GOOGLE_APPLICATION_CREDENTIALS=/etc/backup/credentials/credentials.json",
				"s/credentials.json at /etc/backup/credentials, read-only true"}, "at.gcs.credentialsSecretName=s"},
		"gcs as the pod": {v1alpha1.BackupStore{GCS: &v1alpha1.GCSStore{Bucket: "b"}, ServiceAccountName: "backups"},
			"gs://b?prefix=shop%2Fcache%2F", []string{"as backups"}, "ServiceAccount at.serviceAccountName=backups"},
		"azure": {v1alpha1.BackupStore{Azure: &v1alpha1.AzureStore{Container: "c", StorageAccount: "account", CredentialsSecretName: "s",
			Endpoint: "https://azurite:10000/account", CASecretName: "ca"}},
			"azblob://c?endpoint=https%3A%2F%2Fazurite%3A10000%2Faccount&prefix=shop%2Fcache%2F",
			[]string{"AZURE_STORAGE_ACCOUNT=account", "AZURE_TOKEN_CREDENTIALS=WorkloadIdentityCredential",
				"AZURE_STORAGE_KEY from s, optional true", "AZURE_STORAGE_SAS_TOKEN from s, optional true",
				"SSL_CERT_FILE=/etc/backup/store/ca.crt", "SSL_CERT_DIR=/etc/backup/store", "ca/ca.crt at /etc/backup/store, read-only true"},
			"at.azure.credentialsSecretName=s at.azure.caSecretName=ca"},
		"azure as the pod": {v1alpha1.BackupStore{Azure: &v1alpha1.AzureStore{Container: "c", StorageAccount: "account"},
			ServiceAccountName: "backups"}, "azblob://c?prefix=shop%2Fcache%2F",
			[]string{"AZURE_STORAGE_ACCOUNT=account", "AZURE_TOKEN_CREDENTIALS=WorkloadIdentityCredential", "as backups"},
			"ServiceAccount at.serviceAccountName=backups"},
		"a claim": {v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: "backups", Prefix: hostile}},
			"file:///backups?prefix=a%26b%3Dc%2Fshop%2Fcache%2F", []string{"claim backups at /backups, read-only false and false"},
			"PersistentVolumeClaim at.claim.claimName=backups"},
	} {
		l := v1alpha1.BackupLocation{Store: tt.store, Namespace: "shop", Cluster: "cache", Name: "monday"}
		if arg := Store(l); arg != "--store="+tt.arg {
			t.Errorf("%s: %s", name, arg)
		}
		pod := corev1.PodSpec{}
		Add(&pod, "operator:1", tt.store, corev1.ResourceRequirements{}, Take, "monday")
		if diff := cmp.Diff(tt.given, described(pod)); diff != "" {
			t.Errorf("%s: given (-want +got):\n%s", name, diff)
		}
		var needs []string
		for _, n := range Needs(tt.store, "at", v1alpha1.LabelBackup) {
			if n.Name != "" {
				needs = append(needs, strings.TrimSpace(n.Kind+" "+n.Field+"="+n.Name))
			}
		}
		if got := strings.Join(needs, " "); got != tt.needs {
			t.Errorf("%s: needs %s", name, got)
		}
		known := Labels(tt.store, map[string]string{"a": "b"})["azure.workload.identity/use"] == "true"
		if want := name == "azure as the pod"; known != want {
			t.Errorf("%s: Azure's webhook gives it an identity: %t", name, known)
		}
	}
}

// Who takes backups writes to a claim as the group that owns it; who restores reads it, as another user of that group, and changes nothing.
func TestClaims(t *testing.T) {
	store := v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: "backups"}}
	template := &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](999), FSGroup: ptr.To[int64](999)}
	for _, command := range []string{Take, Delete, Restore} {
		pod := corev1.PodSpec{SecurityContext: template}
		Add(&pod, "operator:1", store, corev1.ResourceRequirements{}, command, "monday")
		reads, got := command == Restore, *pod.SecurityContext
		if is := pod.Volumes[0].PersistentVolumeClaim.ReadOnly; is != reads || Of(pod).VolumeMounts[0].ReadOnly != reads {
			t.Errorf("%s: the claim is read-only: %t", command, is)
		}
		if reads && (*got.FSGroup != 999 || len(got.SupplementalGroups) != 1 || got.SupplementalGroups[0] != claimGroup) ||
			!reads && (*got.FSGroup != claimGroup || len(got.SupplementalGroups) > 0) {
			t.Errorf("%s: it runs as %+v", command, got)
		}
		if LeaveGroup(&pod); pod.SecurityContext.FSGroup != nil {
			t.Errorf("%s: the platform is not left to give a group", command)
		}
	}
	if *template.FSGroup != 999 || template.SupplementalGroups != nil {
		t.Errorf("the template is changed: %+v", template)
	}
	pod := corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}}
	Add(&pod, "operator:1", store, corev1.ResourceRequirements{}, Restore, "monday")
	if got := pod.SecurityContext; got.FSGroup != nil || got.SupplementalGroups != nil {
		t.Errorf("where the platform gives users, it restores as %+v", got)
	}
}

// Pods that write to a claim go where others have it mounted, if they can; one that only reads goes anywhere, unless it has to be there.
// What the author of a template asks for stays.
func TestPodsOfAClaimComeTogether(t *testing.T) {
	store := v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: "backups"}}
	template := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack"}}}}
	beside := func(terms ...corev1.PodAffinityTerm) (all []string) {
		for _, term := range terms {
			all = append(all, term.TopologyKey+" "+metav1.FormatLabelSelector(term.LabelSelector))
		}
		return all
	}
	const claimed = "kubernetes.io/hostname redis.middleware.hc.cn/store-claim=backups"
	for name, tt := range map[string]struct {
		command             string
		store               v1alpha1.BackupStore
		together            bool
		required, preferred []string
	}{
		"takes":                    {command: Take, store: store, required: []string{"rack <none>"}, preferred: []string{claimed}},
		"archives":                 {command: Archive, store: store, required: []string{"rack <none>"}, preferred: []string{claimed}},
		"deletes":                  {command: Delete, store: store, required: []string{"rack <none>"}, preferred: []string{claimed}},
		"restores":                 {command: Restore, store: store, required: []string{"rack <none>"}},
		"restores where it is":     {command: Restore, store: store, together: true, required: []string{"rack <none>", claimed}},
		"takes to another store":   {command: Take, store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{}}, required: []string{"rack <none>"}},
		"follows, without a store": {command: Follow, required: []string{"rack <none>"}},
	} {
		pod := corev1.PodSpec{Affinity: template}
		Add(&pod, "operator:1", tt.store, corev1.ResourceRequirements{}, tt.command, "monday")
		if tt.together {
			Together(&pod, tt.store)
		}
		var preferred []corev1.PodAffinityTerm
		for _, p := range pod.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			preferred = append(preferred, p.PodAffinityTerm)
		}
		required := pod.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if diff := cmp.Diff([][]string{tt.required, tt.preferred}, [][]string{beside(required...), beside(preferred...)}); diff != "" {
			t.Errorf("%s: required, and preferred (-want +got):\n%s", name, diff)
		}
		if pod.Affinity.NodeAffinity == nil || len(template.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
			len(template.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 {
			t.Errorf("%s: the template was %+v", name, template)
		}
	}
	store.Claim.ClaimName = strings.Repeat("long.", 50) + "x"
	labels := Labels(store, map[string]string{"a": "b"})
	if tag := labels[v1alpha1.LabelStoreClaim]; len(validation.IsValidLabelValue(tag)) > 0 || tag == "" || labels["a"] != "b" {
		t.Errorf("the labels are %v", labels)
	}
}

func TestRate(t *testing.T) {
	for _, tt := range []struct {
		limit  v1alpha1.ByteRate
		shares int
		want   string
	}{{"", 1, "[]"}, {"50M", 1, "[--max-bytes-per-second=50000000]"}, {"100k", 3, "[--max-bytes-per-second=33333]"},
		{"1Mi", 0, "[--max-bytes-per-second=1048576]"}, {"999Gi", 1, "[--max-bytes-per-second=1072668082176]"}, {"1e1000000000", 1, "[]"}} {
		if got := fmt.Sprint(Rate(tt.limit, tt.shares)); got != tt.want {
			t.Errorf("%s for %d: %s", tt.limit, tt.shares, got)
		}
	}
}

// A pod that waits for a volume says for which, and where.
func TestWaits(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday-backup", UID: "j"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	Add(&pod.Spec, "operator:1", v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: "backups"}}, corev1.ResourceRequirements{}, Take)
	for want, change := range map[string]func(*corev1.Pod){
		"starting": func(*corev1.Pod) {},
		"pod p starts on node n, where claim backups is mounted": func(p *corev1.Pod) { p.Spec.NodeName = "n" },
		"not scheduled: no node": func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node"}}
		},
	} {
		is := pod.DeepCopy()
		change(is)
		reader := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(is).Build()
		if got, err := Waits(t.Context(), reader, job); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
