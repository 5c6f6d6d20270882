// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overlay reads the part of a pod spec that the author of a RedisCluster has merged into the pods of instances. What of it may be
// set is for internal/admission/rediscluster to say. It is pure.
package overlay

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/rules"
)

// Path is where the overlay is.
var Path = field.NewPath("spec", "pod").Index(0).Child("overlay")

// within is an object with nothing but an overlay, so that the paths in refusals are those of the RedisCluster.
type within struct {
	Spec struct {
		Pod []struct {
			Overlay corev1.PodSpec `json:"overlay"`
		} `json:"pod"`
	} `json:"spec"`
}

// Read is the overlay of a pod template; nil: there is none, or it is refused. It is kept as it was written, since a value of a wrong type
// in it would otherwise keep all RedisClusters from being read.
func Read(template v1alpha1.PodTemplate) (*corev1.PodSpec, field.ErrorList) {
	if template.Overlay == nil || len(template.Overlay.Raw) == 0 {
		return nil, nil
	}
	encoded := fmt.Appendf(nil, `{"spec":{"pod":[{"overlay":%s}]}}`, template.Overlay.Raw)
	var object map[string]any
	if err := json.Unmarshal(encoded, &object); err != nil {
		return nil, field.ErrorList{field.Invalid(Path, field.OmitValueType{}, "is no JSON: "+err.Error())}
	}
	if refused := rules.Quantities[within](object); len(refused) > 0 {
		return nil, refused
	}
	var read within
	if refused := rules.Read(encoded, &read); len(refused) > 0 {
		return nil, refused
	}
	return &read.Spec.Pod[0].Overlay, nil
}

// Redis is what an overlay says of the container redis.
func Redis(o *corev1.PodSpec) *corev1.Container {
	for i := range o.Containers {
		if o.Containers[i].Name == v1alpha1.ContainerRedis {
			return &o.Containers[i]
		}
	}
	return &corev1.Container{}
}

// Reference is an object of the namespace that a pod is to have.
type Reference struct {
	// Field is where it is named, such as volumes[0].secret.secretName.
	Field      string
	Kind, Name string
}

// References are the objects that an overlay names, each once.
func References(o *corev1.PodSpec) []Reference {
	if o == nil {
		return nil
	}
	var all []Reference
	seen := map[Reference]bool{}
	add := func(at, kind, name string) {
		if is := (Reference{Kind: kind, Name: name}); !seen[is] {
			seen[is] = true
			all = append(all, Reference{Field: at, Kind: kind, Name: name})
		}
	}
	if o.ServiceAccountName != "" {
		add("serviceAccountName", "ServiceAccount", o.ServiceAccountName)
	}
	for i, volume := range o.Volumes {
		at := fmt.Sprintf("volumes[%d]", i)
		if v := volume.ConfigMap; v != nil {
			add(at+".configMap.name", "ConfigMap", v.Name)
		}
		if v := volume.Secret; v != nil {
			add(at+".secret.secretName", "Secret", v.SecretName)
		}
		if v := volume.PersistentVolumeClaim; v != nil {
			add(at+".persistentVolumeClaim.claimName", "PersistentVolumeClaim", v.ClaimName)
		}
		if v := volume.Projected; v != nil {
			for j, source := range v.Sources {
				in := fmt.Sprintf("%s.projected.sources[%d]", at, j)
				if s := source.ConfigMap; s != nil {
					add(in+".configMap.name", "ConfigMap", s.Name)
				}
				if s := source.Secret; s != nil {
					add(in+".secret.name", "Secret", s.Name)
				}
			}
		}
	}
	return all
}
