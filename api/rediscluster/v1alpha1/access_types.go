// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Auth is the password of the default user.
type Auth struct {
	// enabled asks clients for a password.
	//
	// +kubebuilder:default=true
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=61,displayName="Password Required",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Enabled *bool `json:"enabled,omitempty"`

	// secretName is a Secret in the same namespace whose key password holds the
	// password, and whose label redis.middleware.hc.cn/auth is true. Default: a
	// random password, kept in the Secret <name>-auth.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=62,displayName="Password Secret",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret","urn:alm:descriptor:com.tectonic.ui:fieldDependency:auth.enabled:true"}
	SecretName string `json:"secretName,omitempty"`

	// rotate asks for another random password: any value that it did not have before does,
	// such as a date. Clients find the new one in the Secret <name>-auth as soon as every
	// instance accepts it. Not together with secretName, whose Secret is changed instead.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=63,displayName="Rotate Password",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Rotate string `json:"rotate,omitempty"`

	// previousPasswordFor is how long instances go on accepting a password after clients
	// were told the next one. In that time every client that logs in has to learn the new
	// one; connections that are open stay. At least 2m, which is how long instances may
	// take to see it in their files.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(ms|s|m|h))+$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=64,displayName="Previous Password Valid For",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	PreviousPasswordFor *metav1.Duration `json:"previousPasswordFor,omitempty"`

	// aclSecretName is a Secret in the same namespace that holds users beside default, and
	// whose label redis.middleware.hc.cn/auth is true. A key is a user's name, its value the
	// rules in the engine's own words, such as: on >password ~cache:* +@read. No user gets
	// commands of the category @admin.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=65,displayName="Users Secret",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret","urn:alm:descriptor:com.tectonic.ui:fieldDependency:auth.enabled:true"}
	ACLSecretName string `json:"aclSecretName,omitempty"`
}

// UnmarshalJSON reads a previousPasswordFor that is longer than any duration, which the schema of released CRDs takes, as the longest there
// is: who reads objects would fail at it, and could read no other object either.
func (a *Auth) UnmarshalJSON(text []byte) error {
	type plain Auth
	read := struct {
		*plain
		PreviousPasswordFor *string `json:"previousPasswordFor"`
	}{plain: (*plain)(a)}
	if err := json.Unmarshal(text, &read); err != nil || read.PreviousPasswordFor == nil {
		return err
	}
	lasts, err := time.ParseDuration(*read.PreviousPasswordFor)
	if err != nil {
		lasts = math.MaxInt64
	}
	a.PreviousPasswordFor = &metav1.Duration{Duration: lasts}
	return nil
}

// TLSMode is which connections instances take.
//
// +kubebuilder:validation:Enum=Disabled;Both;Required
type TLSMode string

// The modes.
const (
	// TLSDisabled: plain connections only. The Secrets are needed until instances take no others.
	TLSDisabled TLSMode = "Disabled"
	// TLSBoth: clients use plain connections or TLS. Replication and the cluster bus use TLS.
	TLSBoth TLSMode = "Both"
	// TLSRequired: TLS only.
	TLSRequired TLSMode = "Required"
)

// ClientCertificates is what instances want of clients that connect by TLS, beside the password.
//
// +kubebuilder:validation:Enum=None;Optional;Required
type ClientCertificates string

// What instances want of clients.
const (
	// ClientCertificatesNone: nothing; a certificate that a client has is not looked at (tls-auth-clients no).
	ClientCertificatesNone ClientCertificates = "None"
	// ClientCertificatesOptional: a certificate that a client shows has to be one that is trusted (tls-auth-clients optional).
	ClientCertificatesOptional ClientCertificates = "Optional"
	// ClientCertificatesRequired: each client has to show one that is trusted (tls-auth-clients yes).
	ClientCertificatesRequired ClientCertificates = "Required"
)

// TLS is the certificate of the instances, and which connections they take. A change of the Secrets is loaded without a
// restart.
type TLS struct {
	// mode is which connections clients may use: Disabled (plain ones), Both (plain ones to port 6379, TLS to port 6380) or Required
	// (TLS; the Service leads to it from both ports). It can be changed while the cluster runs, from Disabled to Both to Required
	// and back, one stage at a time: clients move while it is Both. status.tls.mode says which stage has been reached. Default: Required.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=69,displayName="TLS Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Disabled","urn:alm:descriptor:com.tectonic.ui:select:Both","urn:alm:descriptor:com.tectonic.ui:select:Required"}
	Mode TLSMode `json:"mode,omitempty"`

	// secretName is a Secret in the same namespace with the certificate (tls.crt) and its key
	// (tls.key), such as cert-manager makes, and whose label redis.middleware.hc.cn/tls is
	// true. The certificate must be valid for *.<name>-nodes.<namespace>.svc, as a server's
	// and, if it limits its use, as a client's: instances show it to each other, and so does what the operator runs.
	// Required unless there is issuerRef.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=67,displayName="Certificate Secret",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	SecretName string `json:"secretName,omitempty"`

	// issuerRef is who signs the certificate: in place of secretName, the operator has cert-manager make it, with the names that instances
	// and clients need, as the Certificate <name>-tls with the Secret <name>-tls, and renew it.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=73,displayName="Issuer"
	IssuerRef *IssuerRef `json:"issuerRef,omitempty"`

	// duration is how long the certificate of issuerRef is asked for, such as 2160h; at least 1h. Default: what cert-manager and the issuer
	// have as theirs.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('876000h')",message="must be from 1h to 876000h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=74,displayName="Certificate Duration",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Duration *metav1.Duration `json:"duration,omitempty"`

	// caSecretName is a Secret in the same namespace with the certificates that are trusted
	// (ca.crt) and the same label. Default: ca.crt of secretName, or of the Secret of issuerRef.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=68,displayName="CA Secret",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	CASecretName string `json:"caSecretName,omitempty"`

	// clientCertificates is what instances want of clients that connect by TLS: None (nothing), Optional (a certificate that is shown has to
	// be trusted) or Required (each has to show one). It can be changed while the cluster runs, for connections that begin from then on;
	// status.tls.clientCertificates says what clients can rely on. In the mode Both, plain connections need none. Default: Optional.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=71,displayName="Client Certificates",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:None","urn:alm:descriptor:com.tectonic.ui:select:Optional","urn:alm:descriptor:com.tectonic.ui:select:Required"}
	ClientCertificates ClientCertificates `json:"clientCertificates,omitempty"`

	// clientCASecretName is a Secret in the same namespace with the certificates that those of clients are signed with (ca.crt) and the
	// same label. Engines have one list for clients and for each other, so the CA of the instances has to be in it as well; whoever has a
	// certificate of one of them can join the cluster bus. What the operator runs, and clients, trust the CA of the instances alone.
	// Default: the CA of the instances.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=72,displayName="CA Secret of Clients",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	ClientCASecretName string `json:"clientCASecretName,omitempty"`
}

// IssuerKind is a kind of issuer.
//
// +kubebuilder:validation:Enum=Issuer;ClusterIssuer
type IssuerKind string

// The kinds of issuers.
const (
	// IssuerKindIssuer: of the same namespace.
	IssuerKindIssuer IssuerKind = "Issuer"
	// IssuerKindClusterIssuer: of the whole cluster.
	IssuerKindClusterIssuer IssuerKind = "ClusterIssuer"
)

// IssuerGroup is the API group of cert-manager.
const IssuerGroup = "cert-manager.io"

// IssuerRef names an issuer of cert-manager.
type IssuerRef struct {
	// name is the issuer's. Required.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=75,displayName="Issuer Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name"`

	// kind is Issuer (of the same namespace) or ClusterIssuer, one that the operator's flag --cluster-issuers names. Default: Issuer.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=76,displayName="Issuer Kind",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Issuer","urn:alm:descriptor:com.tectonic.ui:select:ClusterIssuer"}
	Kind IssuerKind `json:"kind,omitempty"`

	// group is cert-manager.io, which it is by default: issuers of other groups are not supported.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=275,displayName="Issuer Group",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Group string `json:"group,omitempty"`
}
