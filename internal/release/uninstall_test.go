// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const waitsForChildren = `annotations: {helm.sdk.operatorframework.io/uninstall-wait: "true"}`

// A resource without finalizers of ours is the garbage collector's; nothing is written for it.
func TestADeletionWithoutFinalizersIsLeft(t *testing.T) {
	s := newShop(t, "finalizers: [example.com/theirs]", "{text: a}", chartOf(t, configTemplate), Options{})
	s.settle()
	s.deletes()
	s.wants("written", s.settle())
	if s.object(configs, "shop", "web") == nil {
		t.Error("the children are the garbage collector's")
	}
	s.edit(func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	s.wants("gone", s.settle())
	if s.r.memory.Get("u").begun {
		t.Error("it is not forgotten")
	}
}

// Whoever wants to wait gets a finalizer before anything is made; then a deletion waits until the children are gone.
func TestADeletionThatWaits(t *testing.T) {
	s := newShop(t, waitsForChildren, "{text: a, names: [b]}", chartOf(t, configTemplate, listTemplate), Options{})
	if got := s.settle(); len(got) < 3 || got[0] != "patch Web shop/web" || !slices.Equal(s.web().GetFinalizers(), []string{Finalizer}) {
		t.Errorf("before the first object: %q, %v", got, s.web().GetFinalizers())
	}
	s.told()
	s.change(configs, "shop", "b", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/held"}) })
	s.deletes()
	s.wants("deletion", s.settle(), "delete ConfigMap shop/b", "delete ConfigMap shop/web", "status of Web shop/web: conditions")
	s.says("it waits", map[string]string{"Ready": "False Uninstalling: waiting until these are gone: ConfigMap b",
		"Progressing": "True Uninstalling", "ReleaseFailed": "False", "Deployed": "True"})
	if result, err := s.reconcile(); err != nil || result.RequeueAfter != uninstallPoll || len(s.told()) > 0 {
		t.Errorf("%v, %v", result, err)
	}
	s.change(configs, "shop", "b", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	s.wants("they are gone", s.settle(), "status of Web shop/web: conditions hooks",
		"delete Secret shop/sh.helm.release.v1.web.v1", "patch Web shop/web")
	if s.web() != nil {
		t.Errorf("the resource is held: %v", s.web())
	}
	s.wants("told", s.told())
}

// Children that somebody else holds do not hold the resource for ever; that they are left is told.
func TestADeletionDoesNotWaitForEver(t *testing.T) {
	for after, left := range map[time.Duration]bool{uninstallTimeout - time.Second: false, uninstallTimeout: true} {
		s := newShop(t, "finalizers: ["+SDKFinalizer+", example.com/theirs]", "{text: a}", chartOf(t, configTemplate), Options{})
		s.settle()
		s.told()
		s.change(configs, "shop", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/held"}) })
		s.deletes()
		s.clock = s.web().GetDeletionTimestamp().Add(after)
		s.settle()
		if told := s.told(); (len(told) == 1) != left || left && told[0] !=
			"Warning NotWaitedFor still being deleted after 5m0s: ConfigMap web" {
			t.Errorf("%s: told %q", after, told)
		}
		if got := s.web().GetFinalizers(); slices.Contains(got, SDKFinalizer) == left || !slices.Contains(got, "example.com/theirs") {
			t.Errorf("%s: finalizers %v", after, got)
		}
	}
}

// What cannot be deleted, or cannot be looked at, holds the resource, and is told.
func TestADeletionThatFails(t *testing.T) {
	for request, want := range map[string]string{
		"delete ConfigMap": "delete ConfigMap shop/web: ", "get ConfigMap": "delete ConfigMap shop/web: ", "delete Secret": "delete sh.helm",
		"list": "look for the history", "patch": errAway.Error(),
	} {
		s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, configTemplate), Options{})
		s.settle()
		s.told()
		s.deletes()
		s.refusals[request] = errAway
		var err error
		for range 3 {
			_, err = s.reconcile()
		}
		if s.web() == nil || !errors.Is(err, errAway) {
			t.Fatalf("%s: %v, %v", request, err, s.web())
		}
		s.says(request, map[string]string{"ReleaseFailed": "True UninstallError: " + want, "Ready": "False ReconcileError: " + want,
			"Progressing": "True"})
		if told := s.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning UninstallError "+want) {
			t.Errorf("%s: %q", request, told)
		}
		delete(s.refusals, request)
		if s.settle(); s.web() != nil || s.object(configs, "shop", "web") != nil {
			t.Errorf("%s: then it is there still", request)
		}
	}
}
