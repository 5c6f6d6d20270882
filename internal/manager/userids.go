// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/internal/chart"
)

// UserIDMode says who gives pods their user and group IDs.
type UserIDMode string

const (
	// UserIDsAuto leaves them to the platform where OpenShift's SecurityContextConstraints are served, unless --allow-host-path.
	UserIDsAuto UserIDMode = "auto"
	// UserIDsOn leaves them to the platform.
	UserIDsOn UserIDMode = "on"
	// UserIDsOff writes them into the pods.
	UserIDsOff UserIDMode = "off"
)

var securityContextConstraints = schema.GroupVersionKind{Group: "security.openshift.io", Version: "v1", Kind: "SecurityContextConstraints"}

// platformUserIDs is FromPlatform, but for directories of nodes: root hands them to a known user, which needs constraints that allow both.
func (o Options) platformUserIDs(mapper meta.RESTMapper) (bool, error) {
	if o.PlatformUserIDs == UserIDsAuto && o.AllowHostPath {
		return false, nil
	}
	return o.PlatformUserIDs.FromPlatform(mapper)
}

// FromPlatform reports whether pods get their IDs from the platform: auto asks what a cluster serves, and is off without one. Not to know
// is an error: pods would restart, or not start.
func (m UserIDMode) FromPlatform(mapper meta.RESTMapper) (bool, error) {
	if m != UserIDsAuto || mapper == nil {
		return m == UserIDsOn, nil
	}
	_, err := mapper.RESTMapping(securityContextConstraints.GroupKind(), securityContextConstraints.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the API server whether it gives pods their user IDs (%s); --platform-user-ids=on or off tells it: %w",
			securityContextConstraints.Kind, err)
	}
	return true, nil
}

// Validate refuses what is no mode.
func (m UserIDMode) Validate() error {
	if modes := []UserIDMode{UserIDsAuto, UserIDsOn, UserIDsOff}; !slices.Contains(modes, m) {
		return fmt.Errorf("--platform-user-ids: %q is unknown; give auto, on or off", string(m))
	}
	return nil
}

func validateUserIDs(o Options) []error {
	if err := o.PlatformUserIDs.Validate(); err != nil {
		return []error{err}
	}
	if o.PlatformUserIDs == UserIDsOn && o.AllowHostPath {
		return []error{
			errors.New("--platform-user-ids=on: a directory of a node is handed to a user that is known before; leave --allow-host-path out")}
	}
	return nil
}

// told is a chart of the operator's that knows who gives user IDs.
func (w wiring) told(c *chart.Chart) *chart.Chart {
	if w.platformUserIDs {
		return c.WithPlatformUserIDs()
	}
	return c
}

// String, Type and Set make it a flag; `--platform-user-ids=true` and `=false` work too.
func (m *UserIDMode) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *UserIDMode) Type() string { return "auto|on|off" }

// Set implements pflag.Value.
func (m *UserIDMode) Set(value string) error {
	alias := map[string]UserIDMode{"true": UserIDsOn, "false": UserIDsOff}
	*m = cmp.Or(alias[value], UserIDMode(value))
	return nil
}
