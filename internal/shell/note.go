// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import "middleware.hc.cn/operator/internal/excerpt"

// Note is what an Event says. The API server refuses more than 1 KiB.
func Note(text string) string { return excerpt.Of(text, 1024) }
