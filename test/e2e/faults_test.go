// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// fault is what befalls the network, the disks or the processes that a RedisCluster under load lives of.
type fault struct {
	name  string
	lasts time.Duration
	// begin brings it about, and returns what ends it.
	begin func(*struck, *testing.T) (end func())
	// expects is what an application may see of it.
	expects expectation
}

// expectation is what Redis promises an application in a fault.
type expectation int

const (
	// nothing: no command fails.
	nothing expectation = iota
	// failures: commands may fail; what was acknowledged is there.
	failures
	// losses: a master is cut off or succeeded, and what it acknowledged and no replica had may be lost.
	losses
)

// faults are in the order of a story: each finds the cluster healthy.
var faults = []fault{
	{"the operator cannot reach Redis", 40 * time.Second, (*struck).operatorCutOff, nothing},
	{"the operator hangs, and its webhook", 40 * time.Second, (*struck).operatorHangs, nothing},
	{"the operator is out of memory", 10 * time.Second, (*struck).operatorOutOfMemory, nothing},
	{"the API server answers after 10 s", time.Minute, (*struck).slowAPIServer, nothing},
	{"a node is cut off from the API server", 40 * time.Second, (*struck).nodeWithoutAPIServer, nothing},
	{"DNS is down", 30 * time.Second, (*struck).noDNS, failures},
	{"5 % of packets to all instances are lost", 40 * time.Second, (*struck).losesPackets, losses},
	{"1 Mbit/s from each instance", 40 * time.Second, (*struck).slowNetwork, losses},
	{"a node is cut off from the others", 30 * time.Second, (*struck).nodeCutOff, losses},
	{"a master and the application are cut off from all others", 30 * time.Second, (*struck).minority, losses},
	{"a master hears nothing of the other instances, which hear it", 30 * time.Second, (*struck).deafMaster, losses},
	{"a master hangs", 20 * time.Second, (*struck).masterHangs, losses},
	{"a master is out of memory", 10 * time.Second, func(s *struck, t *testing.T) func() { return s.outOfMemory(t, "master") }, losses},
	{"a replica is out of memory", 10 * time.Second, func(s *struck, t *testing.T) func() { return s.outOfMemory(t, "slave") }, failures},
	// Redis ends when it cannot write nodes.conf: for a moment the Service leads new clients to it.
	{"the disk of a replica is full", 30 * time.Second, func(s *struck, t *testing.T) func() { return s.diskFull(t, "slave") }, failures},
	{"the disk of a master is full", 30 * time.Second, func(s *struck, t *testing.T) func() { return s.diskFull(t, "master") }, failures},
	// What is acknowledged in the last second is in memory only (appendfsync everysec), and an instance ends that cannot write nodes.conf.
	{"all disks are full", 30 * time.Second, func(s *struck, t *testing.T) func() { return s.diskFull(t, "") }, losses},
	{"the disk of a master stalls for 1.5 s of every 2", 30 * time.Second, (*struck).slowDisk, losses},
	{"the disk of a master fails and is read only", 30 * time.Second, (*struck).diskFails, losses},
}

// struck is the cluster that faults strike.
type struck struct {
	cluster *v1alpha1.RedisCluster
	disks   map[string]disk // by instance
	// prometheus scrapes the operator throughout.
	prometheus *live.Prometheus
}

// Faults of the network, of disks and of processes, one after the other and each under load: the cluster is Ready again when it is
// over, no key that had been there is gone, and the application sees no more than Redis promises. The lines of the log are those of
// docs/reliability.md.
func TestRedisClusterFaults(t *testing.T) {
	if !live.Local() || os.Getenv("E2E") != "all" {
		t.Skip("takes half an hour: with E2E=all, on the local cluster, whose processes, networks and disks are this machine's")
	}
	cluster := newCluster(live.NewNamespace(t), "cache")
	cluster.Spec.Config = map[string]string{"cluster-node-timeout": "2000"}
	cluster.Spec.Pod[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}
	live.Create(t, cluster)
	live.Ready(t, cluster)
	s := &struck{cluster: cluster, prometheus: live.StartPrometheus(t, cluster.Namespace)}
	s.onDisks(t)
	live.Eventually(t, "each node has a master", func() error {
		if err := live.Get(t, cluster); err != nil || meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionMastersSpread) {
			return err
		}
		return errors.New("one has two")
	})
	// A load between two faults would see switchovers of the one before.
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.SpreadMasters = ptr.To(false) })
	load := live.NewLoad(t, cluster)
	load.Fill(5000)
	for _, f := range faults {
		if !t.Run(f.name, func(t *testing.T) { s.suffers(t, f, load) }) {
			return // the next one would strike what is not healthy
		}
	}
}

// suffers brings a fault about under load and says what came of it.
func (s *struck) suffers(t *testing.T, f fault, load *live.Load) {
	load.Start()
	time.Sleep(3 * time.Second)
	began := time.Now()
	end := f.begin(s, t)
	time.Sleep(f.lasts)
	meanwhile := s.said(t)
	end()
	over := time.Now()
	// Ready is then what an operator says that has looked since.
	live.Change(t, s.cluster, func(c *v1alpha1.RedisCluster) { c.Spec.UpdateStrategy.KeysPerSecond++ })
	live.Eventually(t, "the cluster is healthy again", func() error {
		return errors.Join(atRest(t, s.cluster), everyPodServes(t, s.cluster), servesEverywhere(t, s.cluster))
	})
	ready := time.Since(over)
	time.Sleep(3 * time.Second)
	r := load.Stop()
	t.Logf("| %s | %.0f s | %d | %d | %d | %d | %.1f s | %s | %.0f s | %s |", f.name, f.lasts.Seconds(), r.Writes+r.Reads+2*r.Pairs, r.Failed,
		r.Lost, r.Stale, slices.Max(r.GapsMS)/1000, meanwhile, ready.Seconds(),
		s.alerts(t, time.Since(began)))
	if r.Corrupt+r.Torn+r.Unread > 0 {
		t.Errorf("%d values that nobody wrote, %d pairs torn, %d keys unread: %s", r.Corrupt, r.Torn, r.Unread, r.Wrong)
	}
	if f.expects < losses && r.Lost+r.Stale > 0 {
		t.Errorf("%d acknowledged writes lost, %d stale reads: %s", r.Lost, r.Stale, r.Wrong)
	}
	if f.expects < failures && r.Failed > 0 {
		t.Errorf("%d commands failed: %s %s %s", r.Failed, r.Errors, r.Samples, r.Wrong)
	}
	wantHealthy(t, s.cluster, 3, 6)
	load.WantData()
}

// alerts are those whose condition held within a time, also for less than their "for".
func (s *struck) alerts(t *testing.T, within time.Duration) string {
	t.Helper()
	held, err := s.prometheus.Query(t.Context(), fmt.Sprintf(
		`count by (alertname, alertstate) (count_over_time(ALERTS[%.0fs]))`, within.Seconds()))
	if err != nil {
		t.Error(err)
	}
	var list []string
	for _, alert := range held {
		list = append(list, alert.Metric["alertname"]+" "+alert.Metric["alertstate"])
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// said is what the condition Ready says at the end of a fault.
func (s *struck) said(t *testing.T) string {
	if err := live.IsReady(t, s.cluster); err == nil {
		return "True"
	}
	t.Logf("meanwhile %s: %s", s.cluster.Status.Phase, s.cluster.Status.Reason)
	ready := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionReady)
	return fmt.Sprintf("%s, %s", ready.Status, ready.Reason)
}

// ofAll are the networks of all instances.
func (s *struck) ofAll(t *testing.T) []int {
	t.Helper()
	var all []int
	for _, uid := range podUIDs(t, s.cluster) {
		all = append(all, networkOf(t, uid))
	}
	return all
}

func (s *struck) operatorCutOff(t *testing.T) func() {
	return dropPackets(t, []int{networkOf(t, operatorUID(t))}, "OUTPUT -p tcp --dport 6379")
}

func (s *struck) operatorHangs(t *testing.T) func() { return hang(t, "manager", operatorUID(t)) }

func (s *struck) operatorOutOfMemory(t *testing.T) func() {
	exhaustMemory(t, processOf(t, "manager", operatorUID(t)))
	return func() {}
}

// slowAPIServer lets the API server run for 0.3 s of every 10.
func (s *struck) slowAPIServer(t *testing.T) func() {
	return repeatedly(func() {
		_ = signal(syscall.SIGSTOP, "kube-apiserver", "/control-plane/")
		time.Sleep(9700 * time.Millisecond)
		_ = signal(syscall.SIGCONT, "kube-apiserver", "/control-plane/")
		time.Sleep(300 * time.Millisecond)
	})
}

func (s *struck) noDNS(t *testing.T) func() { return hang(t, "coredns", "") }

func (s *struck) nodeWithoutAPIServer(t *testing.T) func() {
	node := "/" + ofRole(t, s.cluster, 0, "master").Hostname + "/"
	return dropPackets(t, []int{processOf(t, "kubelet", node)}, "OUTPUT -p tcp --dport 6443", "FORWARD -p tcp --dport 6443")
}

func (s *struck) losesPackets(t *testing.T) func() {
	return dropPackets(t, s.ofAll(t), "INPUT -m statistic --mode random --probability 0.05")
}

func (s *struck) slowNetwork(t *testing.T) func() {
	all := s.ofAll(t)
	for _, pid := range all {
		within(t, pid, "tc qdisc add dev eth0 root tbf rate 1mbit burst 16kb latency 400ms")
	}
	return func() {
		for _, pid := range all {
			within(t, pid, "tc qdisc del dev eth0 root")
		}
	}
}

// nodeCutOff keeps the pods of a node with one master, where the application is not, from those of others; the API server is reached.
func (s *struck) nodeCutOff(t *testing.T) func() {
	application := podNamed(t, s.cluster.Namespace, "application").Spec.NodeName
	masters := map[string]int{}
	for _, instance := range s.cluster.Status.Nodes {
		if instance.Type == "master" {
			masters[instance.Hostname]++
		}
	}
	for _, instance := range s.cluster.Status.Nodes {
		if masters[instance.Hostname] == 1 && instance.Hostname != application {
			return dropPackets(t, []int{processOf(t, "kubelet", "/"+instance.Hostname+"/")}, "FORWARD -i eth0 -s 10.244.0.0/16",
				"FORWARD -o eth0 -d 10.244.0.0/16")
		}
	}
	t.Fatal("no node without the application has one master")
	return nil
}

// minority leaves a master nobody but the application, and the application nobody but that master.
func (s *struck) minority(t *testing.T) func() {
	alone := ofRole(t, s.cluster, 0, "master").Name
	others := []string{podNamed(t, live.OperatorNamespace, operatorPods(t)[0].Name).Status.PodIP}
	var instances []string
	for _, pod := range podsOf(t, s.cluster) {
		if pod.Name != alone {
			instances = append(instances, pod.Status.PodIP)
		}
	}
	master := networkOf(t, podUIDs(t, s.cluster)[alone])
	application := networkOf(t, string(podNamed(t, s.cluster.Namespace, "application").UID))
	together := dropPackets(t, []int{master}, addressed(append(others, instances...), "INPUT -s", "OUTPUT -d")...)
	apart := dropPackets(t, []int{application}, addressed(instances, "OUTPUT -d")...)
	return func() { together(); apart() }
}

func (s *struck) deafMaster(t *testing.T) func() {
	deaf := ofRole(t, s.cluster, 1, "master").Name
	var others []string
	for _, pod := range podsOf(t, s.cluster) {
		if pod.Name != deaf {
			others = append(others, pod.Status.PodIP)
		}
	}
	return dropPackets(t, []int{networkOf(t, podUIDs(t, s.cluster)[deaf])}, addressed(others, "INPUT -s")...)
}

func (s *struck) masterHangs(t *testing.T) func() {
	return hang(t, "redis-server", podUIDs(t, s.cluster)[ofRole(t, s.cluster, 2, "master").Name])
}

func (s *struck) outOfMemory(t *testing.T, role string) func() {
	exhaustMemory(t, processOf(t, "redis-server", podUIDs(t, s.cluster)[ofRole(t, s.cluster, 1, role).Name]))
	return func() {}
}
