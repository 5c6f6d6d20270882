// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeable runs what tells OLM when the operator may be replaced against a real API server, with OLM's own definition of
// OperatorConditions and with the right that OLM gives an operator:
// KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/upgradeable.
//
// No RedisCluster is reconciled there: tests write the status that its controller would write.
package upgradeable

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/operator-framework/operator-lib/conditions"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/upgradeable"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

var (
	scheme = runtime.NewScheme()
	admin  *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(operatorsv2.AddToScheme(scheme))
	definition, err := operatorConditionCRD()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := &envtest.Environment{CRDDirectoryPaths: []string{"../../../config/crd/bases", definition}, ErrorIfCRDPathMissing: true}
	os.Exit(environment.Run(m, server, scheme, environment.Into(&admin, &api)))
}

// operatorConditionCRD is the file of OLM's definition, in the module that also has its Go type.
func operatorConditionCRD() (string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/operator-framework/api").Output()
	if err != nil {
		return "", fmt.Errorf("find the module of OLM's types: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "crds", "operators.coreos.com_operatorconditions.yaml"), nil
}

// installation is an operator in a namespace of its own, as OLM would have installed it.
type installation struct {
	namespace string
	requests  *environment.Requests // what the operator asks, watches apart
	clock     *testingclock.FakePassiveClock
}

const (
	operatorName = "middleware-operator.v0.1.0"
	account      = "middleware-operator"
)

// install makes a namespace and the roles that an operator has there; the OperatorCondition and the right to it come with olm.
func install(t *testing.T) installation {
	t.Helper()
	i := installation{namespace: environment.NewNamespace(t, api, "upgradeable"), requests: &environment.Requests{},
		clock: testingclock.NewFakePassiveClock(time.Now())}
	i.grant(t, "redisclusters", rbacv1.PolicyRule{APIGroups: []string{"redis.middleware.hc.cn"}, Resources: []string{"redisclusters"},
		Verbs: []string{"get", "list", "watch"}})
	return i
}

// olm makes what OLM makes for an operator: its OperatorCondition, and a Role for that one object.
func (i installation) olm(t *testing.T) {
	t.Helper()
	environment.Check(t,
		api.Create(t.Context(), &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: operatorName}}))
	i.grant(t, operatorName, rbacv1.PolicyRule{APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"},
		ResourceNames: []string{operatorName}, Verbs: []string{"get", "update", "patch"}})
}

func (i installation) grant(t *testing.T, name string, rule rbacv1.PolicyRule) {
	t.Helper()
	object := metav1.ObjectMeta{Namespace: i.namespace, Name: name}
	environment.Check(t, api.Create(t.Context(), &rbacv1.Role{ObjectMeta: object, Rules: []rbacv1.PolicyRule{rule}}))
	environment.Check(t, api.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: object,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: i.namespace, Name: account}}}))
}

// run starts the operator's part that is tested, as the operator's service account. It has a right to RedisClusters only: nothing else is
// ever listed.
func (i installation) run(t *testing.T) {
	t.Helper()
	as := i.requests.Of(admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + i.namespace + ":" + account}
	mgr, _, err := environment.NewManager(as, scheme, i.namespace)
	environment.Check(t, err)
	live, err := client.New(as, client.Options{Scheme: scheme})
	environment.Check(t, err)
	environment.Check(t, upgradeable.Add(mgr, upgradeable.Options{
		// A moment's calm is enough here, and the clock stops: no cluster is ever without progress for too long.
		Limits:    upgradeable.Limits{Progress: 30 * time.Minute},
		Condition: condition{live, client.ObjectKey{Namespace: i.namespace, Name: operatorName}},
		Now:       i.clock.Now,
	}))
	environment.Start(t, mgr)
}

// condition writes as operator-lib does, whose own finds its namespace in a file that a kubelet mounts.
type condition struct {
	client client.Client
	key    client.ObjectKey
}

func (c condition) Get(ctx context.Context) (*metav1.Condition, error) {
	var object operatorsv2.OperatorCondition
	if err := c.client.Get(ctx, c.key, &object); err != nil {
		return nil, err
	}
	return meta.FindStatusCondition(object.Spec.Conditions, operatorsv2.Upgradeable), nil
}

func (c condition) Set(ctx context.Context, status metav1.ConditionStatus, options ...conditions.Option) error {
	var object operatorsv2.OperatorCondition
	if err := c.client.Get(ctx, c.key, &object); err != nil {
		return err
	}
	next := metav1.Condition{Type: operatorsv2.Upgradeable, Status: status}
	for _, option := range options {
		option(&next)
	}
	meta.SetStatusCondition(&object.Spec.Conditions, next)
	return c.client.Update(ctx, &object)
}

// awaits waits until OLM would read this.
func (i installation) awaits(t *testing.T, want string) {
	t.Helper()
	environment.Eventually(t, want, func() string {
		if got := i.condition(t); !strings.HasPrefix(got, want) {
			return fmt.Sprintf("got %q", got)
		}
		return ""
	})
}

// condition is what OLM reads: status, reason and message.
func (i installation) condition(t *testing.T) string {
	t.Helper()
	c, err := condition{api, client.ObjectKey{Namespace: i.namespace, Name: operatorName}}.Get(t.Context())
	environment.Check(t, err)
	if c == nil {
		return "no condition"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// cluster makes a RedisCluster, with a status.
func (i installation) cluster(t *testing.T, name string, status v1alpha1.RedisClusterStatus) *v1alpha1.RedisCluster {
	t.Helper()
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: name}}
	environment.Check(t, api.Create(t.Context(), cluster))
	report(t, cluster, status)
	return cluster
}

// report writes a status as the RedisCluster controller would.
func report(t *testing.T, cluster *v1alpha1.RedisCluster, status v1alpha1.RedisClusterStatus) {
	t.Helper()
	cluster.Status = status
	environment.Check(t, api.Status().Update(t.Context(), cluster))
}
