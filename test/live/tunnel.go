// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Tunnel leads to a port of a pod, as kubectl port-forward does, until the test ends. It returns the address on this machine.
func Tunnel(t *testing.T, namespace, pod string, port int) string {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(Config)
	if err != nil {
		t.Fatal(err)
	}
	url := Clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	t.Cleanup(func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Logf("the way to %s ended: %v", pod, err)
		}
	})
	const within = 30 * time.Second
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("no way to %s: %v", pod, err)
	case <-time.After(within):
		t.Fatalf("no way to %s within %s", pod, within)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
}
