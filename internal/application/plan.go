// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import "strings"

// Step is what a reconciliation does. It is one of the types below.
type Step interface{ step() }

type (
	// Leave does nothing: the Application is being deleted, and Kubernetes removes
	// the Deployment by its owner reference.
	Leave struct{}
	// Pause does nothing: a person asked to leave the Deployment as it is.
	Pause struct{}
	// Refuse does nothing: the Application is wrong, and Message says how.
	Refuse struct{ Message string }
	// Yield does nothing: someone else's Deployment is in the way. Looking again is
	// the only way to learn that it is gone.
	Yield struct{ Message string }
	// AwaitDeletion waits until the Deployment, which is being deleted, is gone.
	AwaitDeletion struct{}
	// Make makes the Deployment, which does not exist.
	Make struct{}
	// Restore applies the template to the Deployment, which differs from it.
	Restore struct{}
	// Keep does nothing: the Deployment is as the template says.
	Keep struct{}
)

func (Leave) step()         {}
func (Pause) step()         {}
func (Refuse) step()        {}
func (Yield) step()         {}
func (AwaitDeletion) step() {}
func (Make) step()          {}
func (Restore) step()       {}
func (Keep) step()          {}

// Plan chooses the step. The first rule that applies wins. It is pure.
func Plan(s *Snapshot) Step {
	for _, rule := range []func(*Snapshot) Step{
		leave, hold, refuse, yield, awaitDeletion, makeDeployment, restore,
	} {
		if step := rule(s); step != nil {
			return step
		}
	}
	return Keep{}
}

func leave(s *Snapshot) Step {
	if !s.Deleting {
		return nil
	}
	return Leave{}
}

func hold(s *Snapshot) Step {
	if !s.Paused {
		return nil
	}
	return Pause{}
}

func refuse(s *Snapshot) Step {
	if len(s.Refused) == 0 {
		return nil
	}
	sentences := make([]string, 0, len(s.Refused))
	for _, refused := range s.Refused {
		sentences = append(sentences, refused.Error())
	}
	return Refuse{Message: strings.Join(sentences, "; ")}
}

func yield(s *Snapshot) Step {
	if s.Foreign == "" {
		return nil
	}
	return Yield{Message: s.Foreign}
}

func awaitDeletion(s *Snapshot) Step {
	if s.Deployment == nil || s.Deployment.DeletionTimestamp == nil {
		return nil
	}
	return AwaitDeletion{}
}

func makeDeployment(s *Snapshot) Step {
	if s.Deployment != nil || !s.Differs {
		return nil
	}
	return Make{}
}

func restore(s *Snapshot) Step {
	if !s.Differs {
		return nil
	}
	return Restore{}
}
