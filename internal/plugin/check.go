// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/checkup"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

func (p *program) check() *cobra.Command {
	command := &cobra.Command{
		Use:   "check",
		Short: "whether the cluster has what the operator needs, and you the rights that each command uses",
		Long: "Looks at versions, CustomResourceDefinitions, the operator's Deployment and webhooks, storage classes, and your rights in the\n" +
			"namespace. Exit code: 1 if something is missing. What you may not read is unknown, and fails nothing.",
		Example: "  kubectl middleware check -n shop",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := p.checkOutput(); err != nil {
				return err
			}
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			report := checkup.Of(to.look(command.Context(), namespace))
			for i, result := range report.Results {
				if strings.HasPrefix(result.Remedy, "kubectl ") {
					report.Results[i].Remedy = p.connection.typed(result.Remedy)
				}
			}
			if err := p.print(report, report.Text); err != nil {
				return err
			}
			if report.Failed() {
				return ErrFound
			}
			return nil
		},
	}
	p.outputs(command)
	return command
}

// wanted are the kinds and the versions that this plugin knows.
var wanted = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("RedisCluster"), v1alpha1.GroupVersion.WithKind("RedisBackup"),
	v1alpha1.GroupVersion.WithKind("RedisBackupSchedule"),
	{Group: "controller.controller.daocloud.io", Version: "v1", Kind: "Application"},
	{Group: "appcontroller.middleware.hc.cn", Version: "v1alpha1", Kind: "App"},
	{Group: "stable.example.com", Version: "v1beta1", Kind: "CronTab"}, {Group: "k8s.io", Version: "v1", Kind: "FooBar"},
}

// mostChecked is how many objects of a kind are looked at.
const mostChecked = 500

// look reads what there is to check.
func (c *cluster) look(ctx context.Context, namespace string) checkup.Seen {
	seen := checkup.Seen{Namespace: namespace, Plugin: Version, Unread: map[string]string{}}
	note := func(area string, err error) {
		if err != nil {
			seen.Unread[area] = err.Error()
		}
	}
	if asked, err := discovery.NewDiscoveryClientForConfig(c.config); err != nil {
		note("versions", err)
	} else if server, err := asked.ServerVersion(); err != nil {
		note("versions", err)
	} else {
		seen.Server = server.GitVersion
	}
	for _, kind := range wanted {
		seen.Kinds = append(seen.Kinds, c.versions(kind))
	}
	var deployments appsv1.DeploymentList
	note("operator", c.List(ctx, &deployments, client.MatchingLabels(checkup.Selector), client.Limit(mostChecked)))
	seen.Deployments = deployments.Items
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	note("webhooks", c.List(ctx, &validating, client.Limit(mostChecked)))
	seen.Validating = validating.Items
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	note("webhooks", c.List(ctx, &mutating, client.Limit(mostChecked)))
	seen.Mutating = mutating.Items
	var classes storagev1.StorageClassList
	note("storage", c.List(ctx, &classes, client.Limit(mostChecked)))
	seen.Classes = classes.Items
	var bindings rbacv1.RoleBindingList
	note("secrets", c.List(ctx, &bindings, client.InNamespace(namespace), client.Limit(mostChecked)))
	seen.Bindings = bindings.Items
	for _, right := range checkup.Rights() {
		seen.Allowed = append(seen.Allowed, c.allowed(ctx, namespace, right))
	}
	return seen
}

// versions are those in which the server serves a kind.
func (c *cluster) versions(kind schema.GroupVersionKind) checkup.Kind {
	found := checkup.Kind{Name: kind.GroupKind().String(), Wanted: kind.Version}
	mappings, err := c.RESTMapper().RESTMappings(kind.GroupKind())
	if err != nil && !meta.IsNoMatchError(err) {
		found.Versions = []string{fmt.Sprintf("unknown (%v)", err)}
	}
	for _, mapping := range mappings {
		found.Versions = append(found.Versions, mapping.GroupVersionKind.Version)
	}
	return found
}

// allowed asks the API server whether the user has a right. Everybody may ask that of himself.
func (c *cluster) allowed(ctx context.Context, namespace string, right checkup.Right) checkup.Answer {
	resource, sub, _ := strings.Cut(right.Resource, "/")
	attributes := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: right.Verb, Group: right.Group, Resource: resource,
		Subresource: sub}
	if right.ClusterWide {
		attributes.Namespace = ""
	}
	answer := checkup.Answer{Right: right}
	var err error
	if answer.Allowed, err = c.may(ctx, attributes); err != nil {
		answer.Unknown = terminal.Clean(err.Error())
	}
	return answer
}

// may asks the API server for a right of the user.
func (c *cluster) may(ctx context.Context, attributes *authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}
