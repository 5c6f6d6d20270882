// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/gateway"
)

// clientsOutside is a cluster as clients outside see it: a name with a port for each instance, which leads to a gateway.
type clientsOutside struct {
	*cluster
	t       testing.TB
	options func(*gateway.Options)
	fronts  []string // where clients reach each instance
	serving atomic.Pointer[runningGateway]

	mu     sync.Mutex
	dialed map[string]int // by clients
}

// runningGateway is one, by its ports.
type runningGateway struct {
	ports []int
	stop  func()
	ended chan struct{}
}

// startClientsOutside starts a gateway in front of a cluster.
func startClientsOutside(c *cluster, options func(*gateway.Options)) *clientsOutside {
	c.t.Helper()
	o := &clientsOutside{cluster: c, t: c.t, options: options, dialed: map[string]int{}}
	for i := range c.servers {
		o.fronts = append(o.fronts, fmt.Sprintf("redis.example.com:%d", 40000+i))
	}
	o.serving.Store(o.startGateway())
	return o
}

// address is where the port of the Service for an instance leads at the moment.
func (o *clientsOutside) address(i int) string {
	return "127.0.0.1:" + strconv.Itoa(o.serving.Load().ports[i])
}

// startGateway starts one more gateway and waits until it is ready.
func (o *clientsOutside) startGateway() *runningGateway {
	o.t.Helper()
	m := gateway.Map{}
	for i, s := range o.servers {
		m.Instances = append(m.Instances, gateway.Instance{Name: fmt.Sprintf("cache-0-%d", i), Port: uint16(freePort(o.t)), Outside: o.fronts[i],
			Inside: []string{s.addr()}})
	}
	return runGateway(o.t, m, o.options)
}

// runGateway runs a gateway on a map and waits until it is ready.
func runGateway(t testing.TB, m gateway.Map, set func(*gateway.Options)) *runningGateway {
	t.Helper()
	r := &runningGateway{ended: make(chan struct{})}
	path := filepath.Join(t.TempDir(), "map.json")
	text, err := json.Marshal(m)
	must(t, err)
	must(t, os.WriteFile(path, text, 0o600))
	options := gateway.Options{MapFile: path, Host: "127.0.0.1", MaxConnections: 1000, MaxPerSource: 1000, MaxPerInstance: 1000,
		DrainDelay: 500 * time.Millisecond, DrainTimeout: 10 * time.Second, Log: logr.Discard()}
	if set != nil {
		set(&options)
	}
	g, err := gateway.New(t.Context(), options)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.ended)
		if err := g.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-r.ended })
	for _, i := range m.Instances {
		r.ports = append(r.ports, int(cmp.Or(i.Port, m.Port)))
	}
	for _, port := range r.ports {
		eventually(t, func() error {
			conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
			if err == nil {
				err = conn.Close()
			}
			return err
		})
	}
	return r
}

// client is an ordinary client outside. What it connects to is noted, and leads to the gateway that is ready at the moment.
func (o *clientsOutside) client(set func(*goredis.ClusterOptions)) *goredis.ClusterClient {
	options := &goredis.ClusterOptions{
		Addrs: o.fronts, Password: password, MaxRetries: -1, MaxRedirects: 16, Protocol: 2, DisableIdentity: true,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
	}
	if set != nil {
		set(options)
	}
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		o.mu.Lock()
		o.dialed[address]++
		o.mu.Unlock()
		i := slices.Index(o.fronts, address)
		if i < 0 {
			return nil, fmt.Errorf("%s is not reached from outside", address)
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, o.address(i))
		if err != nil || options.TLSConfig == nil {
			return conn, err
		}
		return tls.Client(conn, options.TLSConfig), nil
	}
	client := goredis.NewClusterClient(options)
	o.t.Cleanup(func() { _ = client.Close() }) // the test is over either way
	return client
}

// used is how many instances clients have connected to.
func (o *clientsOutside) used() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.dialed)
}

// checkDialed fails when a client has connected to anything but the gateway, and if it did not use all instances.
func (o *clientsOutside) checkDialed(least int) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for address := range o.dialed {
		if !slices.Contains(o.fronts, address) {
			o.t.Errorf("a client outside connects to %s, which is inside", address)
		}
	}
	if len(o.dialed) < least {
		o.t.Errorf("clients have used %d instances, want %d", len(o.dialed), least)
	}
}
