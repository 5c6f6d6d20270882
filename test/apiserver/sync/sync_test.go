// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sync counts how often the whole operator looks at idle objects of the five kinds: KUBEBUILDER_ASSETS=$(hack/envtest.sh) go
// test ./test/apiserver/sync.
package sync

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/manager"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const (
	root = "../../.."
	// periodVariable makes this test's binary run the operator with the period, instead of the tests.
	periodVariable, kubeconfigVariable, metricsVariable = "RUN_OPERATOR_WITH_SYNC_PERIOD", "RUN_OPERATOR_WITH", "RUN_OPERATOR_METRICS"
	// period is the shortest that is admitted.
	period = 10 * time.Second
)

var (
	server = &envtest.Environment{CRDDirectoryPaths: []string{root + "/config/crd/bases"}, ErrorIfCRDPathMissing: true}
	api    client.Client

	// controllers are the five, by the names that their metrics have.
	controllers = []string{"rediscluster", "application", "App.appcontroller.middleware.hc.cn", "CronTab.stable.example.com", "FooBar.k8s.io"}
)

func TestMain(m *testing.M) {
	if period := os.Getenv(periodVariable); period != "" {
		if err := operatorProcess(period); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(shared.Run(m, server, scheme.Scheme, func(_ context.Context, _ *rest.Config, c client.Client) (<-chan error, error) {
		api = c
		return nil, nil
	}))
}

// operatorProcess is `manager run --sync-period=…` outside of a cluster.
func operatorProcess(period string) error {
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(kubeconfigVariable))
	if err != nil {
		return err
	}
	o := shared.Options()
	if o.SyncPeriod, err = time.ParseDuration(period); err != nil {
		return err
	}
	o.Serving.MetricsAddress, o.Serving.MetricsSecure = os.Getenv(metricsVariable), false
	return manager.Run(ctrl.SetupSignalHandler(), config, o, shared.Nowhere)
}

// operator starts one, and returns what reads its metrics. It is stopped by the test's end.
func operator(t *testing.T, period time.Duration) (metrics func() []string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	shared.Check(t, os.WriteFile(kubeconfig, server.KubeConfig, 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	shared.Check(t, err)
	address := listener.Addr().String()
	shared.Check(t, listener.Close())
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), periodVariable+"="+period.String(), kubeconfigVariable+"="+kubeconfig, metricsVariable+"="+address)
	process.Stderr = os.Stderr
	shared.Check(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait() // it says on standard error why, if it failed
	})
	return func() (lines []string) {
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return nil
		}
		defer func() { _ = response.Body.Close() }()
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			lines = append(lines, scanner.Text())
		}
		return lines
	}
}

// passes are how many reconciliations of each controller have ended, however they ended.
func passes(metrics []string) map[string]int {
	counted := map[string]int{}
	for _, line := range metrics {
		series, value, _ := strings.Cut(line, " ")
		_, labels, is := strings.Cut(series, `controller_runtime_reconcile_total{controller="`)
		if n, err := strconv.ParseFloat(value, 64); is && err == nil {
			controller, _, _ := strings.Cut(labels, `"`)
			counted[controller] += int(n)
		}
	}
	return counted
}

// requests is how many the operator made, watches too.
func requests(metrics []string) (sum int) {
	for _, line := range metrics {
		_, value, is := strings.Cut(line, "} ")
		if n, err := strconv.ParseFloat(value, 64); is && err == nil && strings.HasPrefix(line, "rest_client_requests_total{") {
			sum += int(n)
		}
	}
	return sum
}

// play does what Kubernetes' controllers would do for the samples' children: two Deployments are available, and a Job has succeeded.
func play(t *testing.T, namespace string) {
	t.Helper()
	shared.Eventually(t, "the children of App, Application and FooBar", func() string {
		deployments, jobs := &appsv1.DeploymentList{}, &batchv1.JobList{}
		shared.Check(t, api.List(context.Background(), deployments, client.InNamespace(namespace)))
		shared.Check(t, api.List(context.Background(), jobs, client.InNamespace(namespace)))
		if len(deployments.Items) < 2 || len(jobs.Items) < 1 {
			return fmt.Sprintf("%d Deployments and %d Jobs", len(deployments.Items), len(jobs.Items))
		}
		for i := range deployments.Items {
			d, n := &deployments.Items[i], ptr.Deref(deployments.Items[i].Spec.Replicas, 1)
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n,
				AvailableReplicas: n}
			if err := api.Status().Update(context.Background(), d); err != nil {
				return err.Error()
			}
		}
		now := metav1.Now()
		jobs.Items[0].Status = batchv1.JobStatus{Succeeded: 1, StartTime: &now, CompletionTime: &now, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		}}
		if err := api.Status().Update(context.Background(), &jobs.Items[0]); err != nil {
			return err.Error()
		}
		return ""
	})
}

// samples makes one object of each kind. The RedisCluster is paused: it comes to rest without instances. It
// names no Secret and no ConfigMap, which would be looked for.
func samples(t *testing.T, namespace string) {
	t.Helper()
	for _, file := range []string{"redis_v1alpha1_rediscluster", "controller_v1_application", "appcontroller_v1alpha1_app",
		"stable_v1beta1_crontab", "k8s_v1_foobar"} {
		text, err := os.ReadFile(filepath.Join(root, "config", "samples", file+".yaml"))
		shared.Check(t, err)
		object := &unstructured.Unstructured{}
		shared.Check(t, yaml.UnmarshalStrict(text, &object.Object))
		object.SetNamespace(namespace)
		if object.GetKind() == "RedisCluster" {
			shared.Check(t, unstructured.SetNestedField(object.Object, true, "spec", "pause"))
			shared.Check(t, unstructured.SetNestedField(object.Object, false, "spec", "auth", "enabled"))
			pods, _, err := unstructured.NestedSlice(object.Object, "spec", "pod")
			shared.Check(t, err)
			delete(pods[0].(map[string]any), "configmap")
			shared.Check(t, unstructured.SetNestedSlice(object.Object, pods, "spec", "pod"))
		}
		if object.GetKind() == "CronTab" { // whose next run is in the status: that of the sample's is the next minute, on two days of the week
			shared.Check(t, unstructured.SetNestedField(object.Object, "0 0 1 1 *", "spec", "cronSpec"))
		}
		shared.Check(t, api.Create(context.Background(), object))
	}
}

// Two operators look at the same idle objects. While the one with a period makes reconciliations over each kind again and again, the one
// without makes none. Neither writes, so that neither wakes the other.
func TestSyncPeriod(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "sync")
	samples(t, namespace)
	never := operator(t, 0)
	play(t, namespace)
	var settled map[string]int
	same := 0
	shared.Eventually(t, "rest", func() string {
		now := passes(never())
		for _, controller := range controllers {
			if now[controller] == 0 {
				return "no pass of " + controller
			}
		}
		if same++; fmt.Sprint(now) != fmt.Sprint(settled) {
			settled, same = now, 0
		}
		if same < 300 { // longer than anything that is waited for
			return fmt.Sprintf("it still works: %v", now)
		}
		return ""
	})

	known := strings.Join(never(), "\n")
	for _, kind := range []string{"RedisCluster", "Application", "App", "CronTab", "FooBar"} { // of Go types too, whose objects do not say it
		if !strings.Contains(known, `resource_created_at_seconds{`) || !strings.Contains(known, `kind="`+kind+`",name=`) {
			t.Errorf("no metric tells when the %s was created", kind)
		}
	}

	periodic := operator(t, period)
	var first map[string]int
	shared.Eventually(t, "its first reconciliations", func() string {
		first = passes(periodic())
		for _, controller := range controllers {
			if first[controller] == 0 {
				return "no pass of " + controller
			}
		}
		return ""
	})
	before := passes(never())
	more := func(n int) {
		t.Helper()
		shared.Eventually(t, fmt.Sprintf("%d more reconciliations of each", n), func() string {
			now := passes(periodic())
			for _, controller := range controllers {
				if now[controller] < first[controller]+n {
					return fmt.Sprintf("%s: %d reconciliations at first, %d now", controller, first[controller], now[controller])
				}
			}
			return ""
		})
	}
	more(2)
	asked := requests(periodic())
	more(5)
	if now := requests(periodic()); now > asked {
		t.Errorf("looking at idle objects took %d requests", now-asked)
	}
	after := passes(never())
	for _, controller := range controllers {
		if after[controller] > before[controller] {
			t.Errorf("%s: without a period it made %d reconciliations meanwhile", controller, after[controller]-before[controller])
		}
	}
}
