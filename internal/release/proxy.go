// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// withProxy appends the operator's own proxy variables to a list of environment variables among the values. A variable that the
// author set, in capitals or not, stays; and where the author takes variables from elsewhere (NAMEFrom) nothing is added, because
// it would go before what they hold. Without such variables the values, and so the release, are as they are.
func withProxy(values map[string]any, name string, proxy []corev1.EnvVar) {
	if from, _ := values[name+"From"].([]any); name == "" || len(from) > 0 {
		return
	}
	list, is := values[name].([]any)
	if !is && values[name] != nil {
		return // it is wrong, which the chart's schema says
	}
	set := map[string]bool{}
	for _, variable := range list {
		if fields, is := variable.(map[string]any); is {
			named, _ := fields["name"].(string)
			set[strings.ToUpper(named)] = true
		}
	}
	for _, variable := range proxy {
		if !set[strings.ToUpper(variable.Name)] {
			list = append(list, map[string]any{"name": variable.Name, "value": variable.Value})
		}
	}
	if len(list) > 0 {
		values[name] = list
	}
}
