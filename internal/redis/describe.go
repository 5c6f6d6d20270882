// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"strings"
)

// describeCommands are what Describe asks. The table of nodes says who the node itself is, and INFO keyspace counts the
// keys of all databases, so that neither CLUSTER MYID nor DBSIZE (which some engines refuse while loading) is needed.
// INFO with several sections needs Redis 7.0.
var describeCommands = []command{
	{name: "INFO", args: words("INFO server memory persistence replication keyspace")},
	{name: "CLUSTER INFO", args: words("CLUSTER INFO")},
	{name: "CLUSTER NODES", args: words("CLUSTER NODES")},
}

// Describe asks the node everything that decisions rest on, in one round trip.
//
// While the node loads its data set, most engines refuse the cluster's commands. Then the error is ErrLoading and the
// View holds what INFO says (process, engine, memory, role, Loading); its cluster fields are unknown, not empty. With
// any other error the View is the zero value.
func (n *Node) Describe(ctx context.Context) (View, error) {
	answers, err := n.pipeline(ctx, describeCommands...)
	if err != nil {
		return View{}, err
	}
	var view View
	for i, read := range []func(*View, string) error{readInfo, readClusterInfo, readNodes} {
		c, answer := describeCommands[i], answers[i]
		if err := answer.Err(); err != nil {
			refused := n.failed(ctx, c, err)
			if errors.Is(refused, ErrLoading) && view.Loading {
				return view, refused
			}
			return View{}, refused
		}
		text, err := answer.Text()
		if err == nil {
			err = read(&view, text)
		}
		if err != nil {
			return View{}, n.notUnderstood(c, err)
		}
	}
	return view, nil
}

func words(text string) []any {
	var args []any
	for word := range strings.FieldsSeq(text) {
		args = append(args, word)
	}
	return args
}
