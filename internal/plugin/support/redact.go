// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package support is the bundle that `kubectl middleware report` writes for who is to help: objects, events and logs, with what looks like
// a password taken out. It is pure.
package support

import (
	"regexp"
	"strings"
)

// Redacted stands where something was taken out.
const Redacted = "[redacted]"

// telling are names whose values are not told. Those that end with Name or Ref name an object, and are no value of it.
var (
	telling = regexp.MustCompile(`(?i)(pass(word|wd|phrase)?$|password|passwd|requirepass|masterauth|token|secret|credential|api[-_]?key|access[-_]?key|private[-_]?key|sas[-_]?key|rediscli_auth|authorization)`)
	naming  = regexp.MustCompile(`(Name|Ref|Names|Refs|SecretRef|KeyRef)$`)
)

// What lines hold: name=value, name: value, name value (redis.conf) and JSON; who logs in to an address; rules of users; keys in PEM.
var (
	assigned = regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:password|passwd|passphrase|requirepass|masterauth|token|secret[-_]?key|secret|credentials?|api[-_]?key|access[-_]?key|private[-_]?key|rediscli_auth|authorization)["']?\s*(?:[:=]|\s)\s*(?:is\s+)?)("[^"]*"|'[^']*'|(?:bearer|basic)\s+\S+|[^\s,;}"']+)`)
	address  = regexp.MustCompile(`([a-z][a-z0-9+.-]*://)[^/\s@]+@`)
	aclRule  = regexp.MustCompile(`(^|[\s"'])[><#!](\S{8,})`)
	digest   = regexp.MustCompile(`(?i)\b(auth)\s+\S+(\s+\S+)?`)
	pem      = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

// Text is text without what looks like a password. What is taken out too much costs a question; what is left in costs a password.
func Text(text string) string {
	text = pem.ReplaceAllString(text, Redacted)
	text = address.ReplaceAllString(text, "${1}"+Redacted+"@")
	text = assigned.ReplaceAllString(text, "${1}"+Redacted)
	text = aclRule.ReplaceAllString(text, "${1}"+Redacted)
	return digest.ReplaceAllString(text, "${1} "+Redacted)
}

// Object is the content of an object without what looks like a password, and without what only repeats it. It is changed in place.
func Object(content map[string]any) map[string]any {
	if metadata, is := content["metadata"].(map[string]any); is {
		delete(metadata, "managedFields")
		if annotations, is := metadata["annotations"].(map[string]any); is {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}
	}
	redact(content)
	return content
}

func redact(value any) any {
	switch value := value.(type) {
	case map[string]any:
		name, _ := value["name"].(string)
		for key, one := range value {
			text, isText := one.(string)
			switch {
			case isText && text != "" && telling.MatchString(key) && !naming.MatchString(key):
				value[key] = Redacted
			case isText && key == "value" && telling.MatchString(name):
				value[key] = Redacted // a variable of a container
			default:
				value[key] = redact(one)
			}
		}
	case []any:
		for i := range value {
			value[i] = redact(value[i])
		}
	case string:
		if strings.TrimSpace(value) != "" {
			return Text(value)
		}
	}
	return value
}
