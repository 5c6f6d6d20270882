// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"encoding/base64"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/internal/chart"
)

// kinds are what charts and Applications here make.
var kinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"},
}

var aPassword = regexp.MustCompile(`password: "\w{30}"`)

// normalise takes out what differs of these kinds, and makes the record of a revision readable.
func normalise(object *unstructured.Unstructured) error {
	for _, path := range [][]string{
		{"metadata", "labels", "createdAt"}, {"status", "startTime"}, {"status", "completionTime"},
		// How often something was seen, and a digest that the UID of the Deployment is part of.
		{"status", "count"}, {"status", "observed"},
		// What is left of the time that a backup has, when it was taken, and how many Jobs were seen.
		{"spec", "activeDeadlineSeconds"}, {"status", "jobs"}, {"status", "markedAt"}, {"status", "endedAt"},
		{"status", "deployedRelease", "turn", "time"}, {"status", "deployedRelease", "turn", "doneTime"},
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	if object.GetKind() != "Secret" {
		return nil
	}
	encoded, _, _ := unstructured.NestedString(object.Object, "data", "release")
	if encoded == "" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return err
	}
	release, err := chart.DecodeRelease(data)
	if err != nil {
		return err
	}
	manifest := release.Rendered.Manifest
	if release.Status == chart.StatusSuperseded {
		manifest = aPassword.ReplaceAllString(manifest, "FORMER PASSWORD") // what is there now does not say which it was
	}
	object.Object["data"] = map[string]any{"chart": release.ChartName + " " + release.ChartVersion, "revision": int64(release.Revision),
		"status": string(release.Status), "description": release.Description,
		"manifest": manifest, "hooks": int64(len(release.Rendered.Hooks)), "notes": release.Rendered.Notes}
	return nil
}
