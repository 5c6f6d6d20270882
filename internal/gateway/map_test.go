// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/gateway/protocol"
)

func TestParseMap(t *testing.T) {
	one := `{"name":"c-0-0","port":7000,"outside":"redis.example.com:7000","inside":["10.0.0.1:6379"]}`
	other := `{"name":"c-0-1","port":7001,"outside":"redis.example.com:7001","inside":["10.0.0.2:6379"]}`
	for text, want := range map[string]string{
		`{"instances":[` + one + `]}`:             "",
		`{"instances":[]}`:                        "",
		`{"instances":[` + one + `]} {`:           "something follows",
		`{"instances":[` + one + `,` + one + `]}`: "instances[1]: name: there is another c-0-0",
		`{"instances":[` + one + `,` + strings.Replace(one, "c-0-0", "c-0-1", 1) +
			`]}`: "instances[1]: port: 7000 is",
		`{"instances":[` + strings.Replace(one, `"port":7000,`, "", 1) + `]}`:                           "port: there must be one",
		`{"port":6379,"instances":[` + strings.Replace(one, `"port":7000,`, "", 1) + `,` + other + `]}`: "",
		`{"port":7000,"instances":[` + one + `]}`:                                                       "port: 7000 is another instance's, or the map's",
		`{"port":6379,"instances":[` + strings.NewReplacer(`"port":7000,`, "", "redis.example.com", "192.0.2.1").Replace(one) +
			`]}`: "has no name that tells",
		`{"port":6379,"instances":[` + strings.Replace(one, `"port":7000,`, "", 1) + `,` +
			strings.NewReplacer(`"port":7001,`, "", "redis.example.com", "REDIS.example.com.").Replace(other) +
			`]}`: "the name of REDIS.example.com.:7001 is another instance's",
		`{"instances":[` + one + `,` + strings.Replace(other, "10.0.0.2:6379", `pod:1","POD.:1`, 1) + `]}`: "inside[1]: POD.:1 is there twice",
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
	d := newDirectory(nil, false)
	d.update(t.Context(), m, time.Now())
	if outside, found := d.Outside("10.0.0.1", 6379); !found || outside.Host != "2001:db8::1" {
		t.Errorf("an IPv6 address becomes %v, %t", outside, found)
	}
}

// names plays a DNS server: a name has an address, is gone if it is empty, and cannot be looked up if it is not there.
type names map[string]string

func (n names) find(_ context.Context, host string) ([]netip.Addr, error) {
	address, known := n[host]
	switch {
	case !known:
		return nil, errors.New("timeout")
	case address == "":
		return nil, errGone
	}
	return []netip.Addr{netip.MustParseAddr(address)}, nil
}

// An address that an instance had is rewritten until all have heard of the new one, unless another has it by now. It is connected to while
// its name has it.
func TestDirectory(t *testing.T) {
	dns := names{"pod-0.": "10.0.0.1", "pod-1.": "10.0.0.2"}
	d := newDirectory(dns.find, false)
	m := &Map{Instances: []Instance{
		{Name: "c-0", Port: 1, Outside: "out:7000", Inside: []string{"pod-0.:6379", "Pod-0.svc:6379"}},
		{Name: "c-1", Port: 2, Outside: "out:7001", Inside: []string{"pod-1.:6379", "192.0.2.1:6379"}},
	}}
	now := time.Now()
	check := func(situation, zero, one string, want map[string]uint16) {
		t.Helper()
		for _, host := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
			outside, found := d.Outside(host, 6379)
			if outside.Port != want[host] || found != (want[host] != 0) {
				t.Errorf("%s: %s is at %v, want port %d", situation, host, outside, want[host])
			}
		}
		for host, port := range map[string]uint16{"192.0.2.1": 7001, "pod-0": 7000, "pod-0.svc": 7000, "POD-0.svc.": 7000, "pod-1.": 7001} {
			if outside, _ := d.Outside(host, 6379); outside.Port != port {
				t.Errorf("%s: %s is at %v, want port %d", situation, host, outside, port)
			}
		}
		for name, want := range map[string]string{"c-0": zero, "c-1": one} {
			if got := strings.Join(d.inside(name), " "); got != want {
				t.Errorf("%s: %s is connected to at %q, want %q", situation, name, got, want)
			}
		}
	}
	const first, second, third = "10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"
	d.update(t.Context(), m, now)
	check("in the beginning", first, second, map[string]uint16{"10.0.0.1": 7000, "10.0.0.2": 7001})
	dns["pod-0."] = "10.0.0.3"
	d.update(t.Context(), m, now.Add(time.Second))
	check("a pod was replaced", third, second, map[string]uint16{"10.0.0.1": 7000, "10.0.0.2": 7001, "10.0.0.3": 7000})
	dns["pod-1."] = "10.0.0.1"
	d.update(t.Context(), m, now.Add(2*time.Second))
	check("another got its address", third, first, map[string]uint16{"10.0.0.1": 7001, "10.0.0.2": 7001, "10.0.0.3": 7000})
	delete(dns, "pod-0.")
	d.update(t.Context(), m, now.Add(20*time.Second))
	check("a name cannot be looked up", third, first, map[string]uint16{"10.0.0.1": 7001, "10.0.0.2": 7001, "10.0.0.3": 7000})
	d.update(t.Context(), m, now.Add(40*time.Second))
	check("and not for long", "", first, map[string]uint16{"10.0.0.1": 7001, "10.0.0.2": 7001, "10.0.0.3": 7000})
	d.update(t.Context(), m, now.Add(time.Hour))
	check("and for very long", "", first, map[string]uint16{"10.0.0.1": 7001, "10.0.0.3": 7000})
	if unknown := d.unknown(m); len(unknown) > 0 {
		t.Errorf("%q are unknown", unknown)
	}
	d.certified = true
	d.update(t.Context(), m, now.Add(time.Hour+time.Second))
	check("instances show who they are", third, first, map[string]uint16{"10.0.0.1": 7001, "10.0.0.3": 7000})
	dns["pod-1."] = "10.0.0.3"
	d.update(t.Context(), m, now.Add(time.Hour+2*time.Second))
	check("another got the address of one that cannot be looked up", "", third, map[string]uint16{"10.0.0.1": 7001, "10.0.0.3": 7001})
	dns["pod-0."], dns["pod-1."] = "", ""
	d.update(t.Context(), m, now.Add(2*time.Hour))
	check("both are gone", "", "", map[string]uint16{})
	if unknown := d.unknown(m); !slices.Equal(unknown, []string{"c-0", "c-1"}) {
		t.Errorf("%q are unknown", unknown)
	}
	d.update(t.Context(), &Map{Instances: m.Instances[:1]}, now.Add(3*time.Hour))
	if _, found := d.Outside("192.0.2.1", 6379); found {
		t.Error("an instance that is not in the map has an address")
	}
}

// Many names are looked up in turn, and none is forgotten meanwhile.
func TestManyNames(t *testing.T) {
	asked, m := map[string]int{}, &Map{}
	var mu sync.Mutex
	d := newDirectory(func(_ context.Context, host string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[host]++
		return []netip.Addr{netip.MustParseAddr("10.0.0." + strings.TrimSuffix(strings.TrimPrefix(host, "pod-"), "."))}, nil
	}, false)
	for i := range 250 {
		m.Instances = append(m.Instances, Instance{Name: fmt.Sprintf("c-%d", i), Outside: fmt.Sprintf("out:%d", 1000+i),
			Inside: []string{fmt.Sprintf("pod-%d.:6379", i)}})
	}
	now := time.Now()
	for range 5 {
		now = now.Add(time.Second)
		d.update(t.Context(), m, now)
	}
	for _, i := range m.Instances {
		if n := asked[strings.TrimSuffix(i.Inside[0], ":6379")]; n != 2 || len(d.inside(i.Name)) != 1 {
			t.Fatalf("%s was looked up %d times, and is at %q", i.Name, n, d.inside(i.Name))
		}
	}
}

// Who wants a name of TLS gets the instance that has it, whatever the case.
func TestEntrances(t *testing.T) {
	m := &Map{Port: 6379, Instances: []Instance{{Name: "a", Outside: "A.example.com:1"}, {Name: "b", Port: 7, Outside: "b.example.com:1"}}}
	ports := m.entrances()
	if len(ports) != 2 || ports[7].choose("whatever").Name != "b" || ports[6379].choose("a.EXAMPLE.com").Name != "a" {
		t.Errorf("%v", ports)
	}
	for _, server := range []string{"", "b.example.com", "example.com", "10.0.0.1"} {
		if i := ports[6379].choose(server); i != nil {
			t.Errorf("%q leads to %s", server, i.Name)
		}
	}
}

func FuzzParseMap(f *testing.F) {
	f.Add([]byte(`{"instances":[{"name":"c-0-0","port":7000,"outside":"redis.example.com:7000","inside":["10.0.0.1:6379","pod:1"]}]}`))
	f.Add([]byte(`{"port":6379,"instances":[{"name":"c","outside":"a.b:1","inside":["pod.:6379","pod.svc:6379"]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMap(text)
		if err != nil {
			return
		}
		d := newDirectory(names{}.find, false)
		d.update(t.Context(), m, time.Now())
		for _, outside := range d.view.Load().outside {
			if strings.ContainsAny(outside.Host, "\r\n @,") || outside.Host == "" || outside == (protocol.Address{}) {
				t.Fatalf("%q: clients are told %v", text, outside)
			}
		}
		led := map[string]bool{}
		for _, e := range m.entrances() {
			if e.only != nil {
				led[e.only.Name] = true
			}
			for _, i := range e.named {
				led[i.Name] = true
			}
		}
		if len(led) != len(m.Instances) {
			t.Fatalf("%q: ports lead to %d instances of %d", text, len(led), len(m.Instances))
		}
	})
}
