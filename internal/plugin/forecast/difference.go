// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// differences are the fields in which two values differ, by their paths; nil before is nothing at all.
func differences(path string, before, after any) []Field {
	return differ(path, generic(before), generic(after), nil)
}

// generic is a value as JSON has it; what has no JSON is nil.
func generic(value any) any {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		return nil
	}
	return decoded
}

func differ(path string, before, after any, found []Field) []Field {
	was, isMap := before.(map[string]any)
	is, stays := after.(map[string]any)
	if isMap && stays || stays && before == nil || isMap && after == nil {
		keys := map[string]bool{}
		for _, all := range []map[string]any{was, is} {
			for key := range all {
				keys[key] = true
			}
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			found = differ(path+"."+key, was[key], is[key], found)
		}
		return found
	}
	old, list := before.([]any)
	next, listStays := after.([]any)
	if list && listStays && len(old) == len(next) {
		for i := range old {
			found = differ(fmt.Sprintf("%s[%d]", path, i), old[i], next[i], found)
		}
		return found
	}
	if a, b := shown(before), shown(after); a != b {
		found = append(found, Field{Path: path, Before: a, After: b})
	}
	return found
}

// shown is a value in JSON; nothing is the empty text.
func shown(value any) string {
	if value == nil {
		return ""
	}
	if text, is := value.(string); is {
		return text
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(encoded)
}
