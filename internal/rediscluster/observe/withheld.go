// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/overlay"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Withheld says why no StatefulSet may be written now; nil when every object that one names
// was looked at just now and may go into pods. Who may write RedisClusters chooses the images that
// see it, and may not read every Secret. What was refused is looked at again within a minute. Those of spec.tls count while StatefulSets
// mount them.
func (o *Observer) Withheld(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, mountTLS bool) *snapshot.Withheld {
	if cluster.AuthEnabled() {
		why, err := o.reader().Mountable(ctx, cluster)
		if err != nil {
			why = fmt.Sprintf("the Secret of the password cannot be read now: %v", err)
		}
		if why != "" {
			m.access.Expire() // so that the next reconciliation sees it, and makes it if it is gone
			return &snapshot.Withheld{Cause: "PasswordUnavailable", Message: why}
		}
	}
	if why := o.overlayWithheld(ctx, cluster, m); why != "" {
		return &snapshot.Withheld{Cause: "OverlayUnavailable", Message: why}
	}
	if !mountTLS {
		return nil
	}
	c := &m.certificate
	if c.problem == "" || !o.freshCertificate(cluster, c) {
		if err := o.lookAtCertificate(ctx, cluster, c); err != nil {
			return &snapshot.Withheld{Cause: "CertificateUnavailable", Message: fmt.Sprintf("the Secrets of spec.tls cannot be read now: %v", err)}
		}
	}
	if !c.denied && c.names == namesOf(cluster) {
		return nil // a certificate that expired is no reason not to put back what was there
	}
	return &snapshot.Withheld{Cause: "CertificateUnavailable", Message: c.problem}
}

// overlayMemory is why what an overlay names may not go into pods; empty: it may.
type overlayMemory struct {
	problem    string
	read       byname.Reading
	generation int64
}

// overlayWithheld says, with a field path and a remedy, which object that the overlay names may not go into pods; empty when all may.
func (o *Observer) overlayWithheld(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) string {
	last := &m.overlay
	if last.problem != "" && last.generation == cluster.Generation && o.fresh(last.read) {
		return last.problem
	}
	named, _ := overlay.Read(cluster.Spec.Template()) // nothing is rendered of one that is refused
	var needed []access.Needed
	for _, r := range overlay.References(named) {
		needed = append(needed, access.Needed{Field: overlay.Path.Child(r.Field).String(), Name: r.Name, Label: v1alpha1.LabelPod, Kind: r.Kind})
	}
	reads := &byname.Reads{Reader: o.Secrets}
	why, err := o.readerFrom(reads).Usable(ctx, cluster.Namespace, needed...)
	if err != nil {
		*last = overlayMemory{}
		return fmt.Sprintf("what spec.pod[0].overlay names cannot be looked at now: %v", err)
	}
	*last = overlayMemory{problem: why, read: reads.At(o.now()), generation: cluster.Generation}
	return why
}
