// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selector runs two whole operators with disjoint selectors beside each other: KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test
// ./test/apiserver/selector.
package selector

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/manager"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const (
	root = "../../.."
	// selectorVariable makes this test's binary run the operator with the selector, instead of the tests.
	selectorVariable, serverVariable, metricsVariable = "RUN_OPERATOR_WITH_SELECTOR", "RUN_OPERATOR_AT", "RUN_OPERATOR_METRICS"
)

var (
	server = &envtest.Environment{CRDDirectoryPaths: []string{root + "/config/crd/bases"}, ErrorIfCRDPathMissing: true}
	admin  *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	if selector := os.Getenv(selectorVariable); selector != "" {
		if err := operatorProcess(selector); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(shared.Run(m, server, scheme.Scheme, shared.Into(&admin, &api)))
}

// operatorProcess is `manager run --selector=…` outside of a cluster.
func operatorProcess(selector string) error {
	ctrl.SetLogger(logr.Discard())
	o := shared.Options()
	o.Selector = selector
	o.LeaderElection.Enabled, o.LeaderElection.Namespace = true, "default"
	o.Serving.MetricsAddress, o.Serving.MetricsSecure = os.Getenv(metricsVariable), false
	return manager.Run(ctrl.SetupSignalHandler(), &rest.Config{Host: os.Getenv(serverVariable), QPS: -1}, o, shared.Nowhere)
}

// operator is a process, and the proxy through which it reaches the API server.
type operator struct {
	address string
	mu      sync.Mutex
	written []string // paths
}

// start runs an operator until the end of the test.
func start(t *testing.T, selector string) *operator {
	t.Helper()
	op := &operator{}
	target, err := url.Parse(admin.Host)
	shared.Check(t, err)
	transport, err := rest.TransportFor(admin)
	shared.Check(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodGet {
			op.mu.Lock()
			op.written = append(op.written, request.URL.Path)
			op.mu.Unlock()
		}
		proxy.ServeHTTP(w, request)
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	shared.Check(t, err)
	op.address = listener.Addr().String()
	shared.Check(t, listener.Close())
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), selectorVariable+"="+selector, serverVariable+"="+front.URL, metricsVariable+"="+op.address)
	process.Stderr = os.Stderr
	shared.Check(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait() // it says on standard error why, if it failed
		front.CloseClientConnections()
		front.Close()
	})
	return op
}

// writes are those about objects with a prefix: the custom resources and their children have names that begin with it.
func (op *operator) writes(namespace, prefix string) (paths []string) {
	op.mu.Lock()
	defer op.mu.Unlock()
	for _, path := range op.written {
		if _, rest, in := strings.Cut(path, "/namespaces/"+namespace+"/"); in {
			if _, name, named := strings.Cut(rest, "/"); named && strings.HasPrefix(name, prefix) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func (op *operator) metrics() string {
	response, err := http.Get("http://" + op.address + "/metrics")
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// has reports whether an object is in the operator's cache, which is what its metrics tell.
func (op *operator) has(o *unstructured.Unstructured) bool {
	return strings.Contains(op.metrics(), fmt.Sprintf(`kind=%q,name=%q,namespace=%q`, o.GetKind(), o.GetName(), o.GetNamespace()))
}

// works reports whether any reconciliation runs.
func (op *operator) works() bool {
	for line := range strings.Lines(op.metrics()) {
		if strings.HasPrefix(line, "controller_runtime_active_workers{") && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
			return true
		}
	}
	return false
}

// sample is an object of config/samples.
func sample(t *testing.T, file, namespace, prefix string, labels map[string]string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "samples", file+".yaml"))
	shared.Check(t, err)
	object := &unstructured.Unstructured{}
	shared.Check(t, yaml.UnmarshalStrict(text, &object.Object))
	object.SetNamespace(namespace)
	object.SetName(prefix + strings.ToLower(object.GetKind()))
	object.SetLabels(labels)
	if object.GetKind() == "RedisCluster" { // no Secret is looked for
		shared.Check(t, unstructured.SetNestedField(object.Object, false, "spec", "auth", "enabled"))
		pods, _, err := unstructured.NestedSlice(object.Object, "spec", "pod")
		shared.Check(t, err)
		delete(pods[0].(map[string]any), "configmap") //nolint:forcetypeassert // a sample
		shared.Check(t, unstructured.SetNestedSlice(object.Object, pods, "spec", "pod"))
	}
	return object
}

// observed waits until somebody has said in an object's status that this generation was seen.
func observed(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	shared.Eventually(t, "the status of "+object.GetName(), func() string {
		if err := api.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		seen, told, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		if len(conditions) == 0 || told && seen != object.GetGeneration() {
			return fmt.Sprintf("generation %d, observed %d, %d conditions", object.GetGeneration(), seen, len(conditions))
		}
		return ""
	})
}

// Each of two operators writes what its selector selects, of every kind, and nothing else. What gets the label of the other one is
// the other one's from when the first has heard of it; both hold a Lease meanwhile.
func TestOperatorsShareObjects(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "selector")
	gold, rest := start(t, "tier=gold"), start(t, "tier!=gold")
	var golden []*unstructured.Unstructured
	for _, file := range []string{"redis_v1alpha1_rediscluster", "controller_v1_application", "appcontroller_v1alpha1_app",
		"stable_v1beta1_crontab", "k8s_v1_foobar"} {
		a := sample(t, file, namespace, "gold-", map[string]string{"tier": "gold"})
		b := sample(t, file, namespace, "plain-", nil)
		shared.Check(t, api.Create(context.Background(), a))
		shared.Check(t, api.Create(context.Background(), b))
		golden = append(golden, a)
		observed(t, a)
		observed(t, b)
		if gold.has(b) || rest.has(a) || !gold.has(a) || !rest.has(b) {
			t.Errorf("%s: a cache holds what is not selected, or lacks what is", file)
		}
	}
	if strange := append(gold.writes(namespace, "plain-"), rest.writes(namespace, "gold-")...); len(strange) > 0 {
		t.Errorf("written by the wrong operator: %v", strange)
	}
	leases := &coordinationv1.LeaseList{}
	shared.Check(t, api.List(context.Background(), leases, client.InNamespace("default")))
	if len(leases.Items) != 2 {
		t.Errorf("there are %d leases", len(leases.Items))
	}

	for _, object := range golden {
		shared.Check(t, api.Patch(context.Background(), object, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":{"tier":null}}}`))))
	}
	shared.Eventually(t, "handing over", func() string {
		for _, object := range golden {
			if gold.has(object) || !rest.has(object) {
				return object.GetName() + " is in the cache of the wrong operator"
			}
		}
		if gold.works() {
			return "a reconciliation has not ended"
		}
		return ""
	})
	before := len(gold.writes(namespace, ""))
	for _, object := range golden {
		path := map[string]string{"RedisCluster": `{"config":{"maxmemory-policy":"allkeys-lru"}}`, "Application": `{"replicas":2}`,
			"App": `{"replicas":2}`, "CronTab": `{"cronSpec":"0 0 1 1 *"}`}[object.GetKind()]
		if path == "" { // a FooBar is left as it is
			continue
		}
		shared.Check(t, api.Patch(context.Background(), object, client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+path+`}`))))
		observed(t, object)
		if len(rest.writes(namespace, object.GetName())) == 0 {
			t.Errorf("%s was not taken over", object.GetName())
		}
	}
	if after := gold.writes(namespace, ""); len(after) > before {
		t.Errorf("who lost them wrote on: %v", after[before:])
	}
}

// What a RedisBackupSchedule made goes with it to another operator in the middle of a verification: that one restores the backup, and
// deletes the RedisCluster that is in the way when the verification is over.
func TestAScheduleMovesDuringAVerification(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "verify")
	gold, rest := start(t, "tier=gold"), start(t, "tier!=gold")
	object := func(kind, name string) *unstructured.Unstructured {
		return shared.Object(v1alpha1.GroupVersion.WithKind(kind), namespace, name)
	}
	schedule, cluster, backup := object("RedisBackupSchedule", "yearly"), sample(t, "redis_v1alpha1_rediscluster", namespace, "", nil),
		object("RedisBackup", "yearly-1")
	store := map[string]any{"s3": map[string]any{"bucket": "backups", "credentialsSecretName": "store"}}
	schedule.Object["spec"] = map[string]any{"schedule": "0 0 1 1 *", "cluster": cluster.GetName(), "store": store,
		"verify": map[string]any{"schedule": "0 0 1 1 *"}}
	backup.Object["spec"] = map[string]any{"cluster": cluster.GetName(), "store": store}
	pods, _, err := unstructured.NestedSlice(cluster.Object, "spec", "pod")
	shared.Check(t, err)
	delete(pods[0].(map[string]any), "volumes") //nolint:forcetypeassert // a sample; a backup is restored into claims of its own
	shared.Check(t, unstructured.SetNestedSlice(cluster.Object, pods, "spec", "pod"))
	for _, o := range []*unstructured.Unstructured{schedule, cluster} {
		o.SetLabels(map[string]string{"tier": "gold"})
		shared.Check(t, api.Create(t.Context(), o))
	}
	backup.SetLabels(map[string]string{"tier": "gold", v1alpha1.LabelSchedule: "yearly", v1alpha1.LabelScheduleUID: string(schedule.GetUID())})
	shared.Check(t, api.Create(t.Context(), backup))
	status(t, backup, `{"phase":"Completed","shardCount":3,"manifestChecksum":"aaaa"}`)
	observed(t, schedule)
	status(t, schedule, `{"lastVerificationTime":"2020-01-02T00:00:00Z"}`)
	merge(t, schedule, `{"spec":{"timeZone":"Europe/Berlin"}}`)
	throwaway := object("RedisCluster", "yearly-verify")
	tier := func(o *unstructured.Unstructured, want string) {
		t.Helper()
		shared.Eventually(t, o.GetName()+" with the label "+want, func() string {
			if err := api.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
				return err.Error()
			}
			if got := o.GetLabels()["tier"]; got != want {
				return got
			}
			return ""
		})
	}
	tier(throwaway, "gold")
	for _, o := range []*unstructured.Unstructured{cluster, schedule} {
		merge(t, o, `{"metadata":{"labels":{"tier":null}}}`)
	}
	tier(backup, "")
	tier(throwaway, "")
	shared.Eventually(t, "handing over", func() string {
		for _, o := range []*unstructured.Unstructured{schedule, cluster, backup, throwaway} {
			if gold.has(o) || !rest.has(o) {
				return o.GetName() + " is in the cache of the wrong operator"
			}
		}
		if gold.works() {
			return "a reconciliation has not ended"
		}
		return ""
	})
	before := len(gold.writes(namespace, ""))
	merge(t, schedule, `{"spec":{"verify":null}}`)
	shared.Eventually(t, "the end of the RedisCluster that backups are restored into", func() string {
		if err := api.Get(context.Background(), client.ObjectKeyFromObject(throwaway), throwaway); err == nil {
			if throwaway.GetDeletionTimestamp() == nil {
				return "it is there"
			}
		}
		return ""
	})
	if after := gold.writes(namespace, ""); len(after) > before {
		t.Errorf("who lost them wrote on: %v", after[before:])
	}
}

func status(t *testing.T, o *unstructured.Unstructured, is string) {
	t.Helper()
	shared.Check(t, api.Status().Patch(context.Background(), o, client.RawPatch("application/merge-patch+json", []byte(`{"status":`+is+`}`))))
}

func merge(t *testing.T, o *unstructured.Unstructured, patch string) {
	t.Helper()
	shared.Check(t, api.Patch(context.Background(), o, client.RawPatch("application/merge-patch+json", []byte(patch))))
}
