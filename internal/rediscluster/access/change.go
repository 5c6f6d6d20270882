// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/rand"
	"slices"
	"time"
)

// Asked is what the spec, and the Secrets that it names, ask for.
type Asked struct {
	// Password is the one that was given; empty when none was.
	Password string
	// Token is spec.auth.rotate: one that is neither empty nor State.Token asks for another
	// random password, unless a password was given.
	Token string
	// Users are the users beside default and the operator's.
	Users []User
	// Stale reports whether the Secret is not as State would write it.
	Stale bool
}

// Due reports whether the password is not the one that is asked for, or the Secret is not written as this version writes it.
func (s State) Due(asked Asked) bool {
	return asked.Stale || asked.Token != s.Token || s.wrong(asked)
}

// UsersDue reports whether the users are not those asked for.
func (s State) UsersDue(asked Asked) bool { return !slices.EqualFunc(asked.Users, s.Users, User.equal) }

// wrong reports whether a password was given which is neither the next one nor, when there is no
// next one, the present one.
func (s State) wrong(asked Asked) bool {
	if asked.Password == "" {
		return false
	}
	coming := s.Password
	if s.Next != "" {
		coming = s.Next
	}
	return asked.Password != coming
}

// Accept begins what is asked for: a new password becomes the next one. Users stay.
func (s State) Accept(asked Asked, now time.Time) State {
	after := s
	switch {
	case s.wrong(asked) && asked.Password == s.Password:
		after.Next = "" // taken back before clients were told
	case s.wrong(asked):
		after.Next = asked.Password
	case asked.Password == "" && asked.Token != "" && asked.Token != s.Token:
		after.Next = rand.Text()
	}
	after.Token = asked.Token
	if after.Exporter == "" {
		after.Exporter = rand.Text()
	}
	if after.Backup == "" {
		after.Backup = rand.Text()
	}
	if after.Next != s.Next {
		after.ChangedAt = now
	}
	return after
}

// Publish tells clients the next password, and makes instances log in to each other with it.
// Every instance must accept it already.
func (s State) Publish(now time.Time) State {
	s.Password, s.Previous, s.Next, s.ChangedAt = s.Next, s.Password, "", now
	return s
}

// Retire ends that the previous password is accepted.
func (s State) Retire(now time.Time) State {
	s.Previous, s.ChangedAt = "", now
	return s
}
