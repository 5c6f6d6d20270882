// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm installs, upgrades and removes the operator as its users do: through a real Operator Lifecycle Manager, from a
// catalog and with `operator-sdk run bundle`. It needs what hack/test-olm.sh prepares (make test-olm).
package olm

import (
	"fmt"
	"os"
	"testing"

	"middleware.hc.cn/operator/test/live"
)

// given is what hack/test-olm.sh has prepared.
var given struct {
	// SDK is the program operator-sdk.
	sdk string
	// registry serves the cluster's images to programs of the host, over HTTPS with a certificate of the authority in ca.
	registry, ca string
	// current and previous are versions of the operator, of which the cluster has bundles and catalogs: that of the previous
	// version holds it alone, that of the current one both.
	current, previous string
	// bundle is the folder of the current version's bundle.
	bundle string
	// opm, untar and storage are images that operator-sdk needs.
	opm, untar, storage string
}

func TestMain(m *testing.M) {
	for name, to := range map[string]*string{
		"OLM_SDK": &given.sdk, "OLM_REGISTRY": &given.registry, "OLM_CA": &given.ca, "OLM_CURRENT": &given.current,
		"OLM_PREVIOUS": &given.previous,
		"OLM_BUNDLE":   &given.bundle, "OLM_OPM_IMAGE": &given.opm, "OLM_UNTAR_IMAGE": &given.untar, "OLM_STORAGE_IMAGE": &given.storage,
	} {
		if *to = os.Getenv(name); *to == "" {
			fmt.Fprintf(os.Stderr, "tests on OLM: %s is not set; run them with make test-olm\n", name)
			os.Exit(1)
		}
	}
	if err := live.Connect(); err != nil {
		fmt.Fprintf(os.Stderr, "tests on OLM: %v; run them with make test-olm\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// catalogImage is the catalog of a version.
func catalogImage(version string) string { return "middleware.hc.cn/operator-catalog:v" + version }

// bundleImage is the bundle of a version, as programs of the host and OLM's pods find it.
func bundleImage(version string) string {
	return given.registry + "/middleware.hc.cn/operator-bundle:v" + version
}

// csvName is the ClusterServiceVersion of a version.
func csvName(version string) string { return "middleware-operator.v" + version }
