// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package addon holds the manifests that every cluster starts with.
package addon

import (
	_ "embed"
	"strings"

	"middleware.hc.cn/operator/test/cluster/internal/address"
	"middleware.hc.cn/operator/test/cluster/internal/config"
	"middleware.hc.cn/operator/test/cluster/internal/storage"
)

//go:embed coredns.yaml
var coreDNS string

//go:embed metrics-server.yaml
var metricsServer string

//go:embed storage.yaml
var storageClass string

// Base are the storage class and CoreDNS.
func Base() string { return fill(storageClass + "\n---\n" + coreDNS) }

// MetricsServer serves the metrics API.
func MetricsServer() string { return fill(metricsServer) }

func fill(manifest string) string {
	return strings.NewReplacer(
		"${COREDNS_IMAGE}", config.CoreDNSImage,
		"${METRICS_SERVER_IMAGE}", config.MetricsServerImage,
		"${DNS_SERVICE}", address.DNSService,
		"${PROVISIONER}", storage.Provisioner,
		"${STORAGE_CLASS}", storage.Class,
	).Replace(manifest)
}
