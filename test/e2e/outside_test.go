// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// Clients that reach nodes and no pods use a cluster through node ports, with load from inside beside them: instances are rolled out, a
// shard comes and goes, gateways are replaced, and nothing fails, outside or inside; a master that is killed is succeeded for both. Access
// from outside is switched off and on, and no instance restarts for it.
func TestRedisClusterOutside(t *testing.T) {
	parallel(t)
	if !live.Local() || os.Getenv("E2E") != "all" {
		t.Skip("maps take minutes to reach pods: with E2E=all; else TestScalesOutside, TestSlotsMoveUnderClientsOutside and TestExternalIsServed")
	}
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		cluster := newCluster(live.NewNamespace(t), "cache")
		const keys = 2000
		load := underLoad(t, cluster, keys)
		load.Began(keys) // clients outside have keys besides
		before := podUIDs(t, cluster)
		live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
			c.Spec.External = &v1alpha1.External{Type: v1alpha1.ExternalNodePort, Host: aNode(t)}
		})
		o := startOutside(t, cluster)
		if after := podUIDs(t, cluster); !maps.Equal(after, before) {
			t.Errorf("instances restarted for clients outside: %v, were %v", after, before)
		}
		rolled(t, cluster, "an annotation", func(c *v1alpha1.RedisCluster) { c.Spec.Pod[0].Annotations = map[string]string{"rolled": "out"} })
		o.wantUnnoticed("rollout")
		var method v1alpha1.MigrationMethod
		for _, to := range []int32{4, 3} {
			setSize(t, cluster, to, 2*to)
			method = cmp.Or(followed(t, cluster).method, method)
			wantHealthy(t, cluster, to, 2*to)
			o.wantUnnoticed(fmt.Sprintf("%d shards", to))
		}
		live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
			c.Spec.External.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}
		})
		o.gatewaysReplaced()
		o.wantUnnoticed("gateways replaced")
		run.WantUnnoticed(load, method)

		killed := killPods(t, cluster, master(t, cluster, 0).Name)
		settled(t, cluster, killed)
		o.worksAgain("after a failover")

		o.stop()
		before = podUIDs(t, cluster)
		live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.External = nil })
		live.Eventually(t, "nothing is left of what leads clients outside", func() error {
			var pods corev1.PodList
			if err := live.Kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace),
				client.HasLabels{v1alpha1.LabelGateway}); err != nil {
				return err
			}
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.GatewayName()}}
			if err := live.Get(t, service); err == nil || len(pods.Items) > 0 {
				return fmt.Errorf("%d gateways, and the Service is there: %t", len(pods.Items), err == nil)
			}
			return live.Get(t, cluster)
		})
		live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
			c.Spec.External = &v1alpha1.External{Type: v1alpha1.ExternalNodePort, Host: aNode(t)}
		})
		startOutside(t, cluster).stop()
		if after := podUIDs(t, cluster); !maps.Equal(after, before) {
			t.Errorf("instances restarted for clients outside: %v, were %v", after, before)
		}
	})
}

// aNode is the address of a node.
func aNode(t *testing.T) string {
	t.Helper()
	var nodes corev1.NodeList
	if err := live.Kube.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP && !node.Spec.Unschedulable {
				return address.Address
			}
		}
	}
	t.Fatal("no node has an address")
	return ""
}

// networkOutside is that of the control plane, which reaches nodes.
func networkOutside(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("/proc/%d/ns/net", processOf(t, "etcd", "control-plane"))
}

// clientsOutside reach nodes, and no pods.
type clientsOutside struct {
	t       *testing.T
	cluster *v1alpha1.RedisCluster
	client  *goredis.ClusterClient
	cancel  context.CancelFunc
	group   sync.WaitGroup

	mu       sync.Mutex
	done     int
	failures []string
}

// startOutside waits until a cluster can be reached from outside, and begins to use it.
func startOutside(t *testing.T, cluster *v1alpha1.RedisCluster) *clientsOutside {
	t.Helper()
	live.Eventually(t, "clients outside find the cluster", func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		is := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionExternalAccess)
		if is == nil || is.Status != metav1.ConditionTrue || len(cluster.Status.External.Served) == 0 {
			return fmt.Errorf("ExternalAccess is %+v", is)
		}
		return nil
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.AuthSecretName()}}
	if err := live.Get(t, secret); err != nil {
		t.Fatal(err)
	}
	const timeout = 5 * time.Second
	o := &clientsOutside{t: t, cluster: cluster}
	host, outside := cluster.Spec.External.Host, networkOutside(t)
	o.client = goredis.NewClusterClient(&goredis.ClusterOptions{
		Addrs: cluster.Status.External.Addresses, Password: string(secret.Data[v1alpha1.SecretKeyPassword]), Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, ClusterStateReloadInterval: time.Second,
		Dialer: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			if at, _, err := net.SplitHostPort(address); err != nil || at != host {
				return nil, fmt.Errorf("%s is not reached from outside", address)
			}
			err = inNetwork(outside, func() error {
				conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
				return err
			})
			return conn, err
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	t.Cleanup(o.stop)
	const clients = 4
	for n := range clients {
		o.group.Go(func() { o.use(ctx, n) })
	}
	return o
}

// use counts up keys of its own until the context ends. A counter never goes back.
func (o *clientsOutside) use(ctx context.Context, n int) {
	const keys, rest = 200, 20 * time.Millisecond
	counts := make([]int64, keys)
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("outside:%d:%d", n, i%keys)
		count, err := o.client.Incr(ctx, key).Result()
		if ctx.Err() != nil {
			return
		}
		o.mu.Lock()
		switch o.done++; {
		case err != nil:
			o.failures = append(o.failures, fmt.Sprintf("%s: %s: %v", time.Now().Format(time.TimeOnly), key, err))
		case count <= counts[i%keys]:
			o.failures = append(o.failures, fmt.Sprintf("%s is %d, and was %d", key, count, counts[i%keys]))
		default:
			counts[i%keys] = count
		}
		o.mu.Unlock()
		time.Sleep(rest)
	}
}

// taken are the commands since it was called last, and those that failed.
func (o *clientsOutside) taken() (done int, failures []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	done, failures, o.done, o.failures = o.done, o.failures, 0, nil
	return done, failures
}

// wantUnnoticed fails if a command failed since it was called last.
func (o *clientsOutside) wantUnnoticed(what string) {
	o.t.Helper()
	const most = 10
	done, failures := o.taken()
	o.t.Logf("%s: %d commands outside, %d failed", what, done, len(failures))
	if done == 0 || len(failures) > 0 {
		o.t.Errorf("%s: of %d commands outside %d failed:\n%s", what, done, len(failures),
			strings.Join(failures[:min(len(failures), most)], "\n"))
	}
}

// worksAgain waits until commands succeed for a while.
func (o *clientsOutside) worksAgain(when string) {
	o.t.Helper()
	const enough = 200
	live.Eventually(o.t, "clients outside go on "+when, func() error {
		_, _ = o.taken()
		time.Sleep(2 * time.Second)
		if done, failures := o.taken(); done < enough || len(failures) > 0 {
			return fmt.Errorf("%d commands, failed: %.300v", done, failures)
		}
		return nil
	})
}

// gatewaysReplaced waits until all gateways are of the present template.
func (o *clientsOutside) gatewaysReplaced() {
	o.t.Helper()
	live.Eventually(o.t, "gateways are replaced", func() error {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster.Namespace, Name: o.cluster.GatewayName()}}
		if err := live.Get(o.t, d); err != nil {
			return err
		}
		cpu := d.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()
		if is := d.Status; cpu != "50m" || is.ObservedGeneration != d.Generation || is.UpdatedReplicas != *d.Spec.Replicas ||
			is.Replicas != is.UpdatedReplicas || is.AvailableReplicas != is.Replicas {
			return fmt.Errorf("requests %s, %+v", cpu, is)
		}
		return nil
	})
}

func (o *clientsOutside) stop() {
	o.cancel()
	o.group.Wait()
	_ = o.client.Close() // it is not used any more
}
