// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startProcess runs the operator in a process of its own, until it ends or the test does. It returns what it says.
func startProcess(t *testing.T) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	process, said := exec.CommandContext(t.Context(), os.Args[0]), &bytes.Buffer{}
	process.Env = append(os.Environ(), operatorVariable+"="+path)
	process.Stderr = said
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process, said
}

// An operator that was stopped for longer than its lease ends when it finds that another one has it, and does not work beside that
// until its renew deadline, an hour here, is over.
func TestDeposedLeaderEnds(t *testing.T) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "outside"}}
	process, said := startProcess(t)
	eventually(t, "it does not lead", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity = ptr.To("another")
		return kube.Update(ctx, lease)
	})
	t.Cleanup(func() { _ = kube.Delete(context.Background(), lease) }) // others wait for it
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	eventually(t, "it works on", func(ctx context.Context) error {
		select {
		case err := <-ended:
			if text := said.String(); err == nil || !strings.Contains(text, "another operator has the lease by now") {
				t.Errorf("it ended with %v: %s", err, text)
			}
			return nil
		default:
			return context.DeadlineExceeded
		}
	})
}
