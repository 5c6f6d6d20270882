// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helmcharts embeds the charts of this directory, one directory a kind.
package helmcharts

import "embed"

// FS holds every chart below its directory's name, such as crontab/Chart.yaml.
// The pattern takes whole directories, files that begin with "_" included, so
// that a new chart needs no change here.
//
//go:embed all:*
var FS embed.FS
