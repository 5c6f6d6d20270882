// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// CreateAuth makes the Secret that holds the password.
type CreateAuth struct{ base }

func (CreateAuth) Name() string { return "CreateAuth" }

// SetAccess makes running instances accept the passwords and users of the operator's Secret, and log in to
// their masters with the password that it says.
type SetAccess struct {
	base
	On []Target
	// Live are, by pod, rights of the user of backups that are in no file.
	Live map[string][]string
}

// ChangePassword takes the operator's Secret to the next stage of a change.
type ChangePassword struct {
	base
	To PasswordStep
	// On are the instances that are asked whether they take the users.
	On []Target
}

// PasswordStep is what a ChangePassword does.
type PasswordStep string

// The steps of a change, in their order.
const (
	// AcceptPassword makes what is asked for the next password.
	AcceptPassword PasswordStep = "Accept"
	// AcceptUsers writes down the users that are asked for, if all instances take them: one
	// that finds rules in its file which it does not know does not start.
	AcceptUsers PasswordStep = "AcceptUsers"
	// PublishPassword tells clients the next password.
	PublishPassword PasswordStep = "Publish"
	// RetirePassword ends that the previous password is accepted.
	RetirePassword PasswordStep = "Retire"
)

// Name implements Step.
func (SetAccess) Name() string { return "SetAccess" }

// Name implements Step.
func (ChangePassword) Name() string { return "ChangePassword" }

// filesArrive is how long a changed Secret takes at most to be in the files of every pod: the
// kubelet looks once a minute, half a minute more by chance (syncFrequency and its jitter). A
// container that restarts earlier reads the file of before.
const filesArrive = 2 * time.Minute

// planAccess changes the ACL users of instances, in an order in which nobody who is told a
// password is refused: every instance accepts the next one before clients are told it, and
// the previous one until its time is over.
func planAccess(in input) Step {
	auth := in.snap.Auth
	if auth.Wanted == nil {
		return nil
	}
	if auth.Due {
		return ChangePassword{base: base{"the Secret of the password is not what is asked for"}, To: AcceptPassword}
	}
	if reachable := in.snap.Reachable(); auth.UsersDue && in.snap.Formed && len(reachable) > 0 {
		step := ChangePassword{base: base{"the users are not those that are asked for"}, To: AcceptUsers}
		for _, pod := range reachable {
			step.On = append(step.On, target(pod))
		}
		return step
	}
	set := SetAccess{}
	var names []string
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Access != nil && !pod.Terminating && !authorizes(pod.Redis.Access, auth.Wanted) {
			set.On, names = append(set.On, target(pod)), append(names, pod.Name)
			if live := pod.Redis.Access.Live; len(live) > 0 {
				if set.Live == nil {
					set.Live = map[string][]string{}
				}
				set.Live[pod.Name] = live
			}
		}
	}
	if len(set.On) > 0 {
		set.Reason = "these instances do not accept the passwords and users of the Secret: " + list(names)
		return set
	}
	if auth.Changing == "" || in.now.Before(PasswordStageEnds(auth, in.desired.PreviousPasswordFor)) || AccessPending(in.snap) != "" ||
		!snapshotComplete(in).Holds {
		return nil
	}
	if auth.Changing == snapshot.PasswordAccepting {
		return ChangePassword{base: base{"every instance accepts the next password: clients are told it"}, To: PublishPassword}
	}
	return ChangePassword{base: base{"the previous password has been accepted for as long as was asked"}, To: RetirePassword}
}

// PasswordStageEnds is when the present stage of a change ends at the earliest.
func PasswordStageEnds(auth snapshot.Auth, previousFor time.Duration) time.Time {
	if auth.Changing == snapshot.PasswordRetiring {
		return auth.ChangedAt.Add(max(previousFor, filesArrive))
	}
	return auth.ChangedAt.Add(filesArrive)
}

// AccessPending names an instance that is not known to accept the passwords and users of the Secret, and says
// why; empty when there is none.
func AccessPending(s *snapshot.Snapshot) string {
	for i := range s.Instances {
		pod := &s.Instances[i]
		switch {
		case s.Auth.Wanted == nil:
		case pod.Redis == nil:
			return fmt.Sprintf("%s does not answer: %s", pod.Name, pod.Error)
		case pod.Redis.Access == nil:
			return fmt.Sprintf("%s does not tell its ACL users", pod.Name)
		case !authorizes(pod.Redis.Access, s.Auth.Wanted):
			return fmt.Sprintf("%s does not accept the passwords and users of the Secret", pod.Name)
		}
	}
	return ""
}

func authorizes(found, wanted *snapshot.Access) bool {
	return slices.Equal(found.Passwords, wanted.Passwords) && found.Link == wanted.Link && found.Users == wanted.Users
}

func planAuth(in input) Step {
	auth := in.snap.Auth
	switch {
	case auth.Known:
		return nil
	case auth.Absent:
		return CreateAuth{base{"the Secret that holds the password does not exist"}}
	default:
		return Stall{base: base{auth.Problem}, Cause: "PasswordUnavailable"}
	}
}
