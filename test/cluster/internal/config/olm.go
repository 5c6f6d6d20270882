// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config

// Images of OLM and of the programs around it, named as the public ones of the
// versions that hack/tools pins. The recipes are in internal/image.
const (
	OLMImage              = "quay.io/operator-framework/olm:v0.45.0"
	OPMImage              = "quay.io/operator-framework/opm:v1.72.0"
	OPMImageLatest        = "quay.io/operator-framework/opm:latest"
	ScorecardTestImage    = "quay.io/operator-framework/scorecard-test:v1.42.2"
	ScorecardUntarImage   = "quay.io/operator-framework/scorecard-untar:v1.42.2"
	ScorecardStorageImage = "quay.io/operator-framework/scorecard-storage:v1.42.2"
	// UBIImage is compiled into operator-sdk v1.42.2 as the default of run bundle's
	// --decompression-image, and bundle-upgrade has no such flag.
	UBIImage = "registry.access.redhat.com/ubi9/ubi:9.7"
)
