// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// What cannot come whole into a cluster of an engine is refused before anything starts.
func TestCheckSource(t *testing.T) {
	is := func(engine redis.Engine, version string) redis.Outside {
		return redis.Outside{Engine: engine, Version: version, Role: redis.RoleMaster}
	}
	changed := func(change func(*redis.Outside)) redis.Outside {
		source := is("redis", "7.0.15")
		change(&source)
		return source
	}
	for name, tt := range map[string]struct {
		source  redis.Outside
		engine  redis.Engine
		version string
		want    string
	}{
		"the same":             {is("redis", "7.0.15"), "redis", "7.0.15", ""},
		"a later patch":        {is("redis", "7.0.15"), "redis", "7.0.1", ""},
		"a later one":          {is("redis", "6.2.14"), "redis", "8.0.6", ""},
		"an older one":         {is("redis", "8.2.0"), "redis", "8.0.6", "does not read"},
		"Valkey of Redis 7":    {is("redis", "7.2.5"), "valkey", "8.1.1", ""},
		"Valkey of Redis 6":    {is("redis", "6.2.14"), "valkey", "9.1.2", ""},
		"Valkey of Redis 8":    {is("redis", "8.0.6"), "valkey", "9.1.2", "does not read"},
		"Redis of Valkey 8":    {is("valkey", "8.1.1"), "redis", "7.2.0", ""},
		"Redis 7.0 of Valkey":  {is("valkey", "8.1.1"), "redis", "7.0.15", "does not read"},
		"Redis of Valkey 9":    {is("valkey", "9.1.2"), "redis", "8.0.6", "does not read"},
		"Valkey 8 of 9":        {is("valkey", "9.1.2"), "valkey", "8.1.1", "does not read"},
		"an image of nobody":   {is("redis", "8.0.6"), "", "", ""},
		"no pause of writes":   {is("redis", "6.0.16"), "redis", "8.0.6", "cannot delay writes alone"},
		"no version":           {is("redis", "unstable"), "redis", "8.0.6", "is no version"},
		"a replica":            {changed(func(o *redis.Outside) { o.Role = redis.RoleReplica }), "redis", "7.0.15", "name its master"},
		"a cluster":            {changed(func(o *redis.Outside) { o.Cluster = true }), "redis", "7.0.15", ""},
		"other databases":      {changed(func(o *redis.Outside) { o.Others = true }), "", "", "other databases than 0"},
		"modules":              {changed(func(o *redis.Outside) { o.Modules = []string{"search"} }), "valkey", "8.1.1", "search loaded"},
		"modules, maybe there": {changed(func(o *redis.Outside) { o.Modules = []string{"search"} }), "redis", "8.0.6", ""},
	} {
		err := CheckSource(tt.source, tt.engine, tt.version)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// An instance is prepared once: what it has made of its directory since stays, and so does what another has there.
func TestFollowing(t *testing.T) {
	dir := t.TempDir()
	f := Following{Directory: dir, Shard: 2, Slots: slots.Range(10, 20).Union(slots.Of(7)), MasterID: strings.Repeat("0f", 20),
		Address: "10.96.0.7:6379", Request: "uid"}
	if err := f.Write(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "nodes.conf")
	text, err := os.ReadFile(path)
	want := regexp.MustCompile(`^[0-9a-f]{40} :0@0 myself,slave (0f){20} 0 0 1027 connected\n(0f){20} 10\.96\.0\.7:6379@16379 master - 0 0 1027 connected 7 10-20\nvars currentEpoch 1027 lastVoteEpoch 0\n$`)
	if err != nil || !want.Match(text) {
		t.Fatalf("%q, %v", text, err)
	}
	if err := os.WriteFile(path, []byte("the instance's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); string(text) != "the instance's" {
		t.Errorf("it is written again: %q, %v", text, err)
	}
	moved := f
	moved.Address = "10.96.0.8:6379"
	if err := moved.Write(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); !strings.Contains(string(text), " 10.96.0.8:6379@") || strings.Contains(string(text), "10.96.0.7") {
		t.Errorf("the relay is elsewhere, and it follows %q, %v", text, err)
	}
	if err := f.Write(); err != nil { // and back
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "appendonlydir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Write(), f.Write()); err != nil {
		t.Error(err)
	}
	if err := moved.Write(); err == nil {
		t.Error("an instance with data is prepared for another address")
	}
	former := f
	former.Directory = t.TempDir()
	mark := filepath.Join(former.Directory, restored)
	if err := errors.Join(former.Write(), os.WriteFile(mark, []byte(former.formerMark()), 0o600)); err != nil {
		t.Fatal(err)
	}
	foreign := former
	foreign.Request = "another"
	if err := foreign.Write(); err == nil {
		t.Error("another's instance, of a former operator, is prepared again")
	}
	if err := former.Write(); err != nil {
		t.Errorf("of a former operator: %v", err)
	}
	if text, err := os.ReadFile(mark); string(text) != former.mark() {
		t.Errorf("the mark is %q, %v", text, err)
	}
	if err := errors.Join(os.WriteFile(mark, []byte(former.formerMark()), 0o600),
		os.Mkdir(filepath.Join(former.Directory, "appendonlydir"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := former.Write(); err == nil {
		t.Error("an instance with data, of a former operator, is prepared again")
	}
	other := f
	other.Request = "another"
	if err := other.Write(); err == nil {
		t.Error("another's instance is prepared again")
	}
	for _, name := range []string{"appendonlydir", "dump.rdb", "nodes.conf"} {
		of := f
		of.Directory = t.TempDir()
		if err := os.Mkdir(filepath.Join(of.Directory, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := of.Write(); err == nil {
			t.Errorf("what has %s is prepared", name)
		}
	}
	for _, change := range []func(*Following){
		func(f *Following) { f.Address = "redis:6379" }, func(f *Following) { f.Address = "10.0.0.1:0" },
		func(f *Following) { f.Address = "10.0.0.1" }, func(f *Following) { f.Slots = slots.Set{} },
		func(f *Following) { f.MasterID = "0f\n" }, func(f *Following) { f.MasterID = strings.Repeat("0F", 20) },
	} {
		of := f
		of.Directory = t.TempDir()
		change(&of)
		if err := of.Write(); err == nil {
			t.Errorf("%+v is written", of)
		}
	}
}
