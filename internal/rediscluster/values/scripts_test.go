// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// script puts a script of the chart where its paths lead into a directory.
func script(t *testing.T, name, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "helm-charts", "rediscluster", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	write(t, path, strings.NewReplacer("/etc/redis/", dir+"/", "/data/", dir+"/data/", "/proc/net/", dir+"/").Replace(string(text)))
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// configured writes a redis.conf with the ports of a stage.
func configured(t *testing.T, dir string, stage redisconf.TLSStage) {
	t.Helper()
	settings := redisconf.TLS{Stage: stage}.Settings(dir)
	write(t, filepath.Join(dir, "redis.conf"), fmt.Sprintf("port %q\ntls-port %q\n", settings["port"], settings["tls-port"]))
}

// A container that restarts under a redis.conf that moves TLS to 6380 has it where its own probes look for it.
func TestStartKeepsThePortOfThePod(t *testing.T) {
	const moved = " --tls-port 6379 --cluster-announce-port 0 --cluster-announce-tls-port 0 --cluster-announce-bus-port 0"
	for name, tt := range map[string]struct {
		stage redisconf.TLSStage
		two   bool
		want  string
	}{
		"one port, moved":  {redisconf.TLSSecond, false, moved},
		"two ports, moved": {redisconf.TLSSecond, true, ""},
		"required":         {redisconf.TLSRequired, false, ""},
		"both":             {redisconf.TLSBoth, true, ""},
		"plain":            {redisconf.TLSPlain, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			configured(t, dir, tt.stage)
			args := []string{script(t, "start.sh", dir)}
			if tt.two {
				args = append(args, "--two-ports")
			}
			out, err := exec.Command("sh", append(args, "echo", "redis.conf")...).CombinedOutput()
			if got, want := string(out), "redis.conf"+tt.want+"\n"; err != nil || got != want {
				t.Errorf("it runs %q and not %q: %v", got, want, err)
			}
		})
	}
}

// Whatever an instance answers, and be it an error, the way to it is found; both scripts look for it alike.
func TestAnErrorIsAnAnswer(t *testing.T) {
	for _, answer := range []string{"PONG", "MISCONF Redis is configured to save RDB snapshots", "NOPERM this user has no permissions",
		"DENIED Redis is running in protected mode", "ERR max number of clients reached", "NOREPLICAS Not enough good replicas", ""} {
		dir := t.TempDir()
		start, stop := script(t, "start.sh", dir), script(t, "switchover.sh", dir)
		configured(t, dir, redisconf.TLSRequired)
		write(t, filepath.Join(dir, "tls", "ca.crt"), "")
		write(t, filepath.Join(dir, "redis-cli"), fmt.Sprintf("#!/bin/sh\necho 'Could not connect' >&2\n[ -z %[1]q ] || echo %[1]q\n", answer))
		for _, path := range []string{start, stop} {
			command := exec.Command("sh", "-c", `eval "$(sed -n '/^ca=/,/^}/p' "$0")"; way 10.0.0.1`, path)
			command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := command.Output()
			if found := strings.HasPrefix(string(out), "-p 6379 --tls"); found != (answer != "") || (err == nil) != found {
				t.Errorf("%s: answered %q, the way is %q: %v", filepath.Base(path), answer, out, err)
			}
		}
	}
}

// A container with two ports is alive while either is open and connections are accepted.
func TestAlive(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	line := func(local, other, state, waiting string) string {
		return "   0: " + local + " " + other + " " + state + " 00000000:" + waiting + " 00:00000000 00000000   999        0 1 1 0 100 0 0 10 0\n"
	}
	const any6, nobody6 = "00000000000000000000000000000000", "00000000000000000000000000000000:0000"
	for name, tt := range map[string]struct {
		tcp, tcp6 string
		want      bool
	}{
		"plain":           {line("00000000:18EB", "00000000:0000", "0A", "00000000"), "", true},
		"TLS alone":       {line("00000000:18EC", "00000000:0000", "0A", "00000003"), "", true},
		"IPv6 alone":      {"", line(any6+":18EC", nobody6, "0A", "00000000"), true},
		"the bus alone":   {line("00000000:3FFB", "00000000:0000", "0A", "00000000"), "", false},
		"a connection":    {line("0100007F:18EB", "0100007F:18EC", "01", "00000000"), "", false},
		"accepts no more": {line("00000000:18EB", "00000000:0000", "0A", "00000100"), "", false},
		"nothing":         {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "tcp"), head+tt.tcp)
			if tt.tcp6 != "" {
				write(t, filepath.Join(dir, "tcp6"), head+tt.tcp6)
			}
			if out, err := exec.Command("sh", script(t, "alive.sh", dir)).CombinedOutput(); (err == nil) != tt.want || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// Both scripts find the way to an instance alike, and measure time alike.
func TestScriptsShareFunctions(t *testing.T) {
	for _, function := range []string{"way", "now"} {
		var texts []string
		for _, name := range []string{"start.sh", "switchover.sh"} {
			text, err := os.ReadFile("../../../helm-charts/rediscluster/" + name)
			if err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(`(?m)^# ` + function + ` prints (?:.*\n)+?(?:.*[ \n]})\n`).FindString(string(text))
			if !strings.Contains(found, function+"() {") {
				t.Fatalf("%s has no function %s", name, function)
			}
			texts = append(texts, found)
		}
		if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
			t.Errorf("%s of start.sh and switchover.sh differ (-start +switchover):\n%s", function, diff)
		}
	}
}

// A second server is not started in a directory whose lock is held; without flock, or where nothing can be written or locked, one is.
func TestStartLocksTheDirectory(t *testing.T) {
	dir := t.TempDir()
	path, lock := script(t, "start.sh", dir), filepath.Join(dir, "data", ".lock")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(string(text), "longest=60", "longest=1", 1))
	run := func(env ...string) (string, error) {
		command := exec.Command("sh", path, "/bin/sh", "-c", "echo starts; [ ! -e "+lock+" ] || flock -n "+lock+" echo free || echo held")
		command.Env = append(os.Environ(), env...)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := run(); out != "starts\n" || err != nil {
		t.Errorf("without a directory: %q, %v", out, err)
	}
	write(t, lock, "")
	if out, err := run(); out != "starts\nheld\n" || err != nil {
		t.Errorf("the server has the lock: %q, %v", out, err)
	}
	file, err := os.Open(lock)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	out, err := run()
	if err == nil || strings.Contains(out, "starts\n") || !strings.Contains(out, "no second server is started") {
		t.Errorf("another has the lock: %q, %v", out, err)
	}
	if out, err := run("PATH=" + dir); err != nil || !strings.HasPrefix(out, "starts\n") {
		t.Errorf("an image without flock: %q, %v", out, err)
	}
	write(t, filepath.Join(dir, "flock"), "#!/bin/sh\nexit 71\n") // as util-linux ends with ENOLCK
	if err := os.Chmod(filepath.Join(dir, "flock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := run("PATH=" + dir + ":" + os.Getenv("PATH")); err != nil || !strings.HasPrefix(out, "starts\n") {
		t.Errorf("a file system without locks: %q, %v", out, err)
	}
}

// Of the replicas that followed a master to its end it chooses the one that has most, and the first by node ID where offsets do not
// compare; the master is one of so many. Nobody is told where one may have been appointed.
func TestStartChoosesASuccessor(t *testing.T) {
	type replica struct {
		flags, master string // of whom it says that it follows; empty: it does not answer
		since, offset int
		history       string
	}
	for name, tt := range map[string]struct {
		masters  int
		replicas []replica
		want     string // the arguments of redis-cli; empty: none are told
	}{
		"who has most": {1, []replica{{"slave", "m0", 2, 10, "a"}, {"slave", "m0", 2, 20, "a"}}, "10.0.0.1 -p 6379 CLUSTER FAILOVER TAKEOVER"},
		"the first of several": {3, []replica{{"slave", "m0", 2, 20, "a"}, {"slave", "m0", 2, 20, "a"}},
			"10.0.0.0 -p 6379 CLUSTER FAILOVER FORCE"},
		"the first of two histories": {1, []replica{{"slave", "m0", 2, 10, "a"}, {"slave", "m0", 2, 20, "b"}},
			"10.0.0.0 -p 6379 CLUSTER FAILOVER TAKEOVER"},
		"not who lost it in a process of before": {1, []replica{{"slave", "m0", -1, 90, "b"}, {"slave", "m0", 2, 20, "a"}},
			"10.0.0.1 -p 6379 CLUSTER FAILOVER TAKEOVER"},
		"one is elected":      {1, []replica{{"slave", "m0", 2, 10, "a"}, {"slave", "-", 2, 20, "a"}}, ""},
		"one follows another": {1, []replica{{"slave", "m0", 2, 10, "a"}, {"slave", "m9", 2, 20, "a"}}, ""},
		"one is silent":       {2, []replica{{"slave", "m0", 2, 10, "a"}, {"slave", "", 2, 20, "a"}}, ""},
		"one is silent, and voted": {3, []replica{{"slave", "m0", 2, 10, "a"}, {"slave", "", 2, 20, "a"}},
			"10.0.0.0 -p 6379 CLUSTER FAILOVER FORCE"},
		"one was lost before": {1, []replica{{"slave", "m0", 2, 10, "a"}, {"slave,fail", "", 2, 20, "a"}},
			"10.0.0.0 -p 6379 CLUSTER FAILOVER TAKEOVER"},
		"all were lost before": {1, []replica{{"slave,fail", "", 2, 20, "a"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, nodes := script(t, "start.sh", dir), ""
			for i := range tt.masters {
				flags := "master"
				if i == 0 {
					flags = "myself,master"
				}
				nodes += fmt.Sprintf("m%d 10.0.1.%[1]d:6379@16379 %s - 0 0 1 connected %[1]d\n", i, flags)
			}
			for i, r := range tt.replicas {
				nodes += fmt.Sprintf("r%d 10.0.0.%[1]d:6379@16379 %s m0 0 0 1 connected\n", i, r.flags)
				if r.master != "" {
					answer := filepath.Join(dir, fmt.Sprintf("10.0.0.%d.", i))
					write(t, answer+"NODES", fmt.Sprintf("r%d : myself %s 0\n", i, r.master))
					write(t, answer+"replication", fmt.Sprintf("master_link_status:down\r\nmaster_link_down_since_seconds:%d\r\n"+
						"slave_repl_offset:%d\r\nmaster_replid:%s\r\n", r.since, r.offset, r.history))
				}
			}
			write(t, filepath.Join(dir, "data", "nodes.conf"), nodes)
			write(t, filepath.Join(dir, "redis.conf"), "cluster-node-timeout 1\n") // asks for 5 s at most
			write(t, filepath.Join(dir, "redis-cli"), "#!/bin/sh\nshift 2\ncase $* in *FAILOVER*) echo \"$*\" >>"+dir+"/told\n"+
				"sed -i 's/ m0 / - /' "+dir+"/$1.NODES ;; *) cat "+dir+"/$1.${5:-none} ;; esac\n")
			command := exec.Command("sh", path, "echo", "starts")
			command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			if out, err := command.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "starts\n") {
				t.Fatalf("%v: %s", err, out)
			}
			told, _ := os.ReadFile(filepath.Join(dir, "told")) // without it nobody was told
			if got := strings.TrimSpace(string(told)); got != tt.want {
				t.Errorf("%q is told, want %q", got, tt.want)
			}
		})
	}
}
