// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// given is a Secret of the user's that the operator may read.
func given(name string, data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{v1alpha1.LabelAuth: "true"}},
		Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

// The password is the one that was given; a Secret that was deleted comes back as it was; one that cannot be used gives none.
func TestCreateAuthUsesWhatIsGiven(t *testing.T) {
	known := &access.State{Password: "known", Exporter: "e", Backup: "b"}
	for name, tt := range map[string]struct {
		key   string
		known *access.State
		want  string
		stall string
	}{
		"given":                        {"password", nil, "given", ""},
		"instances run with another":   {"password", known, "known", ""},
		"the Secret given has no such": {"other", nil, "", "must hold 1 to"},
	} {
		b := newBench(t, interceptor.Funcs{}, given("mine", map[string]string{tt.key: "given"}))
		b.subject.Cluster.Spec.Auth.SecretName, b.subject.Access = "mine", tt.known
		err := b.do(plan.CreateAuth{})
		var stall *StallError
		if errors.As(err, &stall) != (tt.stall != "") || stall != nil && (stall.Cause != "PasswordUnavailable" ||
			!strings.Contains(stall.Message, tt.stall)) || stall == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var secret corev1.Secret
		err = b.actor.Client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "c-auth"}, &secret)
		if got := string(secret.Data["password"]); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: the password is %q, %v", name, got, err)
		}
	}
}

// withUsers is a bench whose Secret is in a state, for a cluster that asks for one user. It counts updates.
func withUsers(t *testing.T, state access.State, updates *int) *bench {
	t.Helper()
	b := secured(t, state, state.Token, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, how ...client.UpdateOption) error {
			*updates++
			return c.Update(ctx, o, how...)
		}})
	users := given("users", map[string]string{"app": "on ~* +get"})
	if err := b.actor.Client.Create(t.Context(), users); err != nil {
		t.Fatal(err)
	}
	b.subject.Cluster.Spec.Auth.ACLSecretName = "users"
	return b
}

// Users are tried on the instances first: what one refuses is told and not written, what one cannot answer is tried again.
func TestUsersAreTried(t *testing.T) {
	for name, tt := range map[string]struct {
		command, reply string
		refused        bool
		fails          string
	}{
		"taken":                       {},
		"refused":                     {"ACL SETUSER", "ERR Error in ACL SETUSER modifier", true, ""},
		"loading":                     {"ACL SETUSER", "LOADING Redis is loading the dataset", false, "try the rules of user app on c-1-0"},
		"the operator is not let in":  {"ACL SETUSER", "NOPERM this user has no permissions", false, "try the rules of user app on c-1-0"},
		"the trial cannot be ended":   {"ACL DELUSER", "ERR no", false, "of c-1-0"},
		"an instance is another node": {"CLUSTER MYID", "ERR no", false, "identify c-1-0"},
	} {
		updates := 0
		b := withUsers(t, access.State{Password: "one", Exporter: "e", Backup: "b"}, &updates)
		if tt.command != "" {
			b.world.FailNext(b.nodes[1], tt.command, redistest.Failure{Kind: redistest.ReplyError, Reply: tt.reply})
		}
		result, err := b.actor.Do(t.Context(), b.subject, plan.ChangePassword{To: plan.AcceptUsers, On: b.targets})
		if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) ||
			(result.UsersRefused != nil) != tt.refused {
			t.Errorf("%s: %+v, %v", name, result.UsersRefused, err)
		}
		if tt.refused && (!strings.Contains(result.UsersRefused.Why, "key app: c-1-0 does not take the rules") ||
			len(result.UsersRefused.Users) != 1) {
			t.Errorf("%s: %+v", name, result.UsersRefused)
		}
		written := !tt.refused && tt.fails == ""
		if got := b.state().Users; (len(got) == 1) != written || (updates == 1) != written {
			t.Errorf("%s: users %v after %d updates", name, got, updates)
		}
		for i := range b.nodes {
			found, err := b.pool.Node(b.nodes[i].Addr(), redis.Credentials{}).Access(t.Context())
			if _, left := found.Users[access.TrialUser]; err != nil || left && tt.command != "ACL DELUSER" && tt.command != "CLUSTER MYID" {
				t.Errorf("%s: the trial is left on node %d: %v", name, i, err)
			}
		}
	}
}

// A stage that is not due writes nothing, and none is taken in the place of another one.
func TestOnlyTheStageThatIsAskedFor(t *testing.T) {
	accepting, retiring := access.State{Password: "one", Next: "two", Exporter: "e", Backup: "b"},
		access.State{Password: "two", Previous: "one", Exporter: "e", Backup: "b"}
	for name, tt := range map[string]struct {
		state   access.State
		to      plan.PasswordStep
		updates int
		done    func(access.State) bool
	}{
		"publish, while users are due": {accepting, plan.PublishPassword, 1,
			func(s access.State) bool { return s.Previous == "one" && s.Users == nil }},
		"accept, while one retires":    {retiring, plan.AcceptPassword, 0, func(s access.State) bool { return s.Previous == "one" }},
		"retire, while one is coming":  {accepting, plan.RetirePassword, 0, func(s access.State) bool { return s.Next == "two" }},
		"publish, when none is coming": {retiring, plan.PublishPassword, 0, func(s access.State) bool { return s.Previous == "one" }},
	} {
		updates := 0
		b := withUsers(t, tt.state, &updates)
		b.must(plan.ChangePassword{To: tt.to, On: b.targets})
		if state := b.state(); updates != tt.updates || !tt.done(state) {
			t.Errorf("%s: %+v after %d updates", name, state, updates)
		}
	}
	updates := 0
	b := withUsers(t, access.State{Password: "one", Exporter: "e", Backup: "b", Users: []access.User{}}, &updates)
	b.must(plan.ChangePassword{To: plan.AcceptUsers, On: b.targets})
	b.must(plan.ChangePassword{To: plan.AcceptUsers, On: b.targets})
	if updates != 1 {
		t.Errorf("the same users are written %d times", updates)
	}
}

// A Secret that is not the operator's is never written, and one that cannot be read is not taken for one that can.
func TestPasswordOfAForeignSecret(t *testing.T) {
	updates := 0
	b := withUsers(t, access.State{Password: "one", Next: "two", Exporter: "e", Backup: "b"}, &updates)
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: "n", Name: "c-auth"}
	if err := b.actor.Client.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	secret.Labels = nil
	if err := b.actor.Client.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	updates = 0
	if err := b.do(plan.ChangePassword{To: plan.PublishPassword}); err == nil ||
		!strings.Contains(err.Error(), "not made for this cluster") || updates > 0 {
		t.Errorf("%v after %d updates", err, updates)
	}
	unread := errors.New("timeout")
	b = newBench(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
		how ...client.GetOption) error {
		if _, secret := o.(*corev1.Secret); secret {
			return unread
		}
		return c.Get(ctx, key, o, how...)
	}})
	for _, step := range []plan.Step{plan.ChangePassword{To: plan.PublishPassword}, plan.CreateAuth{}} {
		if err := b.do(step); !errors.Is(err, unread) {
			t.Errorf("%s: %v", step.Name(), err)
		}
	}
}

// As long as one instance does not accept the password, none logs in with it. Users that stay are not taken away in between: that
// would end the connections of their clients.
func TestSetAccessInBetween(t *testing.T) {
	b := world3(t, interceptor.Funcs{})
	b.subject.Access.Users = []access.User{{Name: "app", Rules: []string{"on", "+get", "~*"}}}
	told := b.told("CONFIG SET MASTERAUTH")
	b.world.FailNext(b.nodes[1], "ACL SETUSER", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
	if err := b.do(plan.SetAccess{On: b.targets}); err == nil || len(*told) > 0 {
		t.Errorf("%v, told %v", err, *told)
	}
	b.must(plan.SetAccess{On: b.targets})
	b.subject.Access.Users = []access.User{{Name: "app", Rules: []string{"on", "+get", "+set", "~*"}}}
	if err := b.pool.Node(b.nodes[0].Addr(), redis.Credentials{Password: "one"}).SetUser(t.Context(), "former", []string{"on"}); err != nil {
		t.Fatal(err)
	}
	deleted := b.told("ACL DELUSER")
	b.must(plan.SetAccess{On: b.targets})
	if len(*deleted) != 1 || (*deleted)[0] != "0: ACL DELUSER former" {
		t.Errorf("told %v", *deleted)
	}
	if err := b.pool.Node(b.nodes[0].Addr(), redis.Credentials{Password: "one"}).SetUser(t.Context(), "former", []string{"on"}); err != nil {
		t.Fatal(err)
	}
	b.world.FailNext(b.nodes[0], "ACL DELUSER", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
	b.subject.Access.Users = nil
	if err := b.do(plan.SetAccess{On: b.targets}); err == nil || !strings.Contains(err.Error(), "delete users of c-0-0") {
		t.Errorf("a user that stays: %v", err)
	}
}
