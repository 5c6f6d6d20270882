// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	kslots "middleware.hc.cn/operator/internal/redis/slots"
)

// expiry is when keys with a time to live end; tests are over long before.
const expiry = time.Hour

// tags are hash tags, one for each of n slots of the set.
func tags(set kslots.Set, n int) (found []string) {
	var used kslots.Set
	for i := 0; len(found) < n; i++ {
		tag := fmt.Sprintf("tag%d", i)
		if slot := kslots.KeySlot(tag); set.Contains(slot) && !used.Contains(slot) {
			found, used = append(found, tag), used.Union(kslots.Of(slot))
		}
	}
	return found
}

// everyType writes keys of every type with the hash tag, and returns their names. Fields of a hash get a time to live
// of their own where the engine has that.
func everyType(t testing.TB, client goredis.Cmdable, tag string) []string {
	t.Helper()
	ctx := t.Context()
	key := func(name string) string { return name + ":{" + tag + "}" }
	many := make([]any, 2000)
	for i := range many {
		many[i] = fmt.Sprintf("%d of {%s} \x00\r\n", i, tag)
	}
	binary := "\x00\xff\r\n$5 " + key("binary")
	for _, err := range []error{
		client.Set(ctx, key("string"), strings.Repeat("abc", 1000), 0).Err(),
		client.Set(ctx, key("number"), 12345, 0).Err(),
		client.Set(ctx, key("expiring"), "x", expiry).Err(),
		client.Set(ctx, binary, "\x00\x01\r\n", 0).Err(),
		client.SetBit(ctx, key("bitmap"), 10000, 1).Err(),
		client.PFAdd(ctx, key("hyperloglog"), many...).Err(),
		client.RPush(ctx, key("list"), many...).Err(),
		client.SAdd(ctx, key("numbers"), 1, 2, 3).Err(),
		client.SAdd(ctx, key("set"), many...).Err(),
		client.HSet(ctx, key("hash"), many...).Err(),
		client.HSet(ctx, key("small"), "a", "1", "b", "2").Err(),
		client.ZAdd(ctx, key("sorted"), goredis.Z{Score: 1.5, Member: "a"}, goredis.Z{Score: -2, Member: "b"}).Err(),
		client.GeoAdd(ctx, key("places"), &goredis.GeoLocation{Name: "here", Longitude: 116.4, Latitude: 39.9}).Err(),
		client.XGroupCreateMkStream(ctx, key("stream"), "group", "0").Err(),
		client.XAdd(ctx, &goredis.XAddArgs{Stream: key("stream"), ID: "5-1", Values: []string{"f", "v"}}).Err(),
		client.XAdd(ctx, &goredis.XAddArgs{Stream: key("stream"), ID: "6-1", Values: []string{"f", "v"}}).Err(),
		client.XReadGroup(ctx, &goredis.XReadGroupArgs{
			Group: "group", Consumer: "consumer", Streams: []string{key("stream"), ">"}, Count: 1,
		}).Err(),
		client.Expire(ctx, key("set"), expiry).Err(),
	} {
		must(t, err)
	}
	if err := client.HExpire(ctx, key("small"), expiry, "a").Err(); err != nil &&
		!strings.Contains(err.Error(), "unknown command") {
		t.Fatal(err)
	}
	return []string{
		binary, key("string"), key("number"), key("expiring"), key("bitmap"), key("hyperloglog"), key("list"),
		key("numbers"), key("set"), key("hash"), key("small"), key("sorted"), key("places"), key("stream"),
	}
}

// content is all of a key that clients can see, times to live to some seconds.
func content(t testing.TB, client goredis.Cmdable, key string) string {
	t.Helper()
	ctx := t.Context()
	kind, err := client.Type(ctx, key).Result()
	must(t, err)
	var value any
	switch kind {
	case "string":
		value, err = client.Get(ctx, key).Result()
	case "list":
		value, err = client.LRange(ctx, key, 0, -1).Result()
	case "set":
		var members []string
		members, err = client.SMembers(ctx, key).Result()
		value = slices.Sorted(slices.Values(members))
	case "hash":
		value, err = client.HGetAll(ctx, key).Result() // fmt prints maps in order
		if fields, expiryErr := client.HTTL(ctx, key, "a").Result(); expiryErr == nil {
			value = fmt.Sprint(value, " fields expire ", maps.Collect(slices.All(rounded(fields))))
		}
	case "zset":
		value, err = client.ZRangeWithScores(ctx, key, 0, -1).Result()
	case "stream":
		value, err = client.XRange(ctx, key, "-", "+").Result()
		must(t, err)
		var pending *goredis.XPending
		pending, err = client.XPending(ctx, key, "group").Result()
		value = fmt.Sprint(value, " pending ", pending)
	}
	must(t, err)
	ttl, err := client.TTL(ctx, key).Result()
	must(t, err)
	return fmt.Sprintf("%s %q expires %v", kind, fmt.Sprint(value), rounded([]int64{int64(ttl.Seconds())}))
}

// rounded makes times to live, in seconds, comparable that are read at different moments of a test.
func rounded(seconds []int64) []bool {
	var expires []bool
	for _, s := range seconds {
		expires = append(expires, s > int64(expiry.Seconds())*9/10 && s <= int64(expiry.Seconds()))
	}
	return expires
}

func contents(t testing.TB, client goredis.Cmdable, keys []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range keys {
		all[key] = content(t, client, key)
	}
	return all
}
