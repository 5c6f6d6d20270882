// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"middleware.hc.cn/operator/internal/redis"
)

// Names of users that are the operator's.
const (
	DefaultUser  = "default"
	ExporterUser = "exporter"
	// BackupUser follows the data of instances, which is all of it, and delays writes for a moment.
	BackupUser = "operator-backup"
	// TrialUser is there for the moment in which the engine is asked what it thinks of rules.
	TrialUser = "operator-trial"
)

// MostUsers is how many users a cluster may have beside the operator's.
const MostUsers = 200

// longestRules is what the rules of all users may have, in bytes: each instance is told all of
// them, and shows them when it is asked. A user's rules seldom have 200.
const longestRules = 128 << 10

// User is one user of the engine's access control list. Rules hold no password, only
// digests, and are each one argument of ACL SETUSER.
type User struct {
	Name  string
	Rules []string
}

func (u User) equal(v User) bool { return u.Name == v.Name && slices.Equal(u.Rules, v.Rules) }

// exporterRules let the exporter, an image of the author's choice, read figures and no data.
// It reads no settings, because those hold the password that instances log in to each other
// with; no entries of the slow log, which are commands with their keys and values; and no list
// of clients, who name themselves as they like.
var exporterRules = []string{"on", "resetchannels", "-@all", "+ping", "+info", "+cluster|info", "+cluster|nodes", "+cluster|slots",
	"+cluster|myid",
	"+slowlog|len", "+latency|latest", "+latency|histogram", "+client|setname", "+command|count"}

// backupRules let a backup be taken, and nothing else: no key can be named with them.
var backupRules = append([]string{"on", "resetchannels", "-@all"}, strings.Fields(redis.RightsToBackUp)...)

// LiveRights are what the user of backups needs besides on an instance while an archive of the cluster is written: to see slots that the
// engine moves. They are set on instances that run, and are in no file: a rule that an engine does not know would keep it from starting.
func LiveRights(archived bool, engine, version string) []string {
	v, err := semver.NewVersion(version)
	if !archived || engine != string(redis.EngineValkey) || err != nil || v.Major() < 9 {
		return nil
	}
	return []string{redis.RightToSeeJobs}
}

// markPrefix begins a pattern of keys that the exporter is given, and that means nothing to
// it: it says which users an instance was given. Engines show rules in words of their own,
// which differ from version to version.
const markPrefix = "~users:"

// AllUsers are the users beside default: those that were asked for, the one of backups and, last, the exporter's,
// which is marked with what the others are.
func (s State) AllUsers() []User {
	backup := User{Name: BackupUser, Rules: append(slices.Clone(backupRules), "#"+Digest(s.Backup))}
	exporter := User{Name: ExporterUser, Rules: append(slices.Clone(exporterRules), "#"+Digest(s.Exporter), markPrefix+s.UsersDigest())}
	return append(slices.Clone(s.Users), backup, exporter)
}

// UsersDigest identifies what AllUsers are.
func (s State) UsersDigest() string {
	return Digest(strings.Join(exporterRules, " ") + Digest(s.Exporter) + strings.Join(backupRules, " ") + Digest(s.Backup) + stored(s.Users))
}

// ShownUsers is the UsersDigest of an instance, by its users beside default, each as it shows
// them. It is empty when they are not those of the state, or not known to be, or when the user of
// backups has not just the live rights that he is to have.
func (s State) ShownUsers(shown map[string]string, live []string) string {
	names := []string{BackupUser, ExporterUser}
	for _, user := range s.Users {
		names = append(names, user.Name)
	}
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(maps.Keys(shown))) {
		return ""
	}
	has := slices.Contains(strings.Fields(shown[BackupUser]), redis.RightToSeeJobs)
	if has != slices.Contains(live, redis.RightToSeeJobs) {
		return ""
	}
	for rule := range strings.FieldsSeq(shown[ExporterUser]) {
		if digest, marked := strings.CutPrefix(rule, markPrefix); marked {
			return digest
		}
	}
	return ""
}

// stored writes users as lines, in the form of the engine's own ACL files.
func stored(users []User) string {
	var lines strings.Builder
	for _, user := range users {
		lines.WriteString("user " + user.Name + " " + strings.Join(user.Rules, " ") + "\n")
	}
	return lines.String()
}

// storedUsers reads what stored wrote. What does not look like it is left out: a Secret that
// somebody edited must not become more than users.
func storedUsers(text string) []User {
	var users []User
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 2 && words[0] == "user" && checkUserName(words[1]) == nil {
			users = append(users, User{Name: words[1], Rules: joinSelectors(words[2:])})
		}
	}
	return users
}

var (
	userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	// A command or a category, perhaps with a subcommand.
	commandRule = regexp.MustCompile(`^[+-]@?[A-Za-z0-9][A-Za-z0-9_.-]*(\|[A-Za-z0-9_.-]+)?$`)
	digestRule  = regexp.MustCompile(`^#[0-9a-f]{64}$`)
	// Printable ASCII but white space, parentheses, quotes and backslashes: what stays one
	// word in every form that rules are written in.
	plainRule = regexp.MustCompile(`^[!#-'*-\[\]-~]+$`)
	// A pattern of keys (%R~, %W~, %RW~, ~) or channels (&).
	patternRule = regexp.MustCompile(`^(~|%(R|W|RW|WR)~|&).+$`)
)

// plainRules stand for themselves.
var plainRules = map[string]bool{
	"on": true, "off": true, "allkeys": true, "resetkeys": true, "allchannels": true, "resetchannels": true,
	"allcommands": true, "nocommands": true, "sanitize-payload": true,
}

// harmless are commands of the category @admin that users may be given by name: they read
// figures.
var harmless = []string{"+slowlog|get", "+slowlog|len", "+latency|latest", "+latency|history", "+latency|histogram", "+client|list"}

// ParseUsers reads the Secret of spec.auth.aclSecretName: a key is the name of a user, its
// value the rules in the engine's own words, such as `on >password ~cache:* +@read`. No user
// gets a command of the category @admin (ACL, CONFIG, CLUSTER …, DEBUG, MODULE, SHUTDOWN,
// REPLICAOF …), whatever the rules say: with those it could make itself the operator. The
// error names every key that cannot be used, with what to do about it, and repeats no value.
func ParseUsers(data map[string][]byte) ([]User, error) {
	if len(data) > MostUsers {
		return nil, fmt.Errorf("holds %d users: %d at most", len(data), MostUsers)
	}
	total := 0
	for _, rules := range data {
		total += len(rules)
	}
	if total > longestRules {
		return nil, fmt.Errorf("holds rules of %d bytes: %d at most", total, longestRules)
	}
	var users []User
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(data)) {
		rules, err := parseRules(string(data[name]))
		if err = errors.Join(checkUserName(name), err); err != nil {
			problems = append(problems, fmt.Errorf("key %s: %w", name, err))
			continue
		}
		users = append(users, User{Name: name, Rules: rules})
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return users, nil
}

func checkUserName(name string) error {
	switch {
	case name == DefaultUser || name == ExporterUser || name == BackupUser || name == TrialUser:
		return errors.New("is the operator's user: choose another name")
	case !userName.MatchString(name):
		return errors.New("is no name of a user: use up to 64 letters, digits, dots, hyphens and underscores, beginning with a letter or digit")
	}
	return nil
}

// parseRules checks the rules of a user and makes them ready for the engine: passwords
// become digests, and what nobody may have is taken away at the end, where it wins.
func parseRules(text string) ([]string, error) {
	if strings.ContainsAny(strings.TrimSpace(text), "\n\r") {
		return nil, errors.New("rules stand on one line")
	}
	var rules []string
	for i, word := range joinSelectors(strings.Fields(text)) {
		rule, err := parseRule(word)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		rules = append(rules, rule)
	}
	if len(rules) == 0 {
		return nil, errors.New("has no rules: write such as on >password ~* +@read")
	}
	return restrict(rules), nil
}

// joinSelectors puts the words of a selector, which stand in parentheses, together.
func joinSelectors(words []string) []string {
	var rules []string
	open := false
	for _, word := range words {
		if open {
			rules[len(rules)-1] += " " + word
		} else {
			rules = append(rules, word)
		}
		open = strings.HasPrefix(rules[len(rules)-1], "(") && !strings.HasSuffix(word, ")")
	}
	return rules
}

func parseRule(word string) (string, error) {
	if inner, ok := strings.CutPrefix(word, "("); ok {
		return parseSelector(inner)
	}
	if password, ok := strings.CutPrefix(word, ">"); ok {
		if password == "" || len(password) > MaxPassword {
			return "", fmt.Errorf("a password has 1 to %d bytes", MaxPassword)
		}
		return "#" + Digest(password), nil
	}
	switch {
	case plainRules[word], digestRule.MatchString(word):
		return word, nil
	case word == "nopass":
		return "", errors.New("nopass would let everybody in: give the user a password, >password")
	}
	return scopeRule(word)
}

// scopeRule checks a rule about keys, channels or commands.
func scopeRule(word string) (string, error) {
	switch {
	case plainRule.MatchString(word) && patternRule.MatchString(word), commandRule.MatchString(word):
		return word, nil
	case plainRules[word] && strings.HasPrefix(word, "all"), word == "nocommands":
		return word, nil
	}
	return "", errors.New(
		"is none of on, off, >password, #digest, ~keys, %R~keys, %W~keys, &channels, +command, -command, +@category, -@category, allkeys, allchannels, allcommands, resetkeys, resetchannels, nocommands, sanitize-payload, (rules)")
}

func parseSelector(inner string) (string, error) {
	inner, closed := strings.CutSuffix(inner, ")")
	if !closed {
		return "", errors.New("a parenthesis is not closed")
	}
	var rules []string
	for _, word := range strings.Fields(inner) {
		rule, err := scopeRule(word)
		if err != nil {
			return "", fmt.Errorf("in parentheses: %w", err)
		}
		rules = append(rules, rule)
	}
	if len(rules) == 0 {
		return "", errors.New("the parentheses are empty")
	}
	return "(" + strings.Join(restrict(rules), " ") + ")", nil
}

// restrict takes away the commands of @admin, but for harmless ones that the rules name.
func restrict(rules []string) []string {
	restricted := append(slices.Clone(rules), "-@admin")
	for _, rule := range harmless {
		if slices.Contains(rules, rule) {
			restricted = append(restricted, rule)
		}
	}
	return restricted
}
