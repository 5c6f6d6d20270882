// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

var (
	before = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	later  = before.Add(time.Hour)
)

// What is written is read again, whatever bytes the passwords hold, and is not stale then.
func TestStateSurvivesTheSecret(t *testing.T) {
	users, err := ParseUsers(map[string][]byte{"alice": []byte("on >wonder ~a* (~b* +get) +@read"), "zed": []byte("off")})
	if err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]State{
		"at rest":  {Password: "p", Exporter: "e", Backup: "b", ChangedAt: before},
		"changing": {Password: "p", Next: "n", Previous: "o", Exporter: "e", Backup: "b", Users: users, Token: "t", ChangedAt: before},
		"hostile":  {Password: "a\"b'c\\d \r\nuser mallory on nopass +@all\x00\xff#", Exporter: "e", Backup: "b", ChangedAt: before},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{}
			State{Password: "x", Next: "stays not", Previous: "stays not"}.Write(secret)
			state.Write(secret)
			got, edited, stale, err := parse(secret)
			if diff := cmp.Diff(state, got); diff != "" || edited != "" || stale || err != nil {
				t.Errorf("(-written +read):\n%s edited %q, stale %v, %v", diff, edited, stale, err)
			}
			if strings.Contains(state.Config(), "mallory") && strings.Count(state.Config(), "\n") != 5 {
				t.Errorf("auth.conf has other lines than it should:\n%s", state.Config())
			}
		})
	}
}

// Other rules for the exporter, of another version of the operator, reach clusters that run: the Secret is written anew without
// a change of the password, and instances that have the users of before are recognized, whatever words they show them in.
func TestOtherExporterRulesAreRolledOut(t *testing.T) {
	present := exporterRules
	defer func() { exporterRules = present }()
	exporterRules = append(slices.Clone(present), "+slowlog|get")
	secret := &corev1.Secret{}
	state := State{Password: "p", Exporter: "e", Backup: "b", ChangedAt: before}
	state.Write(secret)
	shown := map[string]string{BackupUser: "on",
		ExporterUser: "on sanitize-payload resetchannels -@all +ping " + markPrefix + state.UsersDigest()}
	if got := state.ShownUsers(shown, nil); got != state.UsersDigest() {
		t.Errorf("the same users are not recognized: %s", got)
	}

	exporterRules = present
	state, _, stale, err := parse(secret)
	if err != nil || !stale || !state.Due(Asked{Stale: stale}) || state.ShownUsers(shown, nil) == state.UsersDigest() {
		t.Errorf("stale %v, instances show %s, want another than %s (%v)", stale, state.ShownUsers(shown, nil), state.UsersDigest(), err)
	}
	after := state.Accept(Asked{Stale: stale}, later)
	after.Write(secret)
	read, _, stale, err := parse(secret)
	if diff := cmp.Diff(state, read); diff != "" || stale || err != nil || strings.Contains(read.Config(), "slowlog|get") {
		t.Errorf("(-before +after):\n%s stale %v, %v:\n%s", diff, stale, err, read.Config())
	}
}

// A Secret that somebody wrote a password into is read as the state that instances know, and that password.
func TestEditedSecret(t *testing.T) {
	secret := &corev1.Secret{}
	State{Password: "p", Exporter: "e", Backup: "b"}.Write(secret)
	secret.Data["password"] = []byte("by hand")
	state, edited, stale, err := parse(secret)
	if state.Password != "p" || edited != "by hand" || !stale || err != nil {
		t.Errorf("state %+v, edited %q, stale %v, %v", state, edited, stale, err)
	}
	after := state.Accept(Asked{Password: edited, Stale: true}, later)
	if after.Password != "p" || after.Next != "by hand" {
		t.Errorf("accepted as %+v", after)
	}
	for _, key := range []string{"password", "auth.conf"} {
		broken := secret.DeepCopy()
		delete(broken.Data, key)
		if _, _, _, err := parse(broken); err == nil {
			t.Errorf("without %s it is taken", key)
		}
	}
}

func TestStagesOfAChange(t *testing.T) {
	rest := State{Password: "p", Exporter: "e", Backup: "b", Token: "t", ChangedAt: before}
	changing := rest
	changing.Next = "n"
	retiring := rest
	retiring.Previous = "o"
	for name, tt := range map[string]struct {
		state State
		asked Asked
		due   bool
		next  string // after Accept; * for any
		moved bool   // the time is that of the change
	}{
		"nothing is asked":              {state: rest, asked: Asked{Token: "t"}},
		"what is there is given":        {state: rest, asked: Asked{Token: "t", Password: "p"}},
		"another is given":              {state: rest, asked: Asked{Token: "t", Password: "q"}, due: true, next: "q", moved: true},
		"another token":                 {state: rest, asked: Asked{Token: "u"}, due: true, next: "*", moved: true},
		"no token any more":             {state: rest, asked: Asked{}, due: true},
		"another token, and one given":  {state: rest, asked: Asked{Token: "u", Password: "p"}, due: true},
		"the next one is given":         {state: changing, asked: Asked{Token: "t", Password: "n"}, next: "n"},
		"taken back":                    {state: changing, asked: Asked{Token: "t", Password: "p"}, due: true, moved: true},
		"another one before the end":    {state: changing, asked: Asked{Token: "t", Password: "q"}, due: true, next: "q", moved: true},
		"another one while one retires": {state: retiring, asked: Asked{Token: "t", Password: "q"}, due: true, next: "q", moved: true},
		"the Secret is stale":           {state: rest, asked: Asked{Token: "t", Stale: true}, due: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.state.Due(tt.asked); got != tt.due {
				t.Errorf("due: %v", got)
			}
			after := tt.state.Accept(tt.asked, later)
			if after.Next != tt.next && (tt.next != "*" || len(after.Next) < 26) || after.Password != "p" ||
				after.Due(Asked{Token: tt.asked.Token, Password: tt.asked.Password}) {
				t.Errorf("accepted as %+v", after)
			}
			if after.ChangedAt.Equal(later) != tt.moved {
				t.Errorf("changed at %s", after.ChangedAt)
			}
		})
	}
	published := changing.Publish(later)
	if diff := cmp.Diff(State{Password: "n", Previous: "p", Exporter: "e", Backup: "b", Token: "t", ChangedAt: later}, published); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if got := published.Retire(later); got.Previous != "" || got.Password != "n" || got.Stage() != "" {
		t.Errorf("retired as %+v", got)
	}
}

func TestParseUsers(t *testing.T) {
	wonder := "#" + Digest("wonder")
	for name, tt := range map[string]struct {
		rules string
		want  []string
		err   string
	}{
		"usual": {rules: "on >wonder ~cache:* &news +@read -keys",
			want: []string{"on", wonder, "~cache:*", "&news", "+@read", "-keys", "-@admin"}},
		"a digest": {rules: "on " + wonder + "\n", want: []string{"on", wonder, "-@admin"}},
		"subcommands and patterns": {
			rules: "on %R~a %W~b %RW~c +client|id allkeys", want: []string{"on", "%R~a", "%W~b", "%RW~c", "+client|id", "allkeys", "-@admin"}},
		"selectors": {
			rules: "on ~a (~b +get)  (%R~c  +@all)", want: []string{"on", "~a", "(~b +get -@admin)", "(%R~c +@all -@admin)", "-@admin"}},
		"harmless ones of @admin": {
			rules: "on +slowlog|get +config|get", want: []string{"on", "+slowlog|get", "+config|get", "-@admin", "+slowlog|get"}},
		"empty":                     {rules: " ", err: "has no rules"},
		"nopass":                    {rules: "on nopass", err: "give the user a password"},
		"another line":              {rules: "on >x\nuser default on nopass", err: "one line"},
		"reset":                     {rules: "reset", err: "is none of"},
		"an open parenthesis":       {rules: "on (+get", err: "is not closed"},
		"a password in parentheses": {rules: "on (>x +get)", err: "in parentheses"},
		"on in parentheses":         {rules: "on (on +get)", err: "in parentheses"},
		"quotes":                    {rules: `on "+get"`, err: "is none of"},
		"an empty password":         {rules: "on >", err: "1 to 512 bytes"},
		"a long password":           {rules: "on >" + strings.Repeat("x", 513), err: "1 to 512 bytes"},
		"not printable":             {rules: "on ~a\x00b", err: "is none of"},
	} {
		t.Run(name, func(t *testing.T) {
			users, err := ParseUsers(map[string][]byte{"alice": []byte(tt.rules)})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.HasPrefix(err.Error(), "key alice: ") {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, users[0].Rules); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(users, storedUsers(stored(users))); diff != "" {
				t.Errorf("stored and read (-before +after):\n%s", diff)
			}
		})
	}
	if _, err := ParseUsers(map[string][]byte{"a": make([]byte, 100<<10), "b": make([]byte, 100<<10)}); err == nil ||
		err.Error() != "holds rules of 204800 bytes: 131072 at most" {
		t.Errorf("rules that are too long: %v", err)
	}
	for _, name := range []string{"default", "exporter", "operator-backup", "operator-trial", "-x", "a b", strings.Repeat("x", 65)} {
		if _, err := ParseUsers(map[string][]byte{name: []byte("on")}); err == nil {
			t.Errorf("a user may be called %q", name)
		}
	}
}

// An instance has the users of the state when it shows their names and the mark, in whatever words.
func TestShownUsers(t *testing.T) {
	state := State{Password: "p", Exporter: "e", Backup: "b", Users: []User{{Name: "alice", Rules: []string{"on"}}}}
	mark := "on resetchannels -@all " + markPrefix + state.UsersDigest()
	for name, tt := range map[string]struct {
		shown map[string]string
		same  bool
	}{
		"the same":            {shown: map[string]string{"alice": "on sanitize-payload", "exporter": mark, "operator-backup": "on"}, same: true},
		"one is missing":      {shown: map[string]string{"exporter": mark, "operator-backup": ""}},
		"another is missing":  {shown: map[string]string{"alice": "", "exporter": mark}},
		"one too many":        {shown: map[string]string{"alice": "", "bob": "", "exporter": mark, "operator-backup": ""}},
		"marked as others":    {shown: map[string]string{"alice": "", "exporter": "on " + markPrefix + "x", "operator-backup": ""}},
		"the mark is missing": {shown: map[string]string{"alice": "", "exporter": "on", "operator-backup": ""}},
	} {
		if got := state.ShownUsers(tt.shown, nil) == state.UsersDigest(); got != tt.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The right to see an engine's own jobs is for those that know it, and while an archive is written. It is in no file, and counts among what
// an instance shows.
func TestLiveRights(t *testing.T) {
	for name, tt := range map[string]struct {
		archived        bool
		engine, version string
		want            int
	}{
		"Valkey 9":                 {true, "valkey", "9.1.2", 1},
		"Valkey 9, no archive":     {false, "valkey", "9.1.2", 0},
		"Valkey 8":                 {true, "valkey", "8.1.3", 0},
		"Redis 8.4":                {true, "redis", "8.4.0", 0},
		"Redis of the same number": {true, "redis", "9.0.0", 0},
		"not known":                {true, "valkey", "", 0},
	} {
		if got := LiveRights(tt.archived, tt.engine, tt.version); len(got) != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	live := LiveRights(true, "valkey", "9.0.0")
	state := State{Password: "p", Exporter: "e", Backup: "b"}
	if strings.Contains(state.Config(), live[0]) {
		t.Errorf("%s is in the file of every engine", live[0])
	}
	mark := "on " + markPrefix + state.UsersDigest()
	for name, tt := range map[string]struct {
		backup string
		live   []string
		same   bool
	}{
		"has it":                {"on -@all +ping " + live[0] + " #x", live, true},
		"lacks it":              {"on -@all +ping", live, false},
		"is to have it no more": {"on -@all +ping " + live[0], nil, false},
		"never had it":          {"on -@all +ping", nil, true},
	} {
		shown := map[string]string{"exporter": mark, "operator-backup": tt.backup}
		if got := state.ShownUsers(shown, tt.live) == state.UsersDigest(); got != tt.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}
