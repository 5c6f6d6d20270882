// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// readAccess reads the Secrets now, whatever is remembered of them.
func (a *Actor) readAccess(ctx context.Context, cluster *v1alpha1.RedisCluster) (access.Reading, error) {
	return access.Reader{Client: a.Client, ServiceAccount: a.ServiceAccount}.Read(ctx, cluster)
}

// createAuth makes the operator's own Secret: the password as it is, for clients, and as
// redis.conf lines, for instances. Its password is the one of spec.auth.secretName, or a
// random one. A Secret that was deleted while instances run is made as it was.
func (a *Actor) createAuth(ctx context.Context, s Subject) error {
	cluster, now := s.Cluster, a.Now()
	reading, err := a.readAccess(ctx, cluster)
	if err != nil {
		return err
	}
	if reading.AskedProblem != "" {
		return &StallError{Cause: "PasswordUnavailable", Message: reading.AskedProblem}
	}
	state := access.New(reading.Asked.Password, reading.Asked.Token, now)
	if s.Access != nil {
		state = *s.Access
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: cluster.AuthSecretName(),
			Labels: map[string]string{apply.ManagedByLabel: apply.ManagedByValue, v1alpha1.LabelCluster: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))},
		},
		Type: corev1.SecretTypeOpaque,
	}
	state.Write(secret)
	err = a.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return &StallError{
			Cause: "NameTaken",
			Message: fmt.Sprintf("Secret %s exists and was not made for this cluster: delete it, or choose another name for the cluster",
				secret.Name)}
	}
	if err != nil {
		return fmt.Errorf("create the Secret of the password: %w", err)
	}
	return nil
}

// UsersRefused are users whose rules an instance refused, and why, with a remedy.
type UsersRefused struct {
	Users []access.User
	Why   string
}

// changePassword takes the Secret to the next stage. What was decided is checked again on
// what the Secret holds now, and the update fails when somebody else changed it meanwhile.
func (a *Actor) changePassword(ctx context.Context, s Subject, step plan.ChangePassword) (*UsersRefused, error) {
	now := a.Now()
	reading, err := a.readAccess(ctx, s.Cluster)
	if err != nil {
		return nil, err
	}
	if reading.State == nil {
		return nil, fmt.Errorf("the Secret of the password cannot be changed: %s", reading.Problem)
	}
	state := *reading.State
	switch {
	case step.To == plan.AcceptPassword && state.Due(reading.Asked):
		state = state.Accept(reading.Asked, now)
	case step.To == plan.AcceptUsers && state.UsersDue(reading.Asked):
		why, err := a.tryUsers(ctx, s, step.On, reading.Asked.Users)
		if why != "" {
			return &UsersRefused{Users: reading.Asked.Users, Why: why}, nil
		}
		if err != nil {
			return nil, err
		}
		state.Users = reading.Asked.Users
	case step.To == plan.PublishPassword && state.Stage() == snapshot.PasswordAccepting && !state.Due(reading.Asked):
		state = state.Publish(now)
	case step.To == plan.RetirePassword && state.Stage() == snapshot.PasswordRetiring && !state.Due(reading.Asked):
		state = state.Retire(now)
	default:
		return nil, nil // it has changed since it was observed, and is observed again
	}
	secret := reading.Secret
	state.Write(secret)
	if err := a.Client.Update(ctx, secret); err != nil {
		return nil, fmt.Errorf("change the Secret of the password: %w", err)
	}
	return nil, nil
}

// setAccess makes instances accept the passwords and users of the Secret: passwords and users first, so that
// an instance accepts a password before any other logs in with it.
func (a *Actor) setAccess(ctx context.Context, s Subject, step plan.SetAccess) error {
	if s.Access == nil {
		return fmt.Errorf("the password is not known")
	}
	state := *s.Access
	nodes := make(map[string]*redis.Node, len(step.On))
	for _, on := range step.On {
		nodes[on.Pod] = a.node(s, on)
	}
	err := each(ctx, step.On, func(ctx context.Context, on plan.Target) error {
		node, err := a.identified(ctx, s, on)
		if err != nil {
			return err
		}
		if err := node.SetPasswords(ctx, state.Accepts()); err != nil {
			return fmt.Errorf("set the passwords of %s: %w", on.Pod, err)
		}
		return setUsers(ctx, on, node, state, step.Live[on.Pod])
	})
	if err != nil {
		return err
	}
	return each(ctx, step.On, func(ctx context.Context, on plan.Target) error {
		if err := nodes[on.Pod].SetLink(ctx, state.Password); err != nil {
			return fmt.Errorf("set masterauth of %s: %w", on.Pod, err)
		}
		return nil
	})
}

// setUsers makes an instance have the users and no others. The last one is marked, so that
// whoever looks at it in the middle sees that it is not done.
func setUsers(ctx context.Context, on plan.Target, node *redis.Node, state access.State, live []string) error {
	found, err := node.Access(ctx)
	if err != nil {
		return fmt.Errorf("read the users of %s: %w", on.Pod, err)
	}
	if state.ShownUsers(found.Users, live) == state.UsersDigest() {
		return nil
	}
	for _, user := range state.AllUsers() {
		delete(found.Users, user.Name)
	}
	if others := slices.Sorted(maps.Keys(found.Users)); len(others) > 0 {
		if err := node.DeleteUsers(ctx, others...); err != nil {
			return fmt.Errorf("delete users of %s: %w", on.Pod, err)
		}
	}
	for _, user := range state.AllUsers() {
		if user.Name == access.BackupUser {
			user.Rules = slices.Concat(user.Rules, live)
		}
		if err := node.SetUser(ctx, user.Name, user.Rules); err != nil {
			return fmt.Errorf("set user %s of %s: %w", user.Name, on.Pod, err)
		}
	}
	return nil
}

// tryUsers asks instances whether they take the rules of users, with a user that cannot log
// in. why says which rules an instance refuses, with a remedy; empty when all are taken.
func (a *Actor) tryUsers(ctx context.Context, s Subject, on []plan.Target, users []access.User) (why string, err error) {
	whys := make([]string, len(on))
	err = each(ctx, indices(on), func(ctx context.Context, i int) error {
		node, err := a.identified(ctx, s, on[i])
		if err != nil {
			return err
		}
		for _, user := range users {
			err := node.SetUser(ctx, access.TrialUser, append(slices.Clone(user.Rules), "off", "resetpass"))
			if errors.Is(err, redis.ErrRefused) && !errors.Is(err, redis.ErrAuth) && !errors.Is(err, redis.ErrLoading) {
				whys[i] = fmt.Sprintf("spec.auth.aclSecretName: key %s: %s does not take the rules: %v; correct them", user.Name, on[i].Pod, err)
				break
			}
			if err != nil {
				return fmt.Errorf("try the rules of user %s on %s: %w", user.Name, on[i].Pod, err)
			}
		}
		if err := node.DeleteUsers(ctx, access.TrialUser); err != nil {
			return fmt.Errorf("delete user %s of %s: %w", access.TrialUser, on[i].Pod, err)
		}
		return nil
	})
	for _, why := range whys {
		if why != "" {
			return why, nil
		}
	}
	return "", err
}

func indices[T any](of []T) []int {
	all := make([]int, len(of))
	for i := range all {
		all[i] = i
	}
	return all
}
