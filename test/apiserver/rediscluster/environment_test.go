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
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	helmcharts "middleware.hc.cn/operator/helm-charts"
	redisadmission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redisbackup"
	"middleware.hc.cn/operator/internal/rediscluster"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

const (
	// root is the directory of the project.
	root = "../../.."
	// serviceAccount is the operator's, as config/rbac names it.
	serviceAccount = "middleware-operator-system:middleware-operator"
	// operatorImage takes backups.
	operatorImage = "registry.example.com/operator:1.0.0"
	// pollInterval of the operator under test.
	pollInterval = 200 * time.Millisecond
)

var (
	scheme = runtime.NewScheme()
	admin  *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // the tests mostly wait; the flag exists in every test binary
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	os.Exit(environment.Run(m, environmentOf(), scheme, grant))
}

// environmentOf is an etcd and an API server, which do not run yet.
func environmentOf() *envtest.Environment {
	server := &envtest.Environment{CRDDirectoryPaths: []string{root + "/config/crd/bases"}, ErrorIfCRDPathMissing: true}
	// Off by default, and on in OpenShift: who sets blockOwnerDeletion must be allowed to update the owner's finalizers.
	server.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	return server
}

// grant gives the operator's service account its rights.
func grant(_ context.Context, config *rest.Config, c client.Client) (<-chan error, error) {
	admin, api = config, c
	for _, file := range []string{"manager_role.yaml", "namespace_role.yaml"} {
		if err := applyFile(root + "/config/rbac/" + file); err != nil {
			return nil, err
		}
	}
	return nil, nil
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
	stop     func()
	requests environment.Requests
}

// startOperator runs the operator until stop is called or the test ends. Its connection to the API server can be changed.
func startOperator(t *testing.T, namespace string, world *redistest.World, change ...func(*rest.Config)) *operator {
	t.Helper()
	as := operatorConfig()
	for _, change := range change {
		change(as)
	}
	return startOperatorWith(t, as, namespace, world, func(*rediscluster.Options) {})
}

// startOperatorWith runs the operator with options of its own.
func startOperatorWith(t *testing.T, as *rest.Config, namespace string, world *redistest.World,
	adjust func(*rediscluster.Options)) *operator {
	t.Helper()
	op := &operator{}
	mgr, err := newOperator(op.requests.Of(as), namespace, world.Dial, adjust)
	check(t, err)
	op.stop = environment.Start(t, mgr)
	return op
}

// operatorConfig is the connection of the operator's service account.
func operatorConfig() *rest.Config {
	as := rest.CopyConfig(admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + serviceAccount}
	return as
}

// newOperator is a manager with the RedisCluster controller, for one namespace. It does not run yet.
func newOperator(as *rest.Config, namespace string, dial func(ctx context.Context, address string) (net.Conn, error),
	adjust ...func(*rediscluster.Options)) (ctrl.Manager, error) {
	mgr, children, err := environment.NewManager(as, scheme, namespace)
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(helmcharts.FS, "rediscluster")
	if err != nil {
		return nil, err
	}
	loaded, err := chart.Load(files)
	if err != nil {
		return nil, err
	}
	if err := redisbackup.Add(mgr, children, redisbackup.Options{Image: operatorImage, ServiceAccount: serviceAccount}); err != nil {
		return nil, err
	}
	options := rediscluster.Options{
		Backups: true, BackupImage: operatorImage, Chart: loaded,
		ServiceAnnotations: append(slices.Clone(redisadmission.DefaultServiceAnnotationDomains), "external-dns.alpha.kubernetes.io"),
		ServiceAccount:     serviceAccount, PollInterval: pollInterval, ClusterDomain: "cluster.example",
		Redis: redis.NewPool(redis.Options{Dialer: dial, DialTimeout: 2 * time.Second, IOTimeout: 2 * time.Second}),
	}
	for _, adjust := range adjust {
		adjust(&options)
	}
	return mgr, rediscluster.Add(mgr, children, options)
}

// asked are the requests so far.
func (o *operator) asked() []string { return o.requests.List() }

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

// awaitPasses waits until a number of further reconciliations have ended.
func awaitPasses(t *testing.T, n float64) {
	t.Helper()
	before := environment.Passes(t)
	eventually(t, "further reconciliations", func() string {
		if done := environment.Passes(t) - before; done < n {
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
	return environment.NewNamespace(t, api, "redis")
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

var check = environment.Check

// eventually waits until holds returns nothing; its last answer is the failure's reason.
var eventually = environment.Eventually
