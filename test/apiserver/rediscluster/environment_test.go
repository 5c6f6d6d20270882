// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rediscluster runs the RedisCluster controller against a real API server and simulated Redis instances:
// KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/rediscluster.
//
// The operator works as the service account of config/rbac, with no more rights than that has. What a cluster would add
// (StatefulSet controller, kubelets, garbage collector) is stood in for by kubelet; the instances are package redistest's.
package rediscluster

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	helmcharts "middleware.hc.cn/operator/helm-charts"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster"
)

const (
	// root is the directory of the project.
	root = "../../.."
	// serviceAccount is the operator's, as config/rbac names it.
	serviceAccount = "middleware-operator-system:middleware-operator"
	// pollInterval of the operator under test.
	pollInterval = 200 * time.Millisecond
)

var (
	environment = &envtest.Environment{CRDDirectoryPaths: []string{root + "/config/crd/bases"}, ErrorIfCRDPathMissing: true}
	scheme      = runtime.NewScheme()
	admin       *rest.Config
	api         client.Client
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // the tests mostly wait; the flag exists in every test binary
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\nset KUBEBUILDER_ASSETS to the directory that hack/envtest.sh prints\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctrl.SetLogger(logr.Discard()) // tests tell what failed
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	var err error
	if admin, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("start the API server: %w", err)
	}
	defer func() { _ = environment.Stop() }() // its processes end with this one at the latest
	admin.QPS = -1
	if api, err = client.New(admin, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	for _, file := range []string{"manager_role.yaml", "namespace_role.yaml"} {
		if err := applyFile(root + "/config/rbac/" + file); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

// applyFile creates the objects of a file.
func applyFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := api.Create(context.Background(), object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// operator is a running manager with the RedisCluster controller, for one namespace.
type operator struct {
	// stop ends it and waits for that.
	stop func()

	mu       sync.Mutex
	requests []string // "PATCH /apis/…", watches and Events apart
}

// startOperator runs the operator until stop is called or the test ends.
func startOperator(t *testing.T, namespace string, world *redistest.World) *operator {
	t.Helper()
	op := &operator{}
	as := rest.CopyConfig(admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + serviceAccount}
	as.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next, op} })
	only := map[string]cache.Config{namespace: {}}
	mgr, err := ctrl.NewManager(as, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultNamespaces: only, ReaderFailOnMissingInformer: true},
	})
	check(t, err)
	children, err := cache.New(as, cache.Options{Scheme: scheme, Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultNamespaces: only,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{apply.ManagedByLabel: apply.ManagedByValue})})
	check(t, err)
	check(t, mgr.Add(managedCache{children}))
	files, err := fs.Sub(helmcharts.FS, "rediscluster")
	check(t, err)
	loaded, err := chart.Load(files)
	check(t, err)
	check(t, rediscluster.Add(mgr, children, rediscluster.Options{
		Chart: loaded, ServiceAccount: serviceAccount, PollInterval: pollInterval,
		Redis: redis.NewPool(redis.Options{Dialer: world.Dial, DialTimeout: 2 * time.Second, IOTimeout: 2 * time.Second}),
	}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	op.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
	})
	t.Cleanup(op.stop)
	return op
}

// managedCache is started before the controllers, as the operator's own is.
type managedCache struct{ cache.Cache }

func (c managedCache) GetCache() cache.Cache { return c.Cache }

// recorder notes what the operator asks of the API server.
type recorder struct {
	next http.RoundTripper
	op   *operator
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "" && !strings.Contains(request.URL.Path, "/events") {
		r.op.mu.Lock()
		r.op.requests = append(r.op.requests, request.Method+" "+request.URL.Path)
		r.op.mu.Unlock()
	}
	return r.next.RoundTrip(request)
}

// asked are the requests so far.
func (o *operator) asked() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.requests)
}

// written are the objects, as resource/name, that were created, patched or deleted since a number of requests.
func (o *operator) written(since int) []string {
	var names []string
	for _, request := range o.asked()[since:] {
		method, path, _ := strings.Cut(request, " ")
		_, name, _ := strings.Cut(path, "/namespaces/")
		_, name, _ = strings.Cut(name, "/")
		if method != http.MethodGet && !strings.HasSuffix(name, "/status") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// passes is the number of passes that have ended, of all operators of this process.
func passes(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	check(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			total += metric.GetCounter().GetValue()
		}
	}
	return total
}

// awaitPasses waits until a number of further passes have ended.
func awaitPasses(t *testing.T, n float64) {
	t.Helper()
	before := passes(t)
	eventually(t, "further passes", func() string {
		if done := passes(t) - before; done < n {
			return fmt.Sprintf("%v of %v", done, n)
		}
		return ""
	})
}

// newNamespace makes a namespace in which the operator may keep Secrets.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := newBareNamespace(t)
	allow(t, namespace)
	return namespace
}

func newBareNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "redis-"}}
	check(t, api.Create(context.Background(), namespace))
	return namespace.Name
}

// allow does what `kubectl create rolebinding` in the message about missing rights does.
func allow(t *testing.T, namespace string) {
	t.Helper()
	account, name, _ := strings.Cut(serviceAccount, ":")
	check(t, api.Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "middleware-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "middleware-operator-namespace"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account, Name: name}},
	}))
}

// said are the Events about a cluster, as "type reason" with how often.
func said(t *testing.T, cluster *v1alpha1.RedisCluster) map[string]int {
	t.Helper()
	var list eventsv1.EventList
	check(t, api.List(context.Background(), &list, client.InNamespace(cluster.Namespace)))
	count := map[string]int{}
	for i := range list.Items {
		event := &list.Items[i]
		if event.Regarding.UID != cluster.UID {
			continue
		}
		times := 1
		if event.Series != nil {
			times = int(event.Series.Count)
		}
		count[event.Type+" "+event.Reason] += times
	}
	return count
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until holds returns nothing; its last answer is the failure's reason.
func eventually(t *testing.T, what string, holds func() string) {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if last = holds(); last == "" {
			return
		}
	}
	t.Fatalf("%s did not happen: %s", what, last)
}
