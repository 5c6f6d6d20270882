// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Size is a quantity of bytes in a few characters.
func Size(q resource.Quantity) string {
	bytes := q.Value()
	for _, unit := range []struct {
		name string
		of   int64
	}{{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}} {
		if bytes >= unit.of {
			text := strconv.FormatFloat(float64(bytes)/float64(unit.of), 'f', 1, 64)
			return strings.TrimSuffix(text, ".0") + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func quoted(value string) string {
	if value == "" {
		return `""`
	}
	return value
}

// age is how long ago something was.
func age(then, now time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(then), 0))
}

// left is how long something will still take.
func left(until, now time.Time) string {
	if !until.After(now) {
		return "due now"
	}
	return "in " + duration.HumanDuration(until.Sub(now))
}
