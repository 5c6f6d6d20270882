// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// promoteOne carries out a promotion of an instance that has said of itself what is given, one look after the other, on a clock of its own.
// It returns what the instance heard, how often it was looked at, and how long that took.
func promoteOne(t *testing.T, infos []string, step plan.Promote) (heard []string, looks int, took time.Duration, err error) {
	t.Helper()
	s, tables := &scripted{}, make([]string, len(infos)) // a table and INFO are asked for together
	for i, text := range infos {
		tables[i] = bulk(followerID + " 10.0.0.1:6379@16379 myself,slave " + outsideID + " 0 0 3 connected\n")
		if strings.Contains(text, "role:master") {
			tables[i] = bulk(followerID + " 10.0.0.1:6379@16379 myself,master - 0 0 3 connected\n")
		}
	}
	says := inTurn(map[string][]string{
		"CLUSTER MYID":  {bulk(followerID)},
		"INFO":          infos,
		"CLUSTER INFO":  {bulk("cluster_state:ok\r\ncluster_slots_assigned:0\r\ncluster_current_epoch:3\r\ncluster_my_epoch:3\r\n")},
		"CLUSTER NODES": tables,
		"CONFIG GET":    {"*2\r\n" + bulk("cluster-node-timeout") + bulk("5000")},
		"COMMAND":       {"-ERR unknown command 'COMMAND'\r\n"},
		"SLOWLOG":       {"-ERR unknown command 'SLOWLOG'\r\n"},
	})
	pool := redis.NewPool(redis.Options{Dialer: s.dial(map[string]func(string) string{"10.0.0.1:6379": func(command string) string {
		if strings.HasPrefix(command, "INFO") {
			looks++
		}
		return says(command)
	}}), DialTimeout: time.Hour, IOTimeout: time.Hour})
	defer pool.Close()
	began := time.Now()
	step.Replica = plan.Target{Pod: "c-0-0", IP: "10.0.0.1", NodeID: followerID}
	err = (&Actor{Redis: pool, Now: time.Now, SwitchoverWithin: 200 * time.Millisecond}).promote(t.Context(), Subject{}, step)
	s.mu.Lock()
	defer s.mu.Unlock()
	heard = slices.DeleteFunc(slices.Clone(s.heard), func(c string) bool { return !strings.HasPrefix(c, "CLUSTER FAILOVER") })
	return heard, looks, time.Since(began), err
}

// whole is all of INFO that is asked for when an instance is looked at.
func whole(role, more string) string {
	return info(role, 1000, 7, "run_id:"+strings.Repeat("e", 40)+"\r\nuptime_in_seconds:9\r\nused_memory:9\r\nmaxmemory:0\r\n"+
		"number_of_libraries:0\r\nloading:0\r\nunexpected_error_replies:0\r\n"+more)
}

// A replica that is being sent all data has a master, also without a link.
func TestNoTakeoverWhileItCopies(t *testing.T) {
	for copies, takeover := range map[string]bool{"0": true, "1": false} {
		synctest.Test(t, func(t *testing.T) {
			is := strings.Replace(whole("slave", "master_link_down_since_seconds:5\r\nmaster_sync_in_progress:"+copies+"\r\n"),
				"status:up", "status:no", 1)
			heard, _, _, err := promoteOne(t, []string{is, whole("master", "")}, plan.Promote{Takeover: true, Lost: outsideID})
			if takeover != (err == nil) || takeover != (len(heard) == 1) || err != nil && !strings.Contains(err.Error(), "has a master again") {
				t.Errorf("it copies: %s; heard %q, %v", copies, heard, err)
			}
		})
	}
}

// It is looked again and again whether a replica is the master, until it is, or the time is over; a look that fails says nothing.
func TestPromotionIsLookedAt(t *testing.T) {
	slave, master := whole("slave", ""), whole("master", "")
	for name, tt := range map[string]struct {
		infos []string
		looks int
		took  time.Duration
	}{
		"at once":  {[]string{master}, 1, 0},
		"at last":  {[]string{slave, "-ERR no\r\n", slave, master}, 4, 3 * switchoverPoll},
		"not soon": {[]string{slave}, 10, 200 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			heard, looks, took, err := promoteOne(t, tt.infos, plan.Promote{})
			if err != nil || len(heard) != 1 || looks != tt.looks || took != tt.took {
				t.Errorf("%s: heard %q, looked %d times in %s, want %d in %s: %v", name, heard, looks, took, tt.looks, tt.took, err)
			}
		})
	}
}

// A disk is tried with little first, then with all that a master holds; a file that was written anew is opened.
func TestRewriteAOF(t *testing.T) {
	for reopen, want := range map[bool][]string{
		false: {"CLUSTER SAVECONFIG", "BGREWRITEAOF"},
		true:  {"CLUSTER SAVECONFIG", "MULTI", "CONFIG SET appendonly no", "CONFIG SET appendonly yes", "EXEC"},
	} {
		b := newBench(t, interceptor.Funcs{})
		told := b.told("")
		heard := func() (heard []string) {
			for _, command := range *told {
				if command = strings.TrimPrefix(command, "0: "); slices.Contains(want, command) {
					heard = append(heard, command)
				}
			}
			*told = nil
			return heard
		}
		b.must(plan.RewriteAOF{On: b.targets[0], Reopen: reopen})
		if diff := cmp.Diff(want, heard()); diff != "" {
			t.Errorf("reopen: %t (-want +got):\n%s", reopen, diff)
		}
		b.world.FailNext(b.nodes[0], "CLUSTER SAVECONFIG", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR No space left on device"})
		err := b.do(plan.RewriteAOF{On: b.targets[0], Reopen: reopen})
		if got := heard(); err == nil || !strings.HasPrefix(err.Error(), "c-0-0 cannot write to its disk") || !slices.Equal(got, want[:1]) {
			t.Errorf("reopen: %t: heard %q, %v", reopen, got, err)
		}
	}
}
