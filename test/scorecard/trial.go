// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleteWithin is how long an object may take to go, also when a run is broken off.
const deleteWithin = 2 * time.Minute

// lookEvery is how often the object is looked at.
const lookEvery = time.Second

// trial is one run of a test.
type trial struct {
	test
	client    client.Client
	namespace string
	// within is how long the object may take to be Ready and what users expect.
	within time.Duration
	log    *journal
}

// run makes the example, waits for it, deletes it and waits until it is gone.
func (t trial) run(ctx context.Context, list []unstructured.Unstructured) v1alpha3.TestResult {
	example, err := t.prepare(list)
	if err != nil {
		return t.result(v1alpha3.ErrorState, []string{err.Error()}, nil)
	}
	if err := t.client.Create(ctx, example); err != nil {
		return t.refused(example, err)
	}
	t.log.say("made %s %s in the namespace %s", example.GetKind(), example.GetName(), t.namespace)
	result := t.judge(ctx, example)
	if err := t.remove(ctx, example); err != nil {
		result.State, result.Errors = worse(result.State), append(result.Errors, err.Error())
	}
	result.Log = t.log.String()
	return result
}

// prepare returns the example under a name of its own, so that several runs do not meet.
func (t trial) prepare(list []unstructured.Unstructured) (*unstructured.Unstructured, error) {
	example, err := exampleOf(t.kind, list)
	if err != nil {
		return nil, err
	}
	example.SetNamespace(t.namespace)
	example.SetName(strings.ToLower(t.kind.Kind) + "-" + rand.String(5))
	if t.distinguish == nil {
		return example, nil
	}
	return example, t.distinguish(example)
}

// refused is the result when the example cannot be made.
func (t trial) refused(example *unstructured.Unstructured, err error) v1alpha3.TestResult {
	what := fmt.Sprintf("make the example of %s: %v", example.GetKind(), err)
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return t.result(v1alpha3.FailState, []string{what}, []string{"mend the sample in config/samples, which the bundle's example is"})
	case apierrors.IsForbidden(err):
		return t.result(v1alpha3.ErrorState, []string{what},
			[]string{"give the scorecard's service account its role: kubectl apply -n " + t.namespace + " -f test/scorecard/rbac.yaml"})
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return t.result(v1alpha3.ErrorState, []string{what}, []string{"install the operator first, with its CRDs"})
	default:
		return t.result(v1alpha3.ErrorState, []string{what}, nil)
	}
}

// judge waits until the object is Ready and lacks nothing.
func (t trial) judge(ctx context.Context, example *unstructured.Unstructured) v1alpha3.TestResult {
	var last progress
	var lacks []string
	err := wait.PollUntilContextTimeout(ctx, lookEvery, t.within, true, func(ctx context.Context) (bool, error) {
		object := example.DeepCopy()
		if err := t.client.Get(ctx, client.ObjectKeyFromObject(example), object); err != nil {
			return false, t.tolerate(err)
		}
		last, lacks = progressOf(object), nil
		if last.ready {
			services, err := t.addresses(ctx)
			if err != nil {
				return false, t.tolerate(err)
			}
			if lacks, err = t.lacks(object, services); err != nil {
				return false, err
			}
		}
		t.log.change(strings.Join(append([]string{last.says}, lacks...), "; "))
		return last.ready && len(lacks) == 0, nil
	})
	switch {
	case err == nil:
		t.log.say("it is as its users expect")
		return t.result(v1alpha3.PassState, nil, nil)
	case ctx.Err() != nil:
		return t.result(v1alpha3.ErrorState, []string{"it was broken off: " + last.says}, []string{"give the scorecard a longer --wait-time"})
	case errors.Is(err, context.DeadlineExceeded):
		return t.late(ctx, example, last, lacks)
	default:
		return t.result(v1alpha3.ErrorState, []string{err.Error()}, nil)
	}
}

// tolerate passes on the errors that waiting does not help against. An API server may be away for a moment.
func (t trial) tolerate(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return err
	}
	t.log.change(err.Error())
	return nil
}

// late is the result when the time is up.
func (t trial) late(ctx context.Context, example *unstructured.Unstructured, last progress, lacks []string) v1alpha3.TestResult {
	wrong := lacks
	if !last.ready {
		wrong = []string{last.says}
	}
	events, err := t.warnings(ctx, example.GetName())
	if err != nil {
		t.log.say("Events cannot be read: %v", err)
	}
	for _, event := range events {
		t.log.say("%s %s: %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
	}
	for i := range wrong {
		wrong[i] = fmt.Sprintf("after %v: %s", t.within, wrong[i])
	}
	return t.result(v1alpha3.FailState, wrong, suggestions(last, events, t.namespace))
}

// remove deletes the object and waits until it is gone. It does so too when the scorecard is tired of waiting and stops this pod.
func (t trial) remove(ctx context.Context, example *unstructured.Unstructured) error {
	ctx = context.WithoutCancel(ctx)
	if err := t.client.Delete(ctx, example); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", example.GetKind(), example.GetName(), err)
	}
	err := wait.PollUntilContextTimeout(ctx, lookEvery, deleteWithin, true, func(ctx context.Context) (bool, error) {
		err := t.client.Get(ctx, client.ObjectKeyFromObject(example), example.DeepCopy())
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, t.tolerate(err)
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("%s %s was deleted and is not gone after %v: %w", example.GetKind(), example.GetName(), deleteWithin, err)
	}
	t.log.say("it is gone")
	return nil
}

// addresses reads where Services lead.
func (t trial) addresses(ctx context.Context) (addresses, error) {
	var slicesOfEndpoints discoveryv1.EndpointSliceList
	if err := t.client.List(ctx, &slicesOfEndpoints, client.InNamespace(t.namespace)); err != nil {
		return nil, err
	}
	ready := addresses{}
	for _, slice := range slicesOfEndpoints.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready { // nil: unknown, to be taken as ready
				ready[slice.Labels[discoveryv1.LabelServiceName]]++
			}
		}
	}
	return ready, nil
}

// warnings are the Events of kind Warning about the object and its children, whose names begin with its own.
func (t trial) warnings(ctx context.Context, name string) ([]corev1.Event, error) {
	var events corev1.EventList
	if err := t.client.List(ctx, &events, client.InNamespace(t.namespace), client.Limit(1000)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(events.Items, func(e corev1.Event) bool {
		return e.Type != corev1.EventTypeWarning || !strings.HasPrefix(e.InvolvedObject.Name, name)
	}), nil
}

func (t trial) result(state v1alpha3.State, errs, suggestions []string) v1alpha3.TestResult {
	return v1alpha3.TestResult{Name: t.name, Log: t.log.String(), State: state, Errors: errs, Suggestions: suggestions}
}

// worse is the state of a test whose object does not go.
func worse(state v1alpha3.State) v1alpha3.State {
	if state == v1alpha3.PassState {
		return v1alpha3.FailState
	}
	return state
}
