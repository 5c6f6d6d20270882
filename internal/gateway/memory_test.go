// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// BenchmarkIdleConnections measures what a connection takes that has been used and rests, beyond what its two ends take in this process:
// of the gateway, and of a forwarder that passes bytes. 2000 of them take 8000 open files.
//
//	go test -run - -bench IdleConnections -benchtime 1x ./internal/gateway
func BenchmarkIdleConnections(b *testing.B) {
	const connections = 2000
	ends := 0.0
	for _, way := range []string{"direct", "forwarder", "gateway", "forwarder-TLS", "gateway-TLS"} {
		b.Run(way, func(b *testing.B) {
			i := startInstance(b, map[string]string{"PING": "+PONG\r\n"})
			address, config, port := i.Addr().String(), (*tls.Config)(nil), free(b)
			cert, key := filepath.Join(b.TempDir(), "tls.crt"), filepath.Join(b.TempDir(), "tls.key")
			if way == "forwarder-TLS" || way == "gateway-TLS" {
				config = &tls.Config{RootCAs: issue(b, cert, key, "example.com"), ServerName: "example.com", MinVersion: tls.VersionTLS12}
			}
			switch way {
			case "forwarder", "forwarder-TLS":
				address = forward(b, address, config, cert, key)
			case "gateway", "gateway-TLS":
				startGateway(b, func(o *Options) {
					o.MaxConnections, o.MaxPerSource, o.MaxPerInstance, o.DrainTimeout = connections, connections, connections, 0
					if config != nil {
						o.CertFile, o.KeyFile = cert, key
					}
				}, i.on(port))
				address = fmt.Sprintf("127.0.0.1:%d", port)
			}
			before := inUse()
			for range connections {
				conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", address)
				if err == nil && config != nil {
					conn = tls.Client(conn, config)
				}
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
					b.Fatal(err)
				}
				if got, err := ask(conn, bufio.NewReaderSize(conn, 16), "*1\r\n$4\r\nPING\r\n"); got != "+PONG\r\n" {
					b.Fatal(got, err)
				}
			}
			each := (inUse() - before) / connections
			if way == "direct" {
				ends = each
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric((each-ends)/1024, "KiB/connection")
		})
	}
}

// inUse is what the process has taken of memory, in bytes.
func inUse() float64 {
	var stats runtime.MemStats
	for range 2 { // what a pool holds is given back the second time
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc + stats.StackInuse)
}

// forward passes bytes to an address, and returns where it listens.
func forward(b *testing.B, to string, config *tls.Config, cert, key string) string {
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err == nil && config != nil {
		var pair tls.Certificate
		pair, err = tls.LoadX509KeyPair(cert, key)
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			instance, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			for _, ends := range [][2]net.Conn{{client, instance}, {instance, client}} {
				go func() {
					_, _ = io.Copy(ends[0], ends[1]) // it ends when one of them does
					_, _ = ends[0].Close(), ends[1].Close()
				}()
			}
		}
	}()
	return listener.Addr().String()
}
