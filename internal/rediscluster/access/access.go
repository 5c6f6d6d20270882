// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access is who may log in to the instances of a RedisCluster: the passwords of the
// user default, the other users, and how both are kept in the operator's Secret for
// instances that start. All of it is pure but for Reader, which reads Secrets.
package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// MaxPassword is the length in bytes up to which a password is taken.
const MaxPassword = 512

// State is what the operator's Secret holds. Instances accept Password, Next and Previous;
// clients are told Password, and instances log in to each other with it.
type State struct {
	Password string
	// Next is published, and becomes Password, when every instance accepts it. Empty when
	// the password is not to change.
	Next string
	// Previous was published before, and is accepted until its time is over.
	Previous string
	// Exporter is the password of the user exporter, which the metrics exporter logs in as.
	Exporter string
	// Backup is the password of the user BackupUser, which pods that take backups log in as.
	Backup string
	// Users are the users beside default and the operator's, by name.
	Users []User
	// Token is the spec.auth.rotate that the password was last made for.
	Token string
	// ChangedAt is when Next, Password or Previous last changed, to the second.
	ChangedAt time.Time
}

// Stage is how far a change of the password has come; empty when none is under way.
func (s State) Stage() snapshot.PasswordStage {
	switch {
	case s.Next != "":
		return snapshot.PasswordAccepting
	case s.Previous != "":
		return snapshot.PasswordRetiring
	}
	return ""
}

// Digest is how the engine stores a password and shows it (ACL LIST): SHA-256, in hex.
func Digest(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// Accepts are the digests of the passwords that instances accept for the user default,
// sorted.
func (s State) Accepts() []string {
	var digests []string
	for _, password := range []string{s.Password, s.Next, s.Previous} {
		if password != "" {
			digests = append(digests, Digest(password))
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests)
}

// Other is a password that an instance may accept which does not accept Password: it has
// just started, from a file of before.
func (s State) Other() string {
	if s.Next != "" {
		return s.Next
	}
	return s.Previous
}

// Keys of the Secret beside those of the API.
const (
	keyNext     = "next-password"
	keyPrevious = "previous-password"
	keyExporter = "exporter-password"
	// KeyBackup is read by pods that take backups.
	KeyBackup = "backup-password"
	keyUsers  = "users.acl"

	annotationToken   = "redis.middleware.hc.cn/rotate"
	annotationChanged = "redis.middleware.hc.cn/password-changed-at"
)

// errIncomplete says what the operator's Secret lacks.
var errIncomplete = errors.New("lacks the keys " + v1alpha1.SecretKeyPassword + " and " + v1alpha1.SecretKeyConfig)

// parse reads the operator's Secret. edited is a password that somebody wrote into it, which
// instances do not know yet: what they log in to each other with is not what clients are
// told. stale says that the Secret is not as State would write it.
func parse(secret *corev1.Secret) (s State, edited string, stale bool, err error) {
	password, config := string(secret.Data[v1alpha1.SecretKeyPassword]), secret.Data[v1alpha1.SecretKeyConfig]
	link := linkPassword(string(config))
	if password == "" || link == "" || len(password) > MaxPassword {
		return State{}, "", false, errIncomplete
	}
	s = State{
		Password: link, Next: string(secret.Data[keyNext]), Previous: string(secret.Data[keyPrevious]),
		Exporter: string(secret.Data[keyExporter]), Backup: string(secret.Data[KeyBackup]), Users: storedUsers(string(secret.Data[keyUsers])),
		Token: secret.Annotations[annotationToken],
	}
	if at, err := time.Parse(time.RFC3339, secret.Annotations[annotationChanged]); err == nil {
		s.ChangedAt = at
	}
	if password != link {
		edited = password
	}
	return s, edited, s.Exporter == "" || s.Backup == "" || edited != "" || !bytes.Equal(config, []byte(s.Config())), nil
}

// linkPassword is masterauth of redis.conf lines; empty without one.
func linkPassword(config string) string {
	for line := range strings.Lines(config) {
		if args, err := redisconf.SplitArguments(line); err == nil && len(args) == 2 && args[0] == "masterauth" {
			return args[1]
		}
	}
	return ""
}

// Write puts the state into the Secret; other keys and annotations stay.
func (s State) Write(secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range map[string]string{
		v1alpha1.SecretKeyPassword: s.Password, v1alpha1.SecretKeyConfig: s.Config(),
		keyNext: s.Next, keyPrevious: s.Previous, keyExporter: s.Exporter, KeyBackup: s.Backup, keyUsers: stored(s.Users),
	} {
		delete(secret.Data, key)
		if value != "" {
			secret.Data[key] = []byte(value)
		}
	}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[annotationToken] = s.Token
	secret.Annotations[annotationChanged] = s.ChangedAt.UTC().Format(time.RFC3339)
}

// Config is the state as redis.conf lines, which an instance reads when it starts. Passwords
// that are only to be recognized stand there as digests; whatever bytes masterauth holds,
// they stay one argument. The user of the link is named so that a master without a password
// takes it too.
func (s State) Config() string {
	rules := []string{"on", "~*", "&*", "+@all"}
	for _, digest := range s.Accepts() {
		rules = append(rules, "#"+digest)
	}
	lines := []redisconf.Setting{userLine(User{Name: DefaultUser, Rules: rules})}
	for _, user := range s.AllUsers() {
		lines = append(lines, userLine(User{Name: user.Name, Rules: append([]string{"reset"}, user.Rules...)}))
	}
	lines = append(lines,
		redisconf.Setting{Name: "masteruser", Args: []string{DefaultUser}},
		redisconf.Setting{Name: "masterauth", Args: []string{s.Password}})
	var config strings.Builder
	for _, line := range lines {
		config.WriteString(line.Line() + "\n")
	}
	return config.String()
}

func userLine(user User) redisconf.Setting {
	return redisconf.Setting{Name: "user", Args: append([]string{user.Name}, user.Rules...)}
}

// New is the state of a new cluster. password is empty for a random one.
func New(password, token string, now time.Time) State {
	if password == "" {
		password = rand.Text()
	}
	return State{Password: password, Exporter: rand.Text(), Backup: rand.Text(), Token: token, ChangedAt: now}
}
