// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/status"
)

// gateways lead clients outside to instances, by a map that reaches each of them late.
type gateways struct {
	s    *simulation
	maps []mapOfNow
	// lags are how late, by address.
	lags map[string]time.Duration
	// there is when an instance was last there.
	there map[string]time.Time
	// pods are the addresses that instances got, in their order; gateways learn of one by DNS, whose answers are of so long before.
	pods map[string][]addressOf
	dns  time.Duration
}

// addressOf is one that an instance got at a moment.
type addressOf struct {
	ip string
	at time.Time
}

// mapOfNow is a map, from when it is in the ConfigMap.
type mapOfNow struct {
	at  time.Time
	sum string
	of  map[string]bool
}

// letIn asks for clients outside, with gateways that run.
func (s *simulation) letIn(lags ...time.Duration) {
	s.gateways = &gateways{s: s, lags: map[string]time.Duration{}, there: map[string]time.Time{},
		pods: map[string][]addressOf{}}
	s.cluster.Spec.External = &v1alpha1.External{Type: v1alpha1.ExternalLoadBalancer, Host: "redis.example.com"}
	s.loop.Observer.Ask = s.gateways.ask
	s.create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: "c-gateway", UID: "deployment",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "RedisCluster", Name: "c", UID: s.cluster.UID, Controller: ptr.To(true)}}}})
	s.create(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: "c-gateway-5d4", UID: "rs",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "c-gateway", UID: "deployment", Controller: ptr.To(true)}}}})
	for i, lag := range lags {
		ip := fmt.Sprintf("10.9.0.%d", i)
		s.gateways.lags[ip+":8090"] = lag
		s.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: fmt.Sprintf("c-gateway-5d4-%d", i), UID: types.UID(ip),
				Labels: map[string]string{v1alpha1.LabelGateway: s.cluster.Name}, OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "c-gateway-5d4", UID: "rs", Controller: ptr.To(true)}}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "backup", Command: []string{"/backup"}, Args: []string{"gateway"}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
	}
}

// rendered is the chart and the API server: the map of a shape is in the ConfigMap at once.
func (g *gateways) rendered(shape plan.Shape, compared *rediscluster.Comparison) {
	of := map[string]bool{}
	for shard, instances := range shape.Outside.Instances {
		for ordinal := range int(instances) {
			of[fmt.Sprintf("c-%d-%d", shard, ordinal)] = true
		}
	}
	for _, l := range shape.Outside.Leaving {
		of[fmt.Sprintf("c-%d-%d", l.Shard, l.Ordinal)] = true
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(of)), " ")))
	is := mapOfNow{at: g.s.world.Now(), sum: hex.EncodeToString(sum[:]), of: of}
	if len(g.maps) == 0 || g.maps[len(g.maps)-1].sum != is.sum {
		g.maps = append(g.maps, is)
	}
	compared.Pending.Map, compared.Outside = is.sum, status.Outside{Known: true, Address: "redis.example.com:7000", Map: is.sum}
}

// of is the map that a gateway has.
func (g *gateways) of(address string) mapOfNow {
	has := g.maps[0]
	for _, m := range g.maps {
		if g.s.world.Now().Sub(m.at) >= g.lags[address] {
			has = m
		}
	}
	return has
}

// ask is what a gateway answers; now and then it does not.
func (g *gateways) ask(_ context.Context, address string) ([]byte, error) {
	if len(g.maps) == 0 || g.s.random.IntN(5) == 0 {
		return nil, errors.New("no route")
	}
	said := map[string]any{"map": g.of(address).sum, "addresses": g.known()}
	return json.Marshal(said)
}

// known are the addresses at which gateways connect to instances.
func (g *gateways) known() map[string][]string {
	known := map[string][]string{}
	for _, in := range g.s.instances {
		got := g.pods[in.pod.Name]
		if ip := in.pod.Status.PodIP; len(got) == 0 || got[len(got)-1].ip != ip {
			got = append(got, addressOf{ip, g.s.world.Now()})
			g.pods[in.pod.Name] = got
		}
		for _, a := range got {
			if g.s.world.Now().Sub(a.at) >= g.dns {
				known[in.pod.Name] = []string{a.ip + ":6379"}
			}
		}
	}
	return known
}

// check asserts that whoever owns slots, or follows one who does, is in the map of every gateway, and whoever was there a moment ago in the
// one of now; and that clients outside who are led to the owner of a slot reach it.
func (g *gateways) check() {
	g.s.t.Helper()
	if len(g.maps) == 0 {
		return
	}
	for _, in := range g.s.instances {
		g.there[in.pod.Name] = g.s.world.Now()
	}
	for name, last := range g.there {
		if left := g.s.world.Now().Sub(last); left < plan.LeavesAfter-time.Second && !g.maps[len(g.maps)-1].of[name] {
			g.s.fail("%s is gone for %s, and gateways are not told of it any more", name, left)
		}
	}
	snap, known := g.s.observe(), g.known()
	for _, in := range snap.Reachable() {
		r := in.Redis
		if master := snap.ByNodeID(r.MasterID); r.Slots.IsEmpty() && (r.Master || master == nil || master.Redis.Slots.IsEmpty()) {
			continue
		}
		if at := in.IP + ":6379"; !r.Slots.IsEmpty() && !slices.Contains(known[in.Name], at) {
			g.s.fail("%s owns slots at %s, and gateways connect to it at %s", in.Name, at, known[in.Name])
		}
		for address := range g.lags {
			if !g.of(address).of[in.Name] {
				g.s.fail("%s is told to clients, and the gateway at %s does not lead to it", in.Name, address)
			}
		}
	}
}

// However a cluster is scaled, and whenever the operator dies, clients outside are told of no instance that gateways do not lead to, and of
// one that is gone for as long as they may not know.
func TestScalesOutside(t *testing.T) {
	eachSeed(t, 4, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2, seed%2 == 1)
		s.letIn(5*time.Second, 60*time.Second)
		s.converge()
		for range 70 { // until the first map has reached all
			s.reconcile()
			s.world.Run(time.Second)
		}
		is := s.cluster.Status.External
		if is == nil || !slices.Equal(is.Served, []int32{2, 2, 2}) || is.Addresses[0] != "redis.example.com:7000" {
			s.fail("status.external is %+v", is)
		}
		app := newApplication(s)
		for key := range 30 {
			app.write(fmt.Sprintf("key:%d", key))
		}
		s.world.Run(2 * time.Second)
		for range 3 {
			s.scale(3+s.random.Int32N(3), 1+s.random.Int32N(3))
			for range s.random.IntN(100) {
				s.reconcile()
				s.world.Run(time.Second)
				s.gateways.check()
				if s.random.IntN(20) == 0 {
					s.replaceOperator()
				}
			}
		}
		s.converge()
		s.wantHealthy()
		app.wantAll()
		s.gateways.check()
	})
}

// Instances that restart have other addresses, of which gateways hear late, and whoever takes over from a master is known to them. Nobody
// waits for ever for gateways that never hear.
func TestRollsOutOutside(t *testing.T) {
	eachSeed(t, 4, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2, seed%2 == 1)
		s.letIn(time.Second, 5*time.Second)
		s.converge()
		for range 30 { // until the first map has reached all
			s.reconcile()
			s.world.Run(time.Second)
		}
		deaf := seed%4 == 3
		s.gateways.dns = time.Duration(5+s.random.IntN(55)) * time.Second
		if deaf {
			s.gateways.dns = time.Hour
		}
		s.gateways.known()
		s.world.Run(time.Minute)
		s.retemplate("v2")
		before := map[string]string{}
		for _, in := range s.instances {
			before[in.pod.Name] = in.pod.Status.PodIP
		}
		began, waited := s.world.Now(), false
		for range 1000 {
			step := s.reconcile()
			wait, waits := step.(plan.Wait)
			waited = waited || waits && wait.BlockedBy == plan.ServedOutside
			if plan.Is[plan.None](step) && s.cluster.Status.Phase == "Running" {
				break
			}
			s.replaced(true)
			s.world.Run(time.Second)
			if !deaf {
				s.gateways.check()
			}
			if s.random.IntN(50) == 0 && !deaf {
				s.replaceOperator()
			}
		}
		took := s.world.Now().Sub(began)
		for _, in := range s.instances {
			if in.pod.Status.PodIP == before[in.pod.Name] {
				s.fail("%s has not restarted after %s", in.pod.Name, took)
			}
		}
		if deaf && (!waited || took < snapshot.KnownWithin || took > 2*snapshot.KnownWithin) {
			s.fail("waited for gateways: %t, the rollout took %s", waited, took)
		}
		s.converge()
		s.wantHealthy()
	})
}
