// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

const (
	settingMasterAuth = "masterauth"
	settingMasterUser = "masteruser"
	defaultUser       = "default"
)

// Access is who may log in to a node, and how it logs in to its master. Passwords are SHA-256 digests in hex, as the engine
// keeps them.
type Access struct {
	// Passwords are those of the default user, sorted. Open reports whether it takes any password, and none.
	Passwords []string
	Open      bool
	// Link is the digest of masterauth, empty without one; LinkUser is masteruser.
	Link, LinkUser string
	// Users are the other users, by name, each as the node shows it (ACL LIST).
	Users map[string]string
}

// Access asks who may log in.
func (n *Node) Access(ctx context.Context) (Access, error) {
	list := command{name: "ACL LIST", args: words("ACL LIST")}
	link := command{name: "CONFIG GET", args: words("CONFIG GET " + settingMasterAuth + " " + settingMasterUser)}
	answers, err := n.pipeline(ctx, list, link)
	if err != nil {
		return Access{}, err
	}
	for i, c := range []command{list, link} {
		if err := answers[i].Err(); err != nil {
			return Access{}, n.failed(ctx, c, err)
		}
	}
	lines, err := answers[0].StringSlice()
	if err != nil {
		return Access{}, n.notUnderstood(list, err)
	}
	access, err := readUsers(lines)
	if err != nil {
		return Access{}, n.notUnderstood(list, err)
	}
	settings, err := settingsOf(answers[1])
	if err != nil {
		return Access{}, n.notUnderstood(link, err)
	}
	access.LinkUser = settings[settingMasterUser]
	if password := settings[settingMasterAuth]; password != "" {
		sum := sha256.Sum256([]byte(password))
		access.Link = hex.EncodeToString(sum[:])
	}
	return access, nil
}

// mostUsers is how many users are read, five times as many as admission lets a cluster have.
const mostUsers = 1000

// readUsers reads ACL LIST: a line `user NAME RULES` for each user.
func readUsers(lines []string) (Access, error) {
	access := Access{Users: map[string]string{}}
	if len(lines) > mostUsers {
		return Access{}, fmt.Errorf("%d users: %d at most are looked at", len(lines), mostUsers)
	}
	for _, line := range lines {
		rest, ok := strings.CutPrefix(line, "user ")
		name, rules, found := strings.Cut(rest, " ")
		if !ok || !found || len(name) > longestName {
			return Access{}, fmt.Errorf("%.80q is no user", line)
		}
		if name != defaultUser {
			access.Users[name] = rules
			continue
		}
		for rule := range strings.FieldsSeq(rules) {
			if rule == "nopass" {
				access.Open = true
			} else if digest, isPassword := strings.CutPrefix(rule, "#"); isPassword {
				if len(digest) != hex.EncodedLen(sha256.Size) {
					return Access{}, fmt.Errorf("user %s: a digest has %d characters", name, len(digest))
				}
				access.Passwords = append(access.Passwords, strings.Clone(digest))
			}
		}
		slices.Sort(access.Passwords)
	}
	return access, nil
}

// SetPasswords makes the default user accept these passwords and no others, given as SHA-256 digests in hex. Connections
// that are open stay.
func (n *Node) SetPasswords(ctx context.Context, digests []string) error {
	rules := []string{"on", "resetpass"}
	for _, digest := range digests {
		rules = append(rules, "#"+digest)
	}
	return n.setUser(ctx, defaultUser, rules)
}

// SetLink makes the node log in to its master as the default user with the password, from the next connection on.
func (n *Node) SetLink(ctx context.Context, password string) error {
	if err := n.ConfigSet(ctx, settingMasterUser, defaultUser); err != nil {
		return err
	}
	return n.ConfigSet(ctx, settingMasterAuth, password)
}

// SetUser makes a user have exactly these rules, each one argument of ACL SETUSER, which takes them all or none.
// Connections of the user stay.
func (n *Node) SetUser(ctx context.Context, name string, rules []string) error {
	return n.setUser(ctx, name, append([]string{"reset"}, rules...))
}

func (n *Node) setUser(ctx context.Context, name string, rules []string) error {
	c := command{name: "ACL SETUSER", args: []any{"ACL", "SETUSER", name}}
	for _, rule := range rules {
		c.args = append(c.args, rule)
		if digest, isPassword := strings.CutPrefix(rule, "#"); isPassword {
			c.secrets = append(c.secrets, digest) // whoever has it can try passwords at leisure
		}
	}
	return n.tellCommand(ctx, c)
}

// DeleteUsers removes users and ends their connections. One that does not exist is no error.
func (n *Node) DeleteUsers(ctx context.Context, names ...string) error {
	c := command{name: "ACL DELUSER", args: []any{"ACL", "DELUSER"}}
	for _, name := range names {
		c.args = append(c.args, name)
	}
	_, err := n.do(ctx, c)
	return err
}
