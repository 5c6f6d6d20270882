// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// Oldest is the oldest Kubernetes that the operator supports: minKubeVersion of its bundle.
const Oldest = "1.30.0"

// names of the operator's own objects, as config/ has them.
const (
	label         = "app.kubernetes.io/name"
	product       = "middleware-operator"
	namespaceRole = "middleware-operator-namespace"
)

// Selector selects the operator's own objects.
var Selector = map[string]string{label: product}

// Seen is what was read. A list that could not be read is nil, and Unread says why, by what it is of.
type Seen struct {
	Namespace      string
	Plugin, Server string
	// Kinds are those of the operator, with the versions that the cluster serves; none: the kind is not there.
	Kinds       []Kind
	Deployments []appsv1.Deployment
	Validating  []admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating    []admissionregistrationv1.MutatingWebhookConfiguration
	Classes     []storagev1.StorageClass
	Bindings    []rbacv1.RoleBinding
	// Allowed are the rights that were asked for, in the order of Rights.
	Allowed []Answer
	Unread  map[string]string
}

// Kind is a kind and the versions in which it is served.
type Kind struct {
	Name     string
	Versions []string
	// Wanted is the version that this plugin knows.
	Wanted string
}

// Answer is whether the user has a right; Unknown is why that could not be asked.
type Answer struct {
	Right
	Allowed bool
	Unknown string
}

// State is what became of a check.
type State string

// The states.
const (
	OK      State = "ok"
	Missing State = "missing"
	Warn    State = "warning"
	Unknown State = "unknown"
)

// Result is one check.
type Result struct {
	Area    string `json:"area"`
	State   State  `json:"state"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Report is all of them. Its JSON is what `-o json` prints.
type Report struct {
	Namespace string   `json:"namespace"`
	Results   []Result `json:"results"`
}

// Of makes the report.
func Of(seen Seen) Report {
	r := Report{Namespace: seen.Namespace}
	r.versions(seen)
	r.kinds(seen)
	r.operator(seen)
	r.webhooks(seen)
	r.storage(seen)
	r.secrets(seen)
	r.rights(seen)
	return r
}

// Failed reports whether something is missing.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Results, func(result Result) bool { return result.State == Missing })
}

func (r *Report) add(area string, state State, remedy, format string, arguments ...any) {
	r.Results = append(r.Results, Result{Area: area, State: state, Remedy: remedy, Message: fmt.Sprintf(format, arguments...)})
}

// unread reports whether an area is not known, and adds that to the report.
func (r *Report) unread(area string, seen Seen) bool {
	why, is := seen.Unread[area]
	if is {
		r.add(area, Unknown, "", "could not be read: %s", why)
	}
	return is
}

func (r *Report) versions(seen Seen) {
	if r.unread("versions", seen) {
		return
	}
	server, err := version.ParseGeneric(seen.Server)
	switch {
	case err != nil:
		r.add("versions", Unknown, "", "the API server says that it is %q", seen.Server)
	case server.LessThan(version.MustParseGeneric(Oldest)):
		r.add("versions", Missing, "upgrade Kubernetes", "Kubernetes %s is older than %s, which the operator needs", seen.Server, Oldest)
	default:
		r.add("versions", OK, "", "Kubernetes %s, plugin %s", seen.Server, seen.Plugin)
	}
}

func (r *Report) kinds(seen Seen) {
	for _, kind := range seen.Kinds {
		switch {
		case len(kind.Versions) == 0:
			r.add("kinds", Missing, "install the CustomResourceDefinitions: docs/installation.md", "the cluster has no %s", kind.Name)
		case !slices.Contains(kind.Versions, kind.Wanted):
			r.add("kinds", Warn, "use the plugin of the operator's version", "%s is served as %s, and this plugin knows %s", kind.Name,
				strings.Join(kind.Versions, ", "), kind.Wanted)
		default:
			r.add("kinds", OK, "", "%s %s", kind.Name, strings.Join(kind.Versions, ", "))
		}
	}
}

func (r *Report) operator(seen Seen) {
	if r.unread("operator", seen) {
		return
	}
	if len(seen.Deployments) == 0 {
		r.add("operator", Missing, "install it: docs/installation.md", "no Deployment with the label %s=%s", label, product)
	}
	for i := range seen.Deployments {
		d := &seen.Deployments[i]
		image := "an image that is not known"
		if at := slices.IndexFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == "manager" }); at >= 0 {
			image = d.Spec.Template.Spec.Containers[at].Image
		}
		state, remedy := OK, ""
		if d.Status.ReadyReplicas == 0 {
			state, remedy = Missing, fmt.Sprintf("kubectl describe pods -n %s -l %s=%s", d.Namespace, label, product)
		}
		r.add("operator", state, remedy, "%s/%s: %d ready, %s", d.Namespace, d.Name, d.Status.ReadyReplicas, image)
	}
}

// webhooks are those with the operator's label, or that call its Service: OLM makes them under other names.
func (r *Report) webhooks(seen Seen) {
	if r.unread("webhooks", seen) {
		return
	}
	found := 0
	tell := func(kind, name string, labels map[string]string, clients []admissionregistrationv1.WebhookClientConfig) {
		ours := labels[label] == product
		withoutCA := 0
		for _, client := range clients {
			ours = ours || client.Service != nil && strings.Contains(client.Service.Name, product)
			if len(client.CABundle) == 0 {
				withoutCA++
			}
		}
		if !ours {
			return
		}
		found++
		if withoutCA > 0 {
			r.add("webhooks", Missing, "see whether the operator runs: it writes its certificate there",
				"%s %s: %d of %d have no caBundle, so that writes fail", kind, name, withoutCA, len(clients))
			return
		}
		r.add("webhooks", OK, "", "%s %s: %d", kind, name, len(clients))
	}
	for i := range seen.Validating {
		var clients []admissionregistrationv1.WebhookClientConfig
		for _, webhook := range seen.Validating[i].Webhooks {
			clients = append(clients, webhook.ClientConfig)
		}
		tell("validating", seen.Validating[i].Name, seen.Validating[i].Labels, clients)
	}
	for i := range seen.Mutating {
		var clients []admissionregistrationv1.WebhookClientConfig
		for _, webhook := range seen.Mutating[i].Webhooks {
			clients = append(clients, webhook.ClientConfig)
		}
		tell("mutating", seen.Mutating[i].Name, seen.Mutating[i].Labels, clients)
	}
	if found == 0 {
		r.add("webhooks", Warn, "install them: docs/installation.md",
			"none of the operator's: mistakes are stored, and told in the status afterwards")
	}
}

func (r *Report) storage(seen Seen) {
	if r.unread("storage", seen) {
		return
	}
	byDefault := ""
	for i := range seen.Classes {
		class := &seen.Classes[i]
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		byDefault = class.Name
		if class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion {
			r.add("storage", Warn, "set allowVolumeExpansion: true if its driver can", "class %s is the default, and its claims cannot be expanded",
				class.Name)
			continue
		}
		r.add("storage", OK, "", "class %s is the default, and its claims can be expanded", class.Name)
	}
	if byDefault == "" {
		r.add("storage", Warn, "mark one as the default, or name one in spec.storage.storageClassName",
			"there is no default storage class (%d in all)", len(seen.Classes))
	}
}

// isOperator reports whether a subject is the operator's ServiceAccount. Where its Deployment could not be read, that is known by name.
func (seen Seen) isOperator(subject rbacv1.Subject) bool {
	if subject.Kind != rbacv1.ServiceAccountKind {
		return false
	}
	for i := range seen.Deployments {
		d := &seen.Deployments[i]
		if subject.Namespace == d.Namespace && subject.Name == cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default") {
			return true
		}
	}
	return len(seen.Deployments) == 0 && subject.Name == product
}

// secrets is whether the operator may keep Secrets in the namespace.
func (r *Report) secrets(seen Seen) {
	if r.unread("secrets", seen) {
		return
	}
	for i := range seen.Bindings {
		role := seen.Bindings[i].RoleRef
		if role.Kind == "ClusterRole" && role.Name == namespaceRole && slices.ContainsFunc(seen.Bindings[i].Subjects, seen.isOperator) {
			r.add("secrets", OK, "", "the operator may keep Secrets in %s (RoleBinding %s)", seen.Namespace, seen.Bindings[i].Name)
			return
		}
	}
	r.add("secrets", Warn, fmt.Sprintf("kubectl create rolebinding %s -n %s --clusterrole=%s --serviceaccount=%s-system:%s", product,
		cmp.Or(seen.Namespace, "NAMESPACE"), namespaceRole, product, product),
		"no RoleBinding of the operator to %s in %s: passwords and releases cannot be kept there", namespaceRole, seen.Namespace)
}

// rights are those that the user lacks, command by command.
func (r *Report) rights(seen Seen) {
	var commands []string
	for _, answer := range seen.Allowed {
		if !slices.Contains(commands, answer.Command) {
			commands = append(commands, answer.Command)
		}
	}
	for _, command := range commands {
		whole := true
		for _, answer := range seen.Allowed {
			switch {
			case answer.Command != command || answer.Allowed:
				continue
			case answer.Unknown != "":
				r.add("rights", Unknown, "", "%s: %s: %s", command, answer, answer.Unknown)
			case answer.Optional != "":
				r.add("rights", Warn, "", "%s: you may not %s: it leaves out %s", command, answer, answer.Optional)
			default:
				r.add("rights", Warn, "ask for a Role: docs/plugin.md has it", "%s: you may not %s, without which it does not work", command, answer)
			}
			whole = false
		}
		if whole {
			r.add("rights", OK, "", "%s: you have all that it uses", command)
		}
	}
}

// Text is the report on a page.
func (r Report) Text(page terminal.Page) string {
	page = page.Sized()
	styles := map[State]terminal.Style{OK: terminal.Good, Missing: terminal.Bad, Warn: terminal.Warn, Unknown: terminal.Note}
	var b strings.Builder
	area := ""
	for _, result := range r.Results {
		if result.Area != area {
			if area = result.Area; b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(page.Paint(terminal.Clean(area), terminal.Head) + "\n")
		}
		head := "  " + page.Paint(string(result.State), styles[result.State]) + strings.Repeat(" ", 9-len(result.State))
		text := page.Paragraph(strings.Repeat(" ", 11), terminal.Clean(result.Message), terminal.Plain)
		b.WriteString(head + strings.TrimPrefix(text, strings.Repeat(" ", 11)))
		if result.Remedy != "" {
			b.WriteString("           → " + terminal.Clean(result.Remedy) + "\n")
		}
	}
	return b.String()
}
