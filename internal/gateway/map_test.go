// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/gateway/protocol"
)

func TestParseMap(t *testing.T) {
	one := `{"name":"c-0-0","port":7000,"outside":"redis.example.com:7000","inside":["10.0.0.1:6379"]}`
	for text, want := range map[string]string{
		`{"instances":[` + one + `]}`:             "",
		`{"instances":[]}`:                        "",
		`{"instances":[` + one + `]} {`:           "something follows",
		`{"instances":[` + one + `,` + one + `]}`: "instances[1]: name: there is another c-0-0",
		`{"instances":[` + one + `,` + strings.Replace(one, "c-0-0", "c-0-1", 1) +
			`]}`: "instances[1]: port: 7000 is",
		`{"instances":[` + one + `,` + strings.NewReplacer("c-0-0", "c-0-1", `"port":7000`, `"port":1`).Replace(one) +
			`]}`: "is another instance's",
		`{"instances":[` + one + `,` + strings.NewReplacer("c-0-0", "c-0-1", "7000", "7001").Replace(one) +
			`]}`: "instances[1]: inside[0]: 10.0.0.1:6379 is there twice",
		`{"instances":[` + strings.Replace(one, "redis.example.com", `redis\r\n+OK`, 1) + `]}`: "outside: ",
		`{"instances":[` + strings.Replace(one, "redis.example.com", `a b`, 1) + `]}`:          "outside: ",
		`{"instances":[` + strings.Replace(one, "10.0.0.1:6379", `10.0.0.1`, 1) + `]}`:         "inside[0]: ",
		`{"instances":[` + strings.Replace(one, "10.0.0.1:6379", `10.0.0.1:0`, 1) + `]}`:       "inside[0]: ",
		`{"instances":[` + strings.Replace(one, `"10.0.0.1:6379"`, ``, 1) +
			`]}`: "inside: there must be",
		`{"instances":[` + strings.Replace(one, `7000`, `70000`, 1) + `]}`: "the map: ",
		`{"instances":[` + strings.Replace(one, `c-0-0`, `../x`, 1) + `]}`: "name: it must be",
		`{"instances":[{"secret":"x"}]}`:                                   "unknown field",
		`{"instances":[` + strings.Repeat(one+",", 1000) + one + `]}`:      "1001 instances",
		strings.Repeat(" ", longestMap+1):                                  "longer than",
	} {
		_, err := ParseMap([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.200s: %v, want %q", text, err, want)
		}
	}
	m, err := ParseMap([]byte(`{"instances":[` + strings.Replace(one, "redis.example.com", "[2001:db8::1]", 1) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	d := newDirectory(nil)
	d.update(t.Context(), m, time.Now())
	if outside, found := d.Outside("10.0.0.1", 6379); !found || outside.Host != "2001:db8::1" {
		t.Errorf("an IPv6 address becomes %v, %t", outside, found)
	}
}

// An address that an instance had is rewritten until all have heard of the new one, unless another has it by now.
func TestDirectory(t *testing.T) {
	names := map[string]string{"pod-0": "10.0.0.1", "pod-1": "10.0.0.2"}
	d := newDirectory(func(_ context.Context, host string) ([]netip.Addr, error) {
		if names[host] == "" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr(names[host])}, nil
	})
	m := &Map{Instances: []Instance{
		{Name: "c-0", Port: 1, Outside: "out:7000", Inside: []string{"pod-0:6379"}},
		{Name: "c-1", Port: 2, Outside: "out:7001", Inside: []string{"pod-1:6379", "192.0.2.1:6379"}},
	}}
	now := time.Now()
	check := func(situation string, want map[string]uint16) {
		t.Helper()
		for _, host := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "192.0.2.1", "pod-0"} {
			outside, found := d.Outside(host, 6379)
			if outside.Port != want[host] || found != (want[host] != 0) {
				t.Errorf("%s: %s is at %v, want port %d", situation, host, outside, want[host])
			}
		}
	}
	d.update(t.Context(), m, now)
	check("in the beginning", map[string]uint16{"10.0.0.1": 7000, "10.0.0.2": 7001, "192.0.2.1": 7001, "pod-0": 7000})
	names["pod-0"] = "10.0.0.3"
	d.update(t.Context(), m, now.Add(time.Second))
	check("a pod was replaced", map[string]uint16{"10.0.0.1": 7000, "10.0.0.2": 7001, "10.0.0.3": 7000, "192.0.2.1": 7001, "pod-0": 7000})
	names["pod-1"] = "10.0.0.1"
	d.update(t.Context(), m, now.Add(2*time.Second))
	check("another got its address", map[string]uint16{"10.0.0.1": 7001, "10.0.0.2": 7001, "10.0.0.3": 7000, "192.0.2.1": 7001, "pod-0": 7000})
	clear(names)
	for i := range 5 {
		d.update(t.Context(), m, now.Add(time.Duration(i+1)*time.Hour))
	}
	check("names are not found", map[string]uint16{"10.0.0.1": 7001, "10.0.0.3": 7000, "192.0.2.1": 7001, "pod-0": 7000})
	if n := len(d.current["c-0"]); n != 2 {
		t.Errorf("the first instance has %d addresses", n)
	}
	d.update(t.Context(), &Map{Instances: m.Instances[:1]}, now.Add(9*time.Hour))
	check("an instance is gone", map[string]uint16{"10.0.0.3": 7000, "pod-0": 7000})
}

func FuzzParseMap(f *testing.F) {
	f.Add([]byte(`{"instances":[{"name":"c-0-0","port":7000,"outside":"redis.example.com:7000","inside":["10.0.0.1:6379","pod:1"]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMap(text)
		if err != nil {
			return
		}
		d := newDirectory(func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("none") })
		d.update(t.Context(), m, time.Now())
		for _, outside := range *d.table.Load() {
			if strings.ContainsAny(outside.Host, "\r\n @,") || outside.Host == "" || outside == (protocol.Address{}) {
				t.Fatalf("%q: clients are told %v", text, outside)
			}
		}
		ports := []uint16{}
		for _, i := range m.Instances {
			ports = append(ports, i.Port)
		}
		if slices.Sort(ports); len(slices.Compact(ports)) != len(m.Instances) {
			t.Fatalf("%q: a port leads to two instances", text)
		}
	})
}
