// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package support is the bundle that `kubectl middleware report` writes for who is to help: objects, events and logs, with what looks like
// a password taken out. It is pure.
package support

import (
	"regexp"
	"slices"
	"strings"
)

// Redacted stands where something was taken out.
const Redacted = "[redacted]"

// telling are names whose values are not told. Those that end with Name or Ref name an object, and are no value of it.
var (
	telling = regexp.MustCompile(`(?i)(pass(word|wd|phrase)?$|password|passwd|pwd|requirepass|masterauth|token|secret|credential|` +
		`api[-_]?key|access[-_]?key|private[-_]?key|sas[-_]?key|_auth$|rediscli_auth|authorization|dsn)`)
	naming = regexp.MustCompile(`(Name|Ref|Names|Refs|SecretRef|KeyRef)$`)
)

// value is what stands behind a name: in quotes, which may be escaped (JSON within JSON) and may lack their end where a line was cut
// off or wrapped; a list; one word.
const value = `(?:"(?:[^"\\\n]|\\.|\n {2,})*"?|\\"(?:[^"\\\n]|\\\\\\*.)*(?:\\")?|'(?:[^'\n]|\n {2,})*'?|\[[^\]\n]*\]?|` +
	`(?:bearer|basic)\s+\S+|[^\s"']\S*)`

// What lines hold: name=value, name: value, name value (redis.conf) and JSON; who logs in to an address; rules of users; commands that
// log in, as MONITOR shows them too; options of redis-cli; keys in PEM.
var (
	assigned = regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:password|passwd|passphrase|pwd|requirepass|masterauth|token|secret[-_]?key|secret|` +
		`credential|api[-_]?key|access[-_]?key|private[-_]?key|sas[-_]?key|_auth|authorization|dsn)s?` +
		`(?:\\*["']\s*,|\\*["']?\s*[:=>]+|\\*["']?\s)\s*(?:is\s+)?)` + value)
	address = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)\S+@`)
	aclRule = regexp.MustCompile(`(^|[\s"',\[(])(?:[><]\S+|[#!]\S{8,})`)
	login   = regexp.MustCompile(`(?i)\b(auth2?)\b["']?\s+` + value + `(\s+` + value + `)?`)
	option  = regexp.MustCompile(`((?:^|[\s"',\[(])(?:-a|--pass)["']?[\s=,]+)` + value)
	pem     = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

// Text is text without what looks like a password. What is taken out too much costs a question; what is left in costs a password.
func Text(text string) string {
	text = pem.ReplaceAllString(text, Redacted)
	text = address.ReplaceAllString(text, "${1}"+Redacted+"@")
	text = assigned.ReplaceAllString(text, "${1}"+Redacted)
	text = option.ReplaceAllString(text, "${1}"+Redacted)
	text = aclRule.ReplaceAllString(text, "${1}"+Redacted)
	return login.ReplaceAllString(text, "${1} "+Redacted)
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

// known are the variables whose values the operator itself writes. Others may be anything: their values are not told.
var known = []string{"REDIS_ADDR", "REDIS_USER", "REDIS_EXPORTER_SKIP_TLS_VERIFICATION", "REDIS_EXPORTER_CONFIG_COMMAND",
	"AWS_EC2_METADATA_DISABLED", "AWS_CA_BUNDLE", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_STORAGE_ACCOUNT", "AZURE_TOKEN_CREDENTIALS",
	"SSL_CERT_FILE", "SSL_CERT_DIR"}

func redact(value any) any {
	switch value := value.(type) {
	case map[string]any:
		name, _ := value["name"].(string)
		for key, one := range value {
			isTold := telling.MatchString(key) && !naming.MatchString(key) || key == "value" && telling.MatchString(name)
			if strings.HasSuffix(strings.ToLower(key), "env") {
				variables(one)
			}
			value[key] = redact(one)
			if isTold {
				value[key] = blank(one)
			}
		}
	case []any:
		next := 0 // how many elements belong to the one before: ["--requirepass", "x"]
		for i := range value {
			word, _ := value[i].(string)
			value[i] = redact(value[i])
			if next > 0 && word != "" {
				value[i] = Redacted
				next--
			}
			switch {
			case strings.EqualFold(word, "auth") || strings.EqualFold(word, "auth2"):
				next = 2 // a user and a password
			case word == "-a" || telling.MatchString(word):
				next = 1
			}
		}
	case string:
		if strings.TrimSpace(value) != "" {
			return Text(value)
		}
	}
	return value
}

// blank takes a value out, or what stands in a list. An object has names of its own: {secret: {secretName: x}} is a volume.
func blank(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = blank(value[i])
		}
	case string:
		if value != "" {
			return Redacted
		}
	case int64, float64:
		return Redacted
	}
	return value
}

// variables takes the values out of the variables of a container.
func variables(list any) {
	all, _ := list.([]any)
	for _, one := range all {
		variable, _ := one.(map[string]any)
		name, _ := variable["name"].(string)
		if text, _ := variable["value"].(string); text != "" && !slices.Contains(known, name) {
			variable["value"] = Redacted
		}
	}
}
