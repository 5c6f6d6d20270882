// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// What leads to a server is what its Secrets' labels allow, and to a RedisCluster only its backup user, if the Secret of that one says
// that it may be cloned.
func TestWhatLeadsToASource(t *testing.T) {
	secret := func(name string, labelled bool) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		if labelled {
			s.Labels = map[string]string{v1alpha1.LabelRestore: "true"}
		}
		if labelled && name == "old-auth" {
			s.Labels = map[string]string{v1alpha1.LabelClone: "true"}
		}
		return s
	}
	source := func(change func(*v1alpha1.RedisCluster)) *v1alpha1.RedisCluster {
		c := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "old"}}
		change(c)
		return c
	}
	secured := func(c *v1alpha1.RedisCluster) {
		c.Spec.TLS = &v1alpha1.TLS{SecretName: "certificate", CASecretName: "company"}
	}
	certifying := func(c *v1alpha1.RedisCluster) {
		c.Spec.Auth.Enabled = ptr.To(false)
		c.Spec.TLS = &v1alpha1.TLS{SecretName: "certificate", CASecretName: "company",
			ClientCertificates: v1alpha1.ClientCertificatesRequired}
	}
	labelled := func(name, label string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{label: "true"}}}
	}
	open := func(c *v1alpha1.RedisCluster) { c.Spec.Auth.Enabled = ptr.To(false) }
	plain := func(*v1alpha1.RedisCluster) {}
	imported := &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "a:1", User: "u", CredentialsSecretName: "login",
		TLS: &v1alpha1.ImportTLS{CASecretName: "authority", ServerName: "s"}}}
	cloned := &v1alpha1.Bootstrap{Clone: &v1alpha1.Clone{Name: "old"}}
	const address = "old.n.svc:6379"
	for name, tt := range map[string]struct {
		bootstrap *v1alpha1.Bootstrap
		there     []client.Object
		from      snapshot.ImportFrom
		withheld  string
	}{
		"a server": {imported, []client.Object{secret("login", true), secret("authority", true)},
			snapshot.ImportFrom{Address: "a:1", User: "u", PasswordSecret: "login", PasswordKey: "password", TrustSecret: "authority",
				ServerName: "s"}, ""},
		"no password": {imported, []client.Object{secret("authority", true)}, snapshot.ImportFrom{}, "there is no Secret login"},
		"a CA of others": {imported, []client.Object{secret("login", true), secret("authority", false)}, snapshot.ImportFrom{},
			"spec.bootstrap.import.tls.caSecretName: Secret authority lacks the label"},
		"the passwords of a cluster that may be cloned": {&v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "theirs:1",
			CredentialsSecretName: "old-auth"}}, []client.Object{secret("old-auth", true)}, snapshot.ImportFrom{},
			"spec.bootstrap.import.credentialsSecretName: Secret old-auth lacks the label redis.middleware.hc.cn/restore"},
		"a cluster": {cloned, []client.Object{source(secured), secret("old-auth", true)},
			snapshot.ImportFrom{Address: address, User: "operator-backup", PasswordSecret: "old-auth", PasswordKey: "backup-password",
				TrustSecret: "company", ServerName: "any.old-nodes.n.svc"}, ""},
		"a cluster that wants certificates": {cloned, []client.Object{source(certifying), labelled("certificate", v1alpha1.LabelTLS)},
			snapshot.ImportFrom{Address: address, TrustSecret: "company", ServerName: "any.old-nodes.n.svc", ShownSecret: "certificate"}, ""},
		"a cluster whose certificate is not for pods": {cloned, []client.Object{source(certifying), labelled("certificate", "")},
			snapshot.ImportFrom{}, "spec.bootstrap.clone.name: Secret certificate lacks the label redis.middleware.hc.cn/tls"},
		"an open cluster": {cloned, []client.Object{source(open)}, snapshot.ImportFrom{Address: address}, ""},
		"no cluster":      {cloned, nil, snapshot.ImportFrom{}, "spec.bootstrap.clone.name: there is no RedisCluster old"},
		"a cluster of others": {cloned, []client.Object{source(plain), secret("old-auth", false)}, snapshot.ImportFrom{},
			"spec.bootstrap.clone.name: Secret old-auth lacks the label"},
		"a cluster of another namespace": {cloned, []client.Object{source(func(c *v1alpha1.RedisCluster) { c.Namespace = "m" })},
			snapshot.ImportFrom{}, "there is no RedisCluster old"},
	} {
		scheme := runtime.NewScheme()
		utilruntime.Must(clientgoscheme.AddToScheme(scheme))
		utilruntime.Must(v1alpha1.AddToScheme(scheme))
		kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.there...).Build()
		cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"},
			Spec: v1alpha1.RedisClusterSpec{Bootstrap: tt.bootstrap}}
		i, err := (&Observer{Children: kube, Clusters: kube, Secrets: kube, BackupImage: "image"}).importing(t.Context(),
			cluster, &snapshot.Snapshot{})
		if err != nil || !strings.Contains(i.Withheld, tt.withheld) || tt.withheld == "" && i.Withheld != "" || len(i.Shards) != 1 {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
		if diff := cmp.Diff(tt.from, i.From); diff != "" && tt.withheld == "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An import is over when nothing of it is left: neither its Jobs, nor a Service that a process which was stopped has made since.
func TestWhatIsLeftOfAnImport(t *testing.T) {
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"},
		Spec: v1alpha1.RedisClusterSpec{Bootstrap: &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "a:1"}}},
		Status: v1alpha1.RedisClusterStatus{Import: &v1alpha1.ImportStatus{Phase: v1alpha1.ImportCutOver, CutOverAt: &metav1.Time{},
			Slots: []string{"0-8191", "8192-16383"}}}}
	service := func(change func(*corev1.Service)) client.Object {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: cluster.RelayName(1),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))}}}
		change(s)
		return s
	}
	for name, tt := range map[string]struct {
		there []client.Object
		want  []snapshot.ImportShard
	}{
		"nothing":                 {nil, nil},
		"a Service":               {[]client.Object{service(func(*corev1.Service) {})}, []snapshot.ImportShard{{}, {Service: true}}},
		"a Service of others":     {[]client.Object{service(func(s *corev1.Service) { s.OwnerReferences = nil })}, nil},
		"a Service of other pods": {[]client.Object{service(func(s *corev1.Service) { s.Name = "c-1" })}, nil},
		"a Service that is to go": {[]client.Object{service(func(s *corev1.Service) {
			now := metav1.Now()
			s.DeletionTimestamp, s.Finalizers = &now, []string{"test/stays"}
		})}, nil},
	} {
		scheme := runtime.NewScheme()
		utilruntime.Must(clientgoscheme.AddToScheme(scheme))
		kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.there...).Build()
		i, err := (&Observer{Children: kube, Clusters: kube, Secrets: kube, BackupImage: "image"}).importing(t.Context(), cluster,
			&snapshot.Snapshot{Formed: true})
		if err != nil || !i.CutOver {
			t.Fatalf("%s: %+v, %v", name, i, err)
		}
		if diff := cmp.Diff(tt.want, i.Shards); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Of a shard that has not started, the relay's Service is looked at past the cache, which may be behind, also when others have started.
func TestWhereRelaysAre(t *testing.T) {
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"},
		Spec: v1alpha1.RedisClusterSpec{Bootstrap: &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "a:1"}}},
		Status: v1alpha1.RedisClusterStatus{Import: &v1alpha1.ImportStatus{Phase: v1alpha1.ImportFollowing, Address: "a:1",
			Slots: []string{"0-8191", "8192-16383"}}}}
	service := func(change func(*corev1.Service)) *corev1.Service {
		is := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-1-import", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))}},
			Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.8"}}
		change(is)
		return is
	}
	mine := func(*corev1.Service) {}
	for name, tt := range map[string]struct {
		live  *corev1.Service
		there bool
		at    string
	}{
		"it is there":     {service(mine), true, "10.96.0.8"},
		"it is gone":      {nil, false, ""},
		"it is another's": {service(func(s *corev1.Service) { s.OwnerReferences = nil }), false, ""},
		"it goes": {service(func(s *corev1.Service) {
			s.Finalizers, s.DeletionTimestamp = []string{"x/y"}, ptr.To(metav1.Now())
		}), true, ""},
		"it has no address": {service(func(s *corev1.Service) { s.Spec.ClusterIP = "" }), true, ""},
	} {
		scheme := runtime.NewScheme()
		utilruntime.Must(clientgoscheme.AddToScheme(scheme))
		utilruntime.Must(v1alpha1.AddToScheme(scheme))
		live := fake.NewClientBuilder().WithScheme(scheme)
		if tt.live != nil {
			live = live.WithObjects(tt.live)
		}
		o := &Observer{Children: fake.NewClientBuilder().WithScheme(scheme).WithObjects(service(mine)).Build(), Secrets: live.Build(),
			BackupImage: "image"}
		i, err := o.importing(t.Context(), cluster, &snapshot.Snapshot{Shards: []snapshot.Shard{{Index: 0}}})
		if err != nil || i.Shards[1].Service != tt.there || i.Shards[1].At != tt.at {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
}

// What an import began with is known by its Jobs and, once instances are prepared, by the status; whether their relays are where they were
// told is looked at before they start.
func TestWhatAnImportBeganWith(t *testing.T) {
	named := func(of *v1alpha1.Bootstrap) *v1alpha1.RedisCluster {
		return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"},
			Spec: v1alpha1.RedisClusterSpec{Bootstrap: of}}
	}
	at := func(address string) *v1alpha1.Bootstrap {
		return &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: address}}
	}
	clone := &v1alpha1.Bootstrap{Clone: &v1alpha1.Clone{Name: "old"}}
	made := func(of *v1alpha1.Bootstrap) []client.Object {
		cluster := named(of)
		owner := []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))}
		spec := corev1.PodSpec{}
		backupjob.Add(&spec, "image", v1alpha1.BackupStore{}, corev1.ResourceRequirements{}, backupjob.Follow, backupjob.Request("uid"),
			backupjob.From(cluster.SourceAddress()), backupjob.Master("10.96.0.7:6379"))
		labels := map[string]string{v1alpha1.LabelCluster: "c"}
		return []client.Object{
			&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0-restore", OwnerReferences: owner, Labels: labels,
				Annotations: map[string]string{v1alpha1.AnnotationImportedFrom: cluster.Source()}},
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0-import", OwnerReferences: owner},
				Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.8"}},
		}
	}
	before := func(of *v1alpha1.Bootstrap) []client.Object { // of an operator that did not say it
		there := made(of)
		there[0].SetAnnotations(nil)
		return there
	}
	for name, tt := range map[string]struct {
		now     *v1alpha1.Bootstrap
		there   []client.Object
		status  string
		other   string
		started bool
	}{
		"the same":        {now: at("a:1"), there: made(at("a:1")), status: "a:1"},
		"it has started":  {now: at("a:1"), there: made(at("a:1")), status: "a:1", started: true},
		"another address": {now: at("b:1"), there: made(at("a:1")), other: "spec.bootstrap.import.address a:1"},
		"a clone, of what is at that address": {now: clone, there: made(at("old.n.svc:6379")),
			other: "spec.bootstrap.import.address old.n.svc:6379"},
		"an import of what was cloned":         {now: at("old.n.svc:6379"), there: made(clone), other: "spec.bootstrap.clone.name old"},
		"another address, and no Job is there": {now: at("b:1"), status: "a:1", other: "what is at a:1 (status.import.address)"},
		"nothing has begun":                    {now: at("b:1")},
		"a former operator began":              {now: at("a:1"), there: before(at("a:1"))},
		"and with another address":             {now: at("b:1"), there: before(at("a:1")), other: "what is at a:1"},
		"and with a clone":                     {now: at("b:1"), there: before(clone), other: "what is at old.n.svc:6379"},
		"which it still is":                    {now: clone, there: before(clone)},
	} {
		scheme := runtime.NewScheme()
		utilruntime.Must(clientgoscheme.AddToScheme(scheme))
		utilruntime.Must(v1alpha1.AddToScheme(scheme))
		kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.there...).Build()
		cluster, s := named(tt.now), &snapshot.Snapshot{}
		if tt.status != "" {
			cluster.Status.Import = &v1alpha1.ImportStatus{Phase: v1alpha1.ImportFollowing, Address: tt.status}
		}
		if tt.started {
			s.Shards = []snapshot.Shard{{}}
		}
		i, err := (&Observer{Children: kube, Clusters: kube, Secrets: kube, BackupImage: "image"}).importing(t.Context(), cluster, s)
		if err != nil || i.Other != tt.other {
			t.Errorf("%s: %+v, %v", name, i, err)
			continue
		}
		of, want := i.Shards[0], ""
		if tt.status != "" && len(tt.there) > 0 && !tt.started {
			want = "10.96.0.8"
		}
		if of.At != want || len(tt.there) > 0 && of.Told != "10.96.0.7" {
			t.Errorf("%s: the relay is at %q, and the instance was told %q", name, of.At, of.Told)
		}
	}
}
