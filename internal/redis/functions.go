// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import "context"

// CopyFunctions loads all function libraries of this node into another master. Libraries that
// are there under the same name are replaced. Masters do not share functions by themselves: a
// new one answers FCALL only after this (FUNCTION DUMP, FUNCTION RESTORE).
func (n *Node) CopyFunctions(ctx context.Context, to *Node) error {
	c := command{name: "FUNCTION DUMP", args: words("FUNCTION DUMP")}
	answer, err := n.do(ctx, c)
	if err != nil {
		return err
	}
	payload, err := answer.Text()
	if err != nil {
		return n.notUnderstood(c, err)
	}
	return to.tell(ctx, "FUNCTION RESTORE", payload, "REPLACE")
}
