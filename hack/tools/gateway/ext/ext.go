// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ext stands for a module of Traefik's repository that is not published: fields of others in its configuration, none here.
package ext

// HTTP is embedded in Traefik's HTTP configuration.
type HTTP struct{}

// Router is embedded in its routers.
type Router struct{}
