// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/gateway"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

func outsideCluster() *v1alpha1.RedisCluster {
	c := cluster()
	c.UID = "uid"
	c.Spec.Auth.Enabled = ptr.To(false)
	c.Spec.External = &v1alpha1.External{Type: v1alpha1.ExternalLoadBalancer}
	c.Status.External = &v1alpha1.ExternalStatus{Instances: []int32{2, 2, 2, 2}, Served: []int32{2, 2, 2}}
	return c
}

// gatewayPod is a gateway of outsideCluster, changed.
func gatewayPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := writer(name, func(p *corev1.Pod) {
		p.UID = "1"
		p.Labels = map[string]string{v1alpha1.LabelGateway: "c"}
		p.OwnerReferences[0].Name = "c-gateway-5d4"
		p.Spec.Containers[0].Args = []string{"gateway", "--map-file=/etc/gateway/map/map.json"}
	})
	if change != nil {
		change(pod)
	}
	return pod
}

// A gateway counts by its owner and by what it runs, and what it says is believed if it can be one's.
func TestWhoIsAGateway(t *testing.T) {
	sum := strings.Repeat("a", 64)
	serving := fmt.Sprintf(`{"map":%q}`, sum)
	unknown := fmt.Sprintf(`{"map":%q,"unknown":["c-3-1","c","nobody"]}`, sum)
	addresses := fmt.Sprintf(`{"map":%q,"addresses":{"c-2-1":["10.0.0.7:6379","x","[2001:db8::7]:6379"],"c":["10.0.0.8:6379"]}}`, sum)
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		says   string
		want   []snapshot.Gateway
	}{
		"it serves": {nil, serving, []snapshot.Gateway{{Pod: "g", Ready: true, Map: sum}}},
		"it knows not all": {nil, unknown,
			[]snapshot.Gateway{{Pod: "g", Ready: true, Map: sum, Unknown: []snapshot.Numbered{{Shard: 3, Ordinal: 1}}}}},
		"it knows addresses": {nil, addresses, []snapshot.Gateway{{Pod: "g", Ready: true, Map: sum,
			Addresses: map[snapshot.Numbered][]string{{Shard: 2, Ordinal: 1}: {"10.0.0.7", "2001:db8::7"}}}}},
		"it says nothing":  {nil, "", []snapshot.Gateway{{Pod: "g", Ready: true}}},
		"it says nonsense": {nil, `{"map":"x"}`, []snapshot.Gateway{{Pod: "g", Ready: true}}},
		"it says much":     {nil, serving + strings.Repeat(" ", 1<<20), []snapshot.Gateway{{Pod: "g", Ready: true}}},
		"it starts": {func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }, "",
			[]snapshot.Gateway{{Pod: "g", Starting: true, Waiting: "starting"}}},
		"it has started for long": {func(p *corev1.Pod) {
			p.Status, p.CreationTimestamp = corev1.PodStatus{}, metav1.NewTime(now.Add(-time.Hour))
		}, "",
			[]snapshot.Gateway{{Pod: "g", Waiting: "starting"}}},
		"it ends": {func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(now.Add(time.Minute))), []string{"a/b"}
		}, serving, []snapshot.Gateway{{Pod: "g", Map: sum, EndsBy: now.Add(time.Minute)}}},
		"it has ended":        {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, serving, nil},
		"no owner":            {func(p *corev1.Pod) { p.OwnerReferences = nil }, serving, nil},
		"another owner":       {func(p *corev1.Pod) { p.OwnerReferences[0].Name = "c-archive-1" }, serving, nil},
		"a stranger's owner":  {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, serving, nil},
		"another command":     {func(p *corev1.Pod) { p.Spec.Containers[0].Args[0] = "archive" }, serving, nil},
		"at a node's address": {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, serving, nil},
	} {
		kube := fake.NewClientBuilder().WithObjects(append(deploymentOf("c-gateway"), gatewayPod("g", tt.change))...).Build()
		o := &Observer{Children: kube, Secrets: kube, Now: func() time.Time { return now },
			Ask: func(context.Context, string) ([]byte, error) {
				if tt.says == "" {
					return nil, errors.New("no route")
				}
				return []byte(tt.says), nil
			}}
		got, _, err := o.external(t.Context(), outsideCluster(), &snapshot.Snapshot{}, &Memory{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Gateways {
			got.Gateways[i].EndsBy = got.Gateways[i].EndsBy.UTC()
		}
		if tt.want != nil {
			tt.want[0].EndsBy = tt.want[0].EndsBy.UTC()
		}
		if diff := cmp.Diff(tt.want, got.Gateways); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Gateways are asked while there is somebody of whom it is not known that they lead to them, and every two seconds at most.
func TestGatewaysAreAskedNowAndThen(t *testing.T) {
	at, asked := now, 0
	kube := fake.NewClientBuilder().WithObjects(append(deploymentOf("c-gateway"), gatewayPod("g", nil))...).Build()
	o := &Observer{Children: kube, Secrets: kube, Now: func() time.Time { return at },
		Ask: func(context.Context, string) ([]byte, error) { asked++; return nil, errors.New("no route") }}
	c, m := outsideCluster(), &Memory{}
	asks := func(after time.Duration, want int) {
		t.Helper()
		at = at.Add(after)
		if _, _, err := o.external(t.Context(), c, &snapshot.Snapshot{}, m); err != nil || asked != want {
			t.Errorf("asked %d times, want %d, %v", asked, want, err)
		}
	}
	asks(0, 1)
	asks(time.Second, 1)
	asks(time.Second, 2)
	c.Status.External.Served = slices.Clone(c.Status.External.Instances)
	asks(time.Minute, 2)
}

// Gateways are asked until all know the address that an instance has got, and not for ever.
func TestGatewaysAreAskedForAddresses(t *testing.T) {
	at, asked, knows := now, 0, "10.0.0.1"
	kube := fake.NewClientBuilder().WithObjects(append(deploymentOf("c-gateway"), gatewayPod("g", nil))...).Build()
	o := &Observer{Children: kube, Secrets: kube, Now: func() time.Time { return at }, Ask: func(context.Context, string) ([]byte, error) {
		asked++
		return fmt.Appendf(nil, `{"map":%q,"addresses":{"c-0-0":["%s:6379"]}}`, strings.Repeat("a", 64), knows), nil
	}}
	c, m := outsideCluster(), &Memory{}
	c.Status.External.Served = slices.Clone(c.Status.External.Instances)
	looks := func(after time.Duration, uid, ip string, wantAsked int, wantKnown bool, wantSince time.Time) {
		t.Helper()
		at = at.Add(after)
		s := &snapshot.Snapshot{Instances: []snapshot.Instance{{UID: uid, IP: ip}}}
		got, _, err := o.external(t.Context(), c, s, m)
		in := &s.Instances[0]
		if err != nil || asked != wantAsked || got.Gateways[0].Knows(in) != wantKnown || !in.IPSince.Equal(wantSince) {
			t.Errorf("asked %d times, known %t, since %s, %v", asked, got.Gateways[0].Knows(in), in.IPSince, err)
		}
	}
	looks(0, "a", "10.0.0.1", 1, true, now)
	looks(time.Minute, "a", "10.0.0.1", 1, true, now)
	looks(time.Minute, "a", "", 1, false, at.Add(time.Minute)) // it restarts
	looks(time.Second, "a", "10.0.0.2", 2, false, at.Add(time.Second))
	restarted := at
	looks(time.Second, "a", "10.0.0.2", 2, false, restarted)
	knows = "10.0.0.2"
	looks(time.Second, "a", "10.0.0.2", 3, true, restarted)
	looks(time.Hour, "a", "10.0.0.2", 3, true, restarted)
	looks(time.Minute, "b", "10.0.0.3", 4, false, at.Add(time.Minute)) // another pod
	replaced := at
	looks(snapshot.KnownWithin-time.Second, "b", "10.0.0.3", 5, false, replaced)
	looks(time.Second, "b", "10.0.0.3", 5, false, replaced)
}

// The Service is read when it has changed, and what it says is told if it can be an address.
func TestWhereTheBalancerIs(t *testing.T) {
	reads := 0
	controlled := []metav1.OwnerReference{{APIVersion: "redis.middleware.hc.cn/v1alpha1", Kind: "RedisCluster", Name: "c", UID: "uid",
		Controller: ptr.To(true)}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-gateway", OwnerReferences: controlled},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 7000, NodePort: 30123}}}}
	kube := fake.NewClientBuilder().WithObjects(service).WithStatusSubresource(service).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if _, whole := into.(*corev1.Service); whole {
				reads++
			}
			return c.Get(ctx, key, into, opts...)
		}}).Build()
	o, m, c := &Observer{Children: kube, Secrets: kube, Now: func() time.Time { return now }}, &Memory{}, outsideCluster()
	is := func(host string, want int) {
		t.Helper()
		for range 2 {
			got, _, err := o.external(t.Context(), c, &snapshot.Snapshot{}, m)
			if err != nil || got.Service == nil || got.Service.Host != host || got.Service.NodePorts[7000] != 30123 || reads != want {
				t.Errorf("%+v, %v, after %d reads, want %q and %d", got.Service, err, reads, host, want)
			}
		}
	}
	is("", 1)
	for i, tt := range []struct {
		at   corev1.LoadBalancerIngress
		want string
	}{
		{corev1.LoadBalancerIngress{IP: "192.0.2.1"}, "192.0.2.1"},
		{corev1.LoadBalancerIngress{Hostname: "lb.example.com"}, "lb.example.com"},
		{corev1.LoadBalancerIngress{IP: "nonsense"}, ""},
		{corev1.LoadBalancerIngress{Hostname: "a b"}, ""},
	} {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{tt.at}
		if err := kube.Status().Update(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		is(tt.want, 2+i)
	}
	c.UID = "another"
	if got, _, err := o.external(t.Context(), c, &snapshot.Snapshot{}, m); err != nil || got.Service != nil {
		t.Errorf("another's Service: %+v, %v", got.Service, err)
	}
}

// What was written down is bounded, whoever wrote it.
func TestWhatWasWrittenDown(t *testing.T) {
	c := outsideCluster()
	c.Status.External = &v1alpha1.ExternalStatus{Instances: append([]int32{-1, 1 << 30}, make([]int32, 1000)...),
		Leaving: []v1alpha1.ExternalLeaving{{Name: "other-0-0"}, {Name: "c-3-1", Until: metav1.NewTime(now)}}}
	out, served := writtenDown(c)
	if len(out.Instances) != 100 || out.Instances[0] != 0 || out.Instances[1] != 10 || served != nil {
		t.Errorf("%v, %v", out.Instances, served)
	}
	if want := []snapshot.Leaving{{Shard: 3, Ordinal: 1, Until: now}}; !cmp.Equal(out.Leaving, want) {
		t.Errorf("%+v", out.Leaving)
	}
}

// Gateways are given Secrets that say so.
func TestSecretsOfGateways(t *testing.T) {
	secret := func(name, label string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{label: "true"}}}
	}
	c := outsideCluster()
	c.Spec.External.TLS = &v1alpha1.ExternalTLS{SecretName: "front"}
	c.Spec.TLS = &v1alpha1.TLS{SecretName: "inner"}
	for name, tt := range map[string]struct {
		image   string
		secrets []client.Object
		want    string
	}{
		"no image": {"", nil, "--backup-image"},
		"none":     {"operator:1", nil, "spec.tls: there is no Secret inner"},
		"without label": {"operator:1", []client.Object{secret("inner", v1alpha1.LabelTLS), secret("front", v1alpha1.LabelTLS)},
			"spec.external.tls.secretName: Secret front lacks the label " + v1alpha1.LabelExternalTLS},
		"with the label": {"operator:1", []client.Object{secret("inner", v1alpha1.LabelTLS), secret("front", v1alpha1.LabelExternalTLS)}, ""},
	} {
		o := &Observer{Secrets: fake.NewClientBuilder().WithObjects(tt.secrets...).Build(), BackupImage: tt.image,
			Now: func() time.Time { return now }}
		if got := o.GatewaysWithheld(t.Context(), c, &Memory{}); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	c.Status.TLS = &v1alpha1.TLSStatus{Mode: v1alpha1.TLSBoth}
	o := &Observer{BackupImage: "operator:1", Now: func() time.Time { return now }}
	if got := o.GatewaysWithheld(t.Context(), c, &Memory{}); !strings.Contains(got, "when status.tls.mode is Required") {
		t.Errorf("while TLS is switched: %q", got)
	}
}

// What a real gateway says is understood: the digest of its map, and whom it knows no address of.
func TestWhatAGatewaySays(t *testing.T) {
	const host = "127.0.41.10" // whose ports nothing else on this machine has
	file, text := filepath.Join(t.TempDir(), "map.json"), `{"instances": [
		{"name": "c-0-0", "port": 40710, "outside": "h:7010", "inside": ["127.0.0.1:6379"]},
		{"name": "c-0-1", "port": 40711, "outside": "h:7011", "inside": ["c-0-1.invalid.:6379"]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	g, err := gateway.New(ctx, gateway.Options{MapFile: file, Host: host, MaxConnections: 1, MaxPerSource: 1, MaxPerInstance: 1,
		Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	defer func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	sum := sha256.Sum256([]byte(text))
	want := servedMap{Map: hex.EncodeToString(sum[:]), Unknown: []string{"c-0-1"}, Addresses: map[string][]string{"c-0-0": {"127.0.0.1:6379"}}}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		said, err := backupjob.Asker(MostSaid)(t.Context(), server.Listener.Addr().String())
		if err != nil && time.Now().Before(deadline) {
			continue // it starts, and asks a resolver that may take its time
		}
		if got, err := parseServed(said); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		return
	}
}

// It is known since when gateways are behind, and anew when they are to lead to others.
func TestSinceWhenGatewaysAreBehind(t *testing.T) {
	var m externalMemory
	four := snapshot.Outside{Instances: v1alpha1.Topology{2, 2, 2, 2}}
	five := snapshot.Outside{Instances: v1alpha1.Topology{2, 2, 2, 2, 2}}
	for i, tt := range []struct {
		e    snapshot.External
		want time.Time
	}{
		{snapshot.External{Outside: four, Served: v1alpha1.Topology{2, 2, 2}}, now},
		{snapshot.External{Outside: four, Served: v1alpha1.Topology{2, 2, 2, 1}}, now},
		{snapshot.External{Outside: five, Served: v1alpha1.Topology{2, 2, 2, 1}}, now.Add(2 * time.Minute)},
		{snapshot.External{Outside: five, Served: five.Instances}, time.Time{}},
		{snapshot.External{Outside: five, Served: four.Instances}, now.Add(4 * time.Minute)},
	} {
		if got := m.unserved(&tt.e, now.Add(time.Duration(i)*time.Minute)); !got.Equal(tt.want) {
			t.Errorf("%d: since %s, want %s", i, got, tt.want)
		}
	}
}
