// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load is what `kubectl middleware top` shows: how much each instance of a RedisCluster does, by what its server says (INFO). It
// is pure.
package load

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/overview"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// Cluster is what the instances do. Its JSON is what `-o json` prints.
type Cluster struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Instances []Instance `json:"instances"`
}

// Instance is what one does. Figures that its server has not told are absent.
type Instance struct {
	Name  string `json:"name"`
	Shard int32  `json:"shard"`
	// Role is master or replica; empty when it is not known.
	Role string `json:"role,omitempty"`
	// Answered reports whether the server has told anything.
	Answered bool `json:"answered"`
	// Operations are commands a second, UsedMemory and MaxMemory bytes (MaxMemory 0: no limit of its own), Clients connections.
	Operations *int64 `json:"operationsPerSecond,omitempty"`
	UsedMemory *int64 `json:"usedMemory,omitempty"`
	MaxMemory  *int64 `json:"maxMemory,omitempty"`
	Clients    *int64 `json:"clients,omitempty"`
	// Hits and Misses are reads of keys that were there and that were not, since the server started.
	Hits   *int64 `json:"hits,omitempty"`
	Misses *int64 `json:"misses,omitempty"`
}

// port is where an instance is asked.
const port = 6379

// Addresses are those of the instances, each followed by its port: what asks them tells them the password. So an address of the status
// counts only where a pod of that name has it, which the StatefulSet of its shard has made.
func Addresses(cluster *v1alpha1.RedisCluster, pods []corev1.Pod) []string {
	var all []string
	for _, node := range cluster.Status.Nodes {
		at, err := netip.ParseAddrPort(node.Instance)
		if err == nil && at.Port() == port && slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return pod.Name == node.Name && Own(cluster, &pod) && has(&pod, at.Addr())
		}) {
			all = append(all, at.Addr().String(), strconv.Itoa(port))
		}
	}
	return all
}

// Own reports whether a pod is an instance that a StatefulSet of the RedisCluster has made.
func Own(cluster *v1alpha1.RedisCluster, pod *corev1.Pod) bool {
	shard, _, is := cluster.InstanceOf(pod.Name)
	by := metav1.GetControllerOf(pod)
	return is && pod.Namespace == cluster.Namespace && pod.Labels[v1alpha1.LabelCluster] == cluster.Name && by != nil &&
		by.APIVersion == appsv1.SchemeGroupVersion.String() && by.Kind == "StatefulSet" && by.Name == cluster.ShardName(shard)
}

// has reports whether an address is the pod's own.
func has(pod *corev1.Pod, address netip.Addr) bool {
	return slices.ContainsFunc(append(pod.Status.PodIPs, corev1.PodIP{IP: pod.Status.PodIP}), func(of corev1.PodIP) bool {
		own, err := netip.ParseAddr(of.IP)
		return err == nil && own == address
	})
}

// longestLine is how long a line of a server may be: one that is longer is left out.
const longestLine = 64 << 10

// Of is what servers said, each behind a line with a mark that they do not know and the address as the status has it. Addresses that the
// status does not have are nobody's, and what is no instance of the RedisCluster is left out.
func Of(cluster *v1alpha1.RedisCluster, mark, said string) Cluster {
	c := Cluster{Namespace: cluster.Namespace, Name: cluster.Name, Instances: []Instance{}}
	at := map[string]int{}
	for _, node := range cluster.Status.Nodes {
		if _, _, is := cluster.InstanceOf(node.Name); !is {
			continue
		}
		in := Instance{Name: node.Name, Shard: node.Shard}
		switch node.Type {
		case "master":
			in.Role = "master"
		case "slave":
			in.Role = "replica"
		}
		c.Instances = append(c.Instances, in)
		if address, err := netip.ParseAddrPort(node.Instance); err == nil {
			at[fmt.Sprint(address.Addr(), " ", address.Port())] = len(c.Instances)
		}
	}
	var of *Instance
	for line := range strings.SplitSeq(said, "\n") {
		if len(line) > longestLine {
			continue
		}
		line = strings.TrimSuffix(line, "\r")
		if address, begins := strings.CutPrefix(line, mark+" "); begins {
			of = nil
			if i := at[address]; i > 0 {
				of = &c.Instances[i-1]
			}
			continue
		}
		if name, value, is := strings.Cut(line, ":"); is && of != nil {
			of.note(name, value)
		}
	}
	slices.SortStableFunc(c.Instances, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Role, b.Role), cmp.Compare(len(a.Name), len(b.Name)),
			cmp.Compare(a.Name, b.Name))
	})
	return c
}

// note takes a figure of INFO.
func (in *Instance) note(name, value string) {
	to, is := map[string]**int64{"instantaneous_ops_per_sec": &in.Operations, "used_memory": &in.UsedMemory, "maxmemory": &in.MaxMemory,
		"connected_clients": &in.Clients, "keyspace_hits": &in.Hits, "keyspace_misses": &in.Misses}[name]
	if !is {
		return
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
		*to, in.Answered = &n, true
	}
}

// Text is the load on a page: the busiest are not sought here, so the order is that of the shards.
func (c Cluster) Text(page terminal.Page) string {
	page = page.Sized()
	var rows [][]terminal.Cell
	head := []string{"INSTANCE", "ROLE", "OPS/S", "MEMORY", "OF", "CLIENTS", "HITS"}
	var row []terminal.Cell
	for _, name := range head {
		row = append(row, terminal.Of(name).In(terminal.Faint))
	}
	rows = append(rows, row)
	total, answered := Instance{Name: "all", Answered: true}, 0
	for _, in := range c.Instances {
		rows = append(rows, in.row())
		if in.Answered {
			answered++
			total.add(in)
		}
	}
	all := total.row()
	for i := range all {
		all[i] = all[i].In(terminal.Head)
	}
	text := page.Paint("RedisCluster "+terminal.Clean(c.Namespace+"/"+c.Name), terminal.Head) + "\n" + page.Table("  ", append(rows, all))
	if missing := len(c.Instances) - answered; missing > 0 {
		text += page.Paragraph("", fmt.Sprintf("%d of %d instances have not answered", missing, len(c.Instances)), terminal.Warn)
	}
	return text
}

// add counts an instance to all. A sum that is too large is the largest.
func (in *Instance) add(other Instance) {
	sum := func(to **int64, more *int64) {
		if more == nil {
			return
		}
		if *to == nil {
			*to = new(int64)
		}
		if **to += *more; **to < 0 {
			**to = 1<<63 - 1
		}
	}
	sum(&in.Operations, other.Operations)
	sum(&in.UsedMemory, other.UsedMemory)
	sum(&in.Clients, other.Clients)
	sum(&in.Hits, other.Hits)
	sum(&in.Misses, other.Misses)
}

func (in Instance) row() []terminal.Cell {
	figure := func(n *int64) terminal.Cell {
		if n == nil {
			return terminal.Of("-")
		}
		return terminal.Of(strconv.FormatInt(*n, 10))
	}
	bytes := func(n *int64) terminal.Cell {
		if n == nil || *n == 0 {
			return terminal.Of("-")
		}
		return terminal.Of(overview.Size(*resource.NewQuantity(*n, resource.BinarySI)))
	}
	memory := bytes(in.UsedMemory)
	if in.UsedMemory != nil && in.MaxMemory != nil && *in.MaxMemory > 0 && *in.UsedMemory/9 >= *in.MaxMemory/10 {
		memory.Style = terminal.Warn
	}
	hits := "-"
	if in.Hits != nil && in.Misses != nil && *in.Hits+*in.Misses > 0 {
		hits = fmt.Sprintf("%.1f%%", 100*float64(*in.Hits)/(float64(*in.Hits)+float64(*in.Misses)))
	}
	return []terminal.Cell{terminal.Of(in.Name), terminal.Of(cmp.Or(in.Role, "-")), figure(in.Operations), memory, bytes(in.MaxMemory),
		figure(in.Clients), terminal.Of(hits)}
}
