// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Scaffolded are the Go kinds that operator-sdk wrote into cmd/main.go, beside those of this package. Empty is none.
type Scaffolded struct {
	// Scheme knows what AddToScheme adds, and the scaffolded kinds.
	Scheme *runtime.Scheme
	// Add adds their controllers and webhooks.
	Add func(ctrl.Manager)
}

func (s Scaffolded) scheme() (*runtime.Scheme, error) {
	if s.Scheme != nil {
		return s.Scheme, nil
	}
	scheme := runtime.NewScheme()
	return scheme, AddToScheme(scheme)
}

// add adds them. Scaffolded code asks ENABLE_WEBHOOKS whether it is to serve admission: it follows --webhooks.
func (s Scaffolded) add(mgr ctrl.Manager, webhooks bool) error {
	if s.Add == nil {
		return nil
	}
	if err := os.Setenv("ENABLE_WEBHOOKS", fmt.Sprint(webhooks)); err != nil {
		return fmt.Errorf("setting ENABLE_WEBHOOKS: %w", err)
	}
	s.Add(mgr)
	return nil
}
