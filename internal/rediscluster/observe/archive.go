// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/pods"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const (
	// archiveEvery is how often a pod that writes an archive is asked at most, archiveWithin how long it may take to answer.
	archiveEvery, archiveWithin = 30 * time.Second, time.Second
)

// archiveMemory is what the pod that writes the archive said last, when that was and when it was asked, and what is known of the Secrets.
type archiveMemory struct {
	said      *report.Archive
	at, asked time.Time
	location  string // that this is about

	replicaSets replicaSets

	withheld   string
	read       byname.Reading
	generation int64
}

// archive reads who writes the archive of the cluster, and how far it is; nil when none is asked for. held is how long the pod kept the
// operator waiting.
func (o *Observer) archive(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) (_ *snapshot.Archive, held time.Duration,
	_ error) {
	if cluster.Archive() == nil {
		m.archive = archiveMemory{}
		return nil, 0, nil
	}
	var list corev1.PodList
	err := o.Children.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelArchive: cluster.Name})
	if err != nil {
		return nil, 0, fmt.Errorf("list the pods of the archive: %w", err)
	}
	if is := backupjob.Store(cluster.ArchiveLocation()); m.archive.location != is {
		m.archive.said, m.archive.asked, m.archive.location = nil, time.Time{}, is
	}
	a := &snapshot.Archive{}
	writers := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !writesArchive(cluster, &pod) })
	writers, _ = o.deployed(ctx, cluster, cluster.ArchiveWorkload(), writers, &m.archive.replicaSets)
	if pod := newest(writers); pod != nil {
		ready := pods.Ready(pod) && pod.DeletionTimestamp == nil
		waits := strings.TrimPrefix(backupjob.Why(pod), "pod "+pod.Name+" ") // which is said beside it
		*a = snapshot.Archive{Pod: pod.Name, Ready: ready, Waiting: waits, Ended: endedBadly(pod)}
		if address := pod.Status.PodIP; o.Ask != nil && address != "" && o.now().Sub(m.archive.asked) >= archiveEvery {
			began := o.now()
			m.archive.asked = began
			if said := o.askArchive(ctx, cluster, address); said != nil {
				m.archive.said, m.archive.at = said, began
			}
			held = o.now().Sub(began)
		}
	}
	a.Said, a.SaidAt = m.archive.said, m.archive.at
	return a, held, nil
}

// writesArchive reports whether a pod may be one that writes the archive where it is asked for, by its owner's name and what it runs:
// labels are anybody's to write.
func writesArchive(cluster *v1alpha1.RedisCluster, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.Name, cluster.ArchiveWorkload()+"-") &&
		!pod.Spec.HostNetwork && backupjob.For(pod.Spec, string(cluster.UID), backupjob.Archive) &&
		slices.Contains(backupjob.Of(pod.Spec).Args, backupjob.Store(cluster.ArchiveLocation()))
}

// newest is the pod that was made last; nil: there is none.
func newest(list []corev1.Pod) *corev1.Pod {
	var last *corev1.Pod
	for i := range list {
		if last == nil || last.CreationTimestamp.Before(&list[i].CreationTimestamp) {
			last = &list[i]
		}
	}
	return last
}

// endedBadly is what the program said when it last ended with an error.
func endedBadly(pod *corev1.Pod) string {
	const longest = 500
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != backupjob.Container {
			continue
		}
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if t := state.Terminated; t != nil && t.ExitCode != 0 {
				lines := strings.Split(strings.TrimSpace(t.Message), "\n") // of a log, the last one is why
				return excerpt.Of(lines[len(lines)-1], longest)
			}
		}
	}
	return ""
}

// askArchive is what a pod says; nil: nothing that can be believed.
func (o *Observer) askArchive(ctx context.Context, cluster *v1alpha1.RedisCluster, ip string) *report.Archive {
	ctx, cancel := context.WithTimeout(ctx, archiveWithin)
	defer cancel()
	text, err := o.Ask(ctx, net.JoinHostPort(ip, strconv.Itoa(backupjob.StatusPort)))
	if err != nil {
		return nil
	}
	said, err := report.ParseArchive(text)
	if err != nil || said.Request != string(cluster.UID) {
		return nil
	}
	return &said
}

// ArchiveWithheld says, with a field path and a remedy, why the Deployment that writes the archive may not be written now; empty when it
// may. Who may write RedisClusters chooses where its pod connects to, and may not read every Secret. What was found is believed until
// that changes, or for a minute where nobody tells.
func (o *Observer) ArchiveWithheld(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) string {
	a := &m.archive
	if a.generation == cluster.Generation && o.fresh(a.read) {
		return a.withheld
	}
	reads := &byname.Reads{Reader: o.Secrets}
	why, err := o.archiveWithheld(ctx, cluster, o.readerFrom(reads))
	if err != nil {
		return fmt.Sprintf("the Secrets of the archive cannot be read now: %v", err)
	}
	a.withheld, a.read, a.generation = why, reads.At(o.now()), cluster.Generation
	return why
}

func (o *Observer) archiveWithheld(ctx context.Context, cluster *v1alpha1.RedisCluster, reader access.Reader) (string, error) {
	if o.BackupImage == "" {
		return "the operator does not know its own image, which writes archives: run it in a pod, or name the image with --backup-image", nil
	}
	if cluster.AuthEnabled() {
		if why, err := reader.BackupReady(ctx, cluster); why != "" || err != nil {
			return why, err
		}
	}
	needed := backupjob.Needs(cluster.Spec.Backup.Store, "spec.backup.store", v1alpha1.LabelBackup)
	if _, secured := cluster.ClientTLS(); secured {
		needed = slices.Insert(needed, 0, backupjob.NeedsOfTLS(cluster, "spec.tls")...)
	}
	return reader.Usable(ctx, cluster.Namespace, needed...)
}
