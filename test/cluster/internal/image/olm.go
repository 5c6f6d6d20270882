// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import "middleware.hc.cn/operator/test/cluster/internal/config"

// olmRecipes are the images of OLM itself and those that catalogs, operator-sdk
// and scorecard take for granted.
func olmRecipes() []Recipe {
	return []Recipe{
		withShell(Recipe{
			Name: "olm", Names: []string{config.OLMImage},
			// Jobs that unpack bundles run /bin/cp of this image: busybox'.
			Tools: map[string]string{
				"/usr/bin/olm":            "olm/olm",
				"/usr/bin/catalog":        "olm/catalog",
				"/usr/bin/package-server": "olm/package-server",
				"/usr/bin/copy-content":   "olm/copy-content",
				"/usr/bin/cpb":            "olm/cpb",
			},
			Entrypoint: []string{"/bin/olm"}, User: "1001", WorkDir: "/",
		}),
		withShell(Recipe{
			Name: "opm", Names: []string{config.OPMImage, config.OPMImageLatest},
			Tools: map[string]string{
				"/usr/bin/opm":               "opm/opm",
				"/usr/bin/grpc_health_probe": "olm/grpc-health-probe",
			},
			// With the label and the folder it is a catalog without packages, which
			// `operator-sdk run bundle --index-image` can add a bundle to.
			Folders: []string{"/configs"},
			Labels:  map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},

			Entrypoint: []string{"/bin/opm"}, User: "1001", WorkDir: "/",
		}),
		withShell(Recipe{
			Name: "scorecard-test", Names: []string{config.ScorecardTestImage},
			Tools:      map[string]string{"/usr/local/bin/scorecard-test": "operator-sdk/scorecard-test"},
			Entrypoint: []string{"/usr/local/bin/scorecard-test"}, User: "1001", WorkDir: "/",
		}),
		// What `operator-sdk run bundle` unpacks its catalog with.
		withShell(Recipe{Name: "ubi", Names: []string{config.UBIImage}, Cmd: []string{"sh"}}),
		// What scorecard unpacks the bundle with, and keeps files with: it needs
		// tar, gzip and no entrypoint. Its defaults are named by digests that
		// nothing built here has, hence names of our own.
		withShell(Recipe{
			Name: "scorecard-untar", Names: []string{config.ScorecardUntarImage, config.ScorecardStorageImage},
			Cmd: []string{"sh"}, User: "1001", WorkDir: "/tmp",
		}),
	}
}

// withShell makes an image for OLM that has busybox for a shell.
func withShell(r Recipe) Recipe {
	r.OLM, r.Suite, r.Package = true, "trixie", busybox
	return r
}
