// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// AddToScheme adds Kubernetes' own kinds, the operator's five, CustomResourceDefinitions and OLM's conditions.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme,
		apiextensionsv1.AddToScheme,
		operatorsv2.AddToScheme,
		redisv1alpha1.AddToScheme,
		applicationv1.AddToScheme,
		appv1alpha1.AddToScheme,
		crontabv1beta1.AddToScheme,
		foobarv1.AddToScheme,
	)
	if err := builder.AddToScheme(scheme); err != nil {
		return fmt.Errorf("making the scheme: %w", err)
	}
	return nil
}
