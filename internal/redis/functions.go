// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import "context"

// Functions are all function libraries of this node, as RestoreFunctions takes them (FUNCTION DUMP).
func (n *Node) Functions(ctx context.Context) (string, error) {
	c := command{name: "FUNCTION DUMP", args: words("FUNCTION DUMP")}
	answer, err := n.read(ctx, c)
	if err != nil {
		return "", err
	}
	payload, err := answer.Text()
	if err != nil {
		return "", n.notUnderstood(c, err)
	}
	return payload, nil
}

// RestoreFunctions loads the function libraries of another master. Libraries that are there under the same name are
// replaced. Masters do not share functions by themselves: a new one answers FCALL only after this (FUNCTION RESTORE).
func (n *Node) RestoreFunctions(ctx context.Context, payload string) error {
	return n.tell(ctx, "FUNCTION RESTORE", payload, "REPLACE")
}
