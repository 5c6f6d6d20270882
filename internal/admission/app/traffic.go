// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/rules"
)

// canaryPrefix begins the annotations by which ingress-nginx splits traffic; spec.canary sets them.
const canaryPrefix = "nginx.ingress.kubernetes.io/canary"

var (
	// pathCharacters are those of RFC 3986 without the semicolon and the quote:
	// an Ingress controller writes a path into its configuration.
	pathCharacters = regexp.MustCompile(`^/[A-Za-z0-9/._~%!$&()*+,=:@-]*$`)
	// httpRoutePath is what the Gateway API refuses besides, because proxies read it in more than one way.
	httpRoutePath = regexp.MustCompile(`//|/\.{1,2}(/|$)|%(?i:2f)|%([^0-9A-Fa-f]|$)|%.([^0-9A-Fa-f]|$)`)
	headerName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)
	headerValue   = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)
)

func httpPath(at *field.Path, path string) field.ErrorList {
	if pathCharacters.MatchString(path) {
		return nil
	}
	return field.ErrorList{
		field.Invalid(at, path, "must begin with a slash and hold only characters of a URL path (no space, quote, semicolon or brace)")}
}

func ingress(at *field.Path, spec *v1alpha1.AppSpec) field.ErrorList {
	in := &spec.Ingress
	refused := ingressAnnotations(at.Child("annotations"), in.Annotations)
	if in.Path != "" {
		refused = append(refused, httpPath(at.Child("path"), in.Path)...)
	}
	refused = append(refused, rules.OneOf(at.Child("pathType"), in.PathType, "Prefix", "Exact", "ImplementationSpecific")...)
	refused = append(refused, subdomain(at.Child("className"), in.ClassName)...)
	refused = append(refused, subdomain(at.Child("tlsSecretName"), in.TLSSecretName)...)
	if in.Host != "" {
		refused = append(refused, host(at.Child("host"), in.Host)...)
	}
	refused = append(refused, gateway(at, in)...)
	if !ptr.Deref(in.Enabled, false) {
		return refused
	}
	if in.Host == "" {
		refused = append(refused, field.Required(at.Child("host"),
			"name the host that the Ingress answers for, such as app.example.com: without one it would receive the requests of every host"))
	}
	if !ptr.Deref(spec.Service.Enabled, true) {
		refused = append(refused, field.Invalid(at.Child("enabled"), true, "an Ingress leads to a Service; set spec.service.enabled to true"))
	}
	if spec.Ports != nil && len(spec.Ports) == 0 {
		refused = append(refused, field.Invalid(at.Child("enabled"), true, "an Ingress leads to the first port; add one to spec.ports"))
	}
	return refused
}

// gateway checks what an HTTPRoute of the Gateway API must hold to, so that an App is not refused later, when the cluster begins to
// serve that kind.
func gateway(at *field.Path, in *v1alpha1.Ingress) field.ErrorList {
	if in.Gateway == nil {
		return nil
	}
	to := at.Child("gateway")
	refused := subdomain(to.Child("name"), in.Gateway.Name)
	if in.Gateway.Name == "" {
		refused = append(refused, field.Required(to.Child("name"), "name the Gateway, or remove spec.ingress.gateway for an Ingress"))
	}
	if namespace := in.Gateway.Namespace; namespace != "" {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			refused = append(refused, field.Invalid(to.Child("namespace"), namespace, problem))
		}
	}
	refused = append(refused, subdomain(to.Child("sectionName"), in.Gateway.SectionName)...)
	if pathCharacters.MatchString(in.Path) && httpRoutePath.MatchString(in.Path) {
		refused = append(refused, field.Invalid(at.Child("path"), in.Path,
			"a path of the Gateway API holds no //, /./, /../ or %2F, and two hexadecimal digits after each %; remove it, or remove spec.ingress.gateway"))
	}
	return refused
}

func host(at *field.Path, host string) field.ErrorList {
	check := validation.IsDNS1123Subdomain
	if strings.HasPrefix(host, "*") {
		check = validation.IsWildcardDNS1123Subdomain
	}
	var refused field.ErrorList
	for _, problem := range check(host) {
		refused = append(refused, field.Invalid(at, host, problem))
	}
	return refused
}

func subdomain(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return nil
	}
	var refused field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		refused = append(refused, field.Invalid(at, name, problem))
	}
	return refused
}

// ingressAnnotations refuses what an Ingress controller would take as lines of its
// own configuration, which it shares with every other tenant.
func ingressAnnotations(at *field.Path, annotations map[string]string) field.ErrorList {
	refused := rules.Annotations(at, annotations)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value := annotations[key]
		switch {
		case strings.HasSuffix(key, "-snippet"):
			refused = append(refused, field.Forbidden(at.Key(key), "a snippet becomes configuration of the shared Ingress controller; remove it"))
		case strings.HasPrefix(key, canaryPrefix):
			refused = append(refused, field.Forbidden(at.Key(key), "use spec.canary instead"))
		case strings.ContainsAny(value, "\r\n"):
			refused = append(refused, field.Invalid(at.Key(key), value, "must not hold a line break"))
		}
	}
	return refused
}

func canary(at *field.Path, c *v1alpha1.Canary) field.ErrorList {
	if c == nil {
		return nil
	}
	refused := rules.Image(at.Child("image"), c.Image)
	refused = append(refused, rules.Range(at.Child("weight"), c.Weight, 0, 100)...)
	if c.Header != "" && !headerName.MatchString(c.Header) {
		refused = append(refused, field.Invalid(at.Child("header"), c.Header, "must hold only letters, digits and hyphens, such as X-Canary"))
	}
	if c.HeaderValue != "" && !headerValue.MatchString(c.HeaderValue) {
		refused = append(refused, field.Invalid(at.Child("headerValue"), c.HeaderValue, "must hold only letters, digits and ._~-"))
	}
	if c.HeaderValue != "" && c.Header == "" {
		refused = append(refused, field.Required(at.Child("header"), fmt.Sprintf("name the header whose value is to be %q", c.HeaderValue)))
	}
	return refused
}
