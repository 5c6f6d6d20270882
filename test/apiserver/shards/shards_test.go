// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shards runs whole operators that divide objects among each other: KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test
// ./test/apiserver/shards.
package shards

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/internal/shards"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const (
	root = "../../.."
	// serverVariable makes this test's binary run the operator, instead of the tests.
	serverVariable, metricsVariable = "RUN_OPERATOR_AT", "RUN_OPERATOR_METRICS"

	divided    = 4
	namespaces = 12
)

var (
	server = &envtest.Environment{CRDDirectoryPaths: []string{root + "/config/crd/bases"}, ErrorIfCRDPathMissing: true}
	admin  *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		if err := operatorProcess(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(shared.Run(m, server, scheme.Scheme, shared.Into(&admin, &api)))
}

// operatorProcess is `manager run --shards=4` outside of a cluster.
func operatorProcess() error {
	ctrl.SetLogger(logr.Discard())
	o := shared.Options()
	o.Shards = divided
	o.LeaderElection.Enabled, o.LeaderElection.Namespace = true, "default"
	o.LeaderElection.LeaseDuration, o.LeaderElection.RenewDeadline = 40*time.Second, 30*time.Second // nobody waits for that
	o.LeaderElection.RetryPeriod = 400 * time.Millisecond
	o.Serving.MetricsAddress, o.Serving.MetricsSecure = os.Getenv(metricsVariable), false
	return manager.Run(ctrl.SetupSignalHandler(), &rest.Config{Host: os.Getenv(serverVariable), QPS: -1}, o, shared.Nowhere)
}

// owners are who has the Lease of each shard, as the API server accepted it, and who wrote without one.
type owners struct {
	mu      sync.Mutex
	of      map[string]string // by the Lease's name
	strange []string
	writes  map[string]int // by operator
}

var (
	leasePath  = regexp.MustCompile(`/namespaces/default/leases(?:/([^/?]+))?$`)
	objectPath = regexp.MustCompile(`/namespaces/(shards-[^/]+)/`)
)

// before notes that a Lease is given away: from when the request is sent, nothing of its shard may be written any more.
func (o *owners) before(operator string, lease *coordinationv1.Lease, path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if lease != nil {
		if ptr.Deref(lease.Spec.HolderIdentity, "") == "" && o.of[lease.Name] == operator {
			o.of[lease.Name] = ""
		}
		return
	}
	o.check(operator, path)
}

// after notes who has a Lease, before that operator hears it.
func (o *owners) after(operator string, lease *coordinationv1.Lease, path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if lease != nil {
		if ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
			o.of[lease.Name] = operator
		}
		return
	}
	o.check(operator, path)
}

func (o *owners) check(operator, path string) {
	in := objectPath.FindStringSubmatch(path)
	if in == nil || strings.HasSuffix(path, "/events") { // Events of what was done are written when there is time
		return
	}
	o.writes[operator]++
	if owner := o.of[shards.ShardLease("middleware-operator", shards.Of(in[1], divided))]; owner != operator {
		o.strange = append(o.strange, fmt.Sprintf("%s writes %s, which is %q's", operator, path, owner))
	}
}

// operator is a process, and the proxy through which it reaches the API server.
type operator struct {
	name, address string
	process       *exec.Cmd
	front         *httptest.Server
}

// start runs an operator until it is stopped, or the end of the test.
func start(t *testing.T, name string, by *owners) *operator {
	t.Helper()
	target, err := url.Parse(admin.Host)
	shared.Check(t, err)
	transport, err := rest.TransportFor(admin)
	shared.Check(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	op := &operator{name: name}
	op.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet {
			proxy.ServeHTTP(w, request)
			return
		}
		lease := leaseIn(request)
		by.before(name, lease, request.URL.Path)
		proxy.ServeHTTP(&answer{ResponseWriter: w, before: func(code int) {
			if lease == nil || code < http.StatusMultipleChoices {
				by.after(name, lease, request.URL.Path)
			}
		}}, request)
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	shared.Check(t, err)
	op.address = listener.Addr().String()
	shared.Check(t, listener.Close())
	op.process = exec.Command(os.Args[0])
	op.process.Env = append(os.Environ(), serverVariable+"="+op.front.URL, metricsVariable+"="+op.address)
	op.process.Stderr = os.Stderr
	shared.Check(t, op.process.Start())
	t.Cleanup(op.stop)
	return op
}

func (op *operator) stop() {
	if op.process == nil {
		return
	}
	_ = op.process.Process.Signal(syscall.SIGTERM)
	_ = op.process.Wait() // it says on standard error why, if it failed
	op.front.CloseClientConnections()
	op.front.Close()
	op.process = nil
}

// leaseIn is the Lease that a request writes; nil: none.
func leaseIn(request *http.Request) *coordinationv1.Lease {
	path := leasePath.FindStringSubmatch(request.URL.Path)
	if path == nil {
		return nil
	}
	body, _ := io.ReadAll(request.Body)
	request.Body = io.NopCloser(bytes.NewReader(body))
	lease := &coordinationv1.Lease{}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, lease)
	if decoded, is := object.(*coordinationv1.Lease); err == nil && is {
		return decoded
	}
	_ = json.Unmarshal(body, lease)
	return lease
}

// answer calls before when the API server has answered, and nobody has heard it: who has a Lease goes on at once.
type answer struct {
	http.ResponseWriter
	before func(code int)
}

func (a *answer) WriteHeader(code int) {
	if code >= http.StatusOK { // those below are said on the way
		a.before(code)
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// metrics are how many shards an operator says that it holds, and of which FooBars it tells; negative: it does not answer.
func (op *operator) metrics() (held int, told []string) {
	response, err := http.Get("http://" + op.address + "/metrics")
	if err != nil {
		return -1, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "middleware_operator_shards_held "); is {
			held, _ = strconv.Atoi(strings.TrimSpace(value))
		}
		if strings.HasPrefix(line, `middleware_operator_resource_condition{`) && strings.Contains(line, `kind="FooBar"`) &&
			strings.Contains(line, `type="Ready"`) {
			_, namespace, _ := strings.Cut(line, `namespace="`)
			namespace, _, _ = strings.Cut(namespace, `"`)
			told = append(told, namespace)
		}
	}
	return held, told
}

// shares waits until operators hold so many shards each, and tell of each object once.
func shares(t *testing.T, want []int, operators ...*operator) {
	t.Helper()
	shared.Eventually(t, fmt.Sprintf("the shares %v", want), func() string {
		var held []int
		var told []string
		for _, op := range operators {
			holds, tells := op.metrics()
			held, told = append(held, holds), append(told, tells...)
		}
		slices.Sort(told)
		if fmt.Sprint(held) != fmt.Sprint(want) || len(told) != namespaces || len(slices.Compact(told)) != namespaces {
			return fmt.Sprintf("held are %v, told is of %v", held, told)
		}
		return ""
	})
}

// change changes all objects, and waits until all were reconciled.
func change(t *testing.T, objects []*unstructured.Unstructured, to string, meanwhile func()) {
	t.Helper()
	for _, object := range objects {
		shared.Check(t, api.Patch(context.Background(), object, client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"command":"echo `+to+`"}}`))))
	}
	meanwhile()
	for _, object := range objects {
		shared.Eventually(t, "the status of "+object.GetNamespace(), func() string {
			if err := api.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
				return err.Error()
			}
			if seen, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); seen != object.GetGeneration() {
				return fmt.Sprintf("generation %d, observed %d", object.GetGeneration(), seen)
			}
			return ""
		})
	}
}

// Replicas divide the shards, and divide them anew when one goes or comes. All objects are reconciled, and nothing of a namespace is
// written but by who has the Lease of its shard.
func TestReplicasShareObjects(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range namespaces {
		namespace := &corev1.Namespace{}
		namespace.Name = fmt.Sprintf("shards-%d", i) // some of each shard
		shared.Check(t, api.Create(context.Background(), namespace))
		object := shared.Object(schema.GroupVersionKind{Group: "k8s.io", Version: "v1", Kind: "FooBar"}, namespace.Name, "foobar")
		object.Object["spec"] = map[string]any{"foo": "bar", "barz": "false", "command": "echo foobar"}
		shared.Check(t, api.Create(context.Background(), object))
		objects = append(objects, object)
	}
	by := &owners{of: map[string]string{}, writes: map[string]int{}}
	a, b := start(t, "a", by), start(t, "b", by)
	change(t, objects, "1", func() {})
	shares(t, []int{2, 2}, a, b)
	change(t, objects, "2", func() {})
	change(t, objects, "3", a.stop)
	shares(t, []int{4}, b)
	change(t, objects, "4", func() { a = start(t, "again", by) })
	shares(t, []int{2, 2}, a, b)
	change(t, objects, "5", func() {})

	by.mu.Lock()
	defer by.mu.Unlock()
	if len(by.strange) > 0 {
		t.Errorf("written by who had no Lease: %s", strings.Join(by.strange, "\n"))
	}
	for _, name := range []string{"a", "b", "again"} {
		if by.writes[name] == 0 {
			t.Errorf("%s wrote nothing", name)
		}
	}
}
