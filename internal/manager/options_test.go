// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

func environment(variables map[string]string) Environment {
	return func(name string) (string, bool) {
		value, set := variables[name]
		return value, set
	}
}

func parse(t *testing.T, env Environment, arguments ...string) (Options, error) {
	t.Helper()
	o := DefaultOptions()
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	for _, group := range o.Flags(env) {
		flags.AddFlagSet(group.FlagSet)
	}
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	return o, o.Validate()
}

func TestFlags(t *testing.T) {
	olm := map[string]string{"WATCH_NAMESPACE": "shop,billing"}
	tests := map[string]struct {
		env  map[string]string
		args []string
		want func(*Options)
	}{
		"nothing given":       {want: func(*Options) {}},
		"namespaces from OLM": {env: olm, want: func(o *Options) { o.Namespaces = []string{"shop", "billing"} }},
		"a flag beats OLM": {env: olm, args: []string{"--watch-namespaces=x"},
			want: func(o *Options) { o.Namespaces = []string{"x"} }},
		"one number for all kinds": {args: []string{"--max-concurrent-reconciles=7"}, want: func(o *Options) { o.Concurrency.Default = 7 }},
		"webhooks without a value": {args: []string{"--webhooks=false"}, want: func(o *Options) { o.Webhooks.Mode = WebhooksOff }},
		"everything that serves, off": {args: []string{"--metrics-bind-address=0", "--health-probe-bind-address=0"},
			want: func(o *Options) { o.Serving.MetricsAddress, o.Serving.HealthAddress = "0", "0" }},
		"pprof on": {args: []string{"--pprof-bind-address=127.0.0.1:6060"},
			want: func(o *Options) { o.Serving.PprofAddress = "127.0.0.1:6060" }},
		"a number for a kind": {args: []string{"--max-concurrent-reconciles=2,rediscluster=8"},
			want: func(o *Options) {
				o.Concurrency = Concurrency{Default: 2, ByController: map[string]int{"rediscluster": 8}}
			}},
		"another lease": {args: []string{"--leader-election-id=mine", "--leader-election-lease-duration=1m"},
			want: func(o *Options) { o.LeaderElection.ID, o.LeaderElection.LeaseDuration = "mine", time.Minute }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse(t, environment(test.env), test.args...)
			if err != nil {
				t.Fatal(err)
			}
			want := DefaultOptions()
			test.want(&want)
			if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Log" }, cmp.Ignore())); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongFlagsSayWhatIsRight(t *testing.T) {
	tests := map[string]struct{ flag, want string }{
		"namespace":      {"--watch-namespaces=Shop", `--watch-namespaces: "Shop" is not the name of a namespace`},
		"create timeout": {"--cluster-create-timeout=0s", "--cluster-create-timeout: 0s is too short; give 1s or more"},
		"unit missing": {"--redis-poll-interval=5",
			`invalid argument "5" for "--redis-poll-interval" flag: time: missing unit in duration "5"`},
		"domain": {
			"--cluster-domain=cluster_local", `--cluster-domain: "cluster_local" is not a DNS domain; give one such as cluster.local`},
		"resync":   {"--sync-period=1s", "--sync-period: 1s is too short; give 10s or more, or 0 for no resync"},
		"canaries": {"--cluster-upgrade-canaries=-1", "--cluster-upgrade-canaries: -1 is not between 0 and 1000; 0 means that all clusters are upgraded at once"},
		"a wave of none": {"--cluster-upgrade-wave=0",
			"--cluster-upgrade-wave: 0 is not between 1 and 1000; --cluster-upgrade-canaries=0 upgrades all at once"},
		"a pause":       {"--cluster-upgrade-pause=2h", "--cluster-upgrade-pause: 2h0m0s is not between 0 and 1h"},
		"graceful stop": {"--graceful-shutdown-timeout=-1s", "--graceful-shutdown-timeout: -1s is negative; give 0 or more"},
		"lease": {
			"--leader-election-lease-duration=5s",
			"--leader-election-lease-duration: 5s must be longer than --leader-election-renew-deadline (10s)"},
		"renewal": {
			"--leader-election-retry-period=9s",
			"--leader-election-renew-deadline: 10s must be longer than 1.2 times --leader-election-retry-period (9s, which must be above 0)"},
		"one shard":         {"--shards=1", "--shards: 1 is not between 2 and 32; 0 means that one replica works on everything"},
		"too many shards":   {"--shards=33", "--shards: 33 is not between 2 and 32"},
		"shards and no one": {"--shards=4 --leader-elect=false", "--shards: replicas share by Leases; without --leader-elect give 0"},
		"lease's name":      {"--leader-election-id=A_B", `--leader-election-id: "A_B" cannot name a Lease`},
		"address": {
			"--metrics-bind-address=8080", `--metrics-bind-address: "8080" is not an address; give host:port, :port, or 0 to turn it off`},
		"webhooks":  {"--webhooks=maybe", `--webhooks: "maybe" is unknown; give auto, on or off`},
		"user IDs":  {"--platform-user-ids=maybe", `--platform-user-ids: "maybe" is unknown; give auto, on or off`},
		"port":      {"--webhook-port=70000", "--webhook-port: 70000 is not a port; give 1 to 65535"},
		"master":    {"--master=10.0.0.1", `--master: "10.0.0.1" is not the URL of an API server; give https://HOST:PORT`},
		"no number": {"--max-concurrent-reconciles=rediscluster=many", `"rediscluster=many" is neither a number nor NAME=NUMBER`},
		"too many": {"--max-concurrent-reconciles=rediscluster=1000",
			"--max-concurrent-reconciles: rediscluster=1000 is out of range; give 1 to 100"},
		"none": {"--max-concurrent-reconciles=0", "--max-concurrent-reconciles: 0 is out of range; give 1 to 100"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, environment(nil), strings.Fields(test.flag)...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want it to say %s", err, test.want)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	known := []string{"rediscluster", "application", "crontab", "foobar"}
	tests := map[string]struct {
		patterns []string
		want     []string
		err      string
	}{
		"all":                  {patterns: []string{"*"}, want: known},
		"all but one":          {patterns: []string{"*", "-foobar"}, want: []string{"rediscluster", "application", "crontab"}},
		"order is no matter":   {patterns: []string{"-foobar", "*"}, want: []string{"rediscluster", "application", "crontab"}},
		"one":                  {patterns: []string{"crontab"}, want: []string{"crontab"}},
		"the last word counts": {patterns: []string{"*", "-foobar", "foobar"}, want: known},
		"spaces":               {patterns: []string{"crontab", " foobar"}, want: []string{"crontab", "foobar"}},
		"unknown": {
			patterns: []string{"*", "-mysql"},
			err:      `--controllers: there is no controller "mysql"; there are rediscluster, application, crontab, foobar`},
		"none": {patterns: []string{"-crontab"}, err: "turns every controller off"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Select(test.patterns, known)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("error %v, selected (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestConcurrency(t *testing.T) {
	c := Concurrency{Default: 4}
	if err := c.Set("2,rediscluster=8"); err != nil {
		t.Fatal(err)
	}
	if got := []int{c.For("rediscluster"), c.For("crontab")}; !cmp.Equal(got, []int{8, 2}) {
		t.Errorf("numbers %v, want [8 2]", got)
	}
	if got := c.String(); got != "2,rediscluster=8" {
		t.Errorf("as text %q", got)
	}
	err := c.unknown([]string{"crontab"})
	if want := `there is no controller "rediscluster"; there are crontab`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestControllersComeFromTheWatchesFile(t *testing.T) {
	o := DefaultOptions()
	o.WatchesFile = "../../watches.yaml"
	got, err := o.controllers(environment(nil))
	if diff := cmp.Diff([]string{"rediscluster", "application", "crontab", "foobar", "app"}, names(got)); err != nil || diff != "" {
		t.Errorf("error %v, controllers (-want +got):\n%s", err, diff)
	}
	o.Controllers = []string{"*", "-rediscluster", "-application"}
	o.Concurrency = Concurrency{Default: 1, ByController: map[string]int{"mysql": 2}}
	if _, err := o.controllers(environment(nil)); err == nil || !strings.Contains(err.Error(), `no controller "mysql"`) {
		t.Errorf("error %v, want one about mysql", err)
	}
	o.WatchesFile = "missing.yaml"
	if _, err := o.controllers(environment(nil)); err == nil || !strings.Contains(err.Error(), "--watches-file") {
		t.Errorf("error %v, want one about --watches-file", err)
	}
}

func TestKindsOfOneNameAreToldApartByGroup(t *testing.T) {
	kind := func(group string) controller {
		return controller{name: "database", gvk: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Database"}}
	}
	got := names(distinguish([]controller{kind("a.example.com"), kind("b.example.com")}))
	if diff := cmp.Diff([]string{"database", "database.b.example.com"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMaster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}], "users": [{"name": "u", "user": {"token": "secret"}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for name, tc := range map[string]struct {
		kubeconfig, master, host, token string
		refused                         bool
	}{
		"a kubeconfig":                {path, "", "https://10.0.0.1:6443", "secret", false},
		"a kubeconfig and an address": {path, "https://10.0.0.2:6443", "https://10.0.0.2:6443", "secret", false},
		"an address alone":            {"", "http://127.0.0.1:8001", "http://127.0.0.1:8001", "", false},
		"nothing":                     {"", "", "", "", true},
		"a kubeconfig that is not there is not passed over": {filepath.Join(empty, "none"), "http://127.0.0.1:8001", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			t.Setenv("HOME", empty)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			o, err := parse(t, environment(nil), "--kubeconfig="+tc.kubeconfig, "--master="+tc.master)
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := o.Connection()
			if (err != nil) != tc.refused {
				t.Fatalf("error %v, want one: %v", err, tc.refused)
			}
			if err == nil && (cfg.Host != tc.host || cfg.BearerToken != tc.token) {
				t.Errorf("got %s with token %q", cfg.Host, cfg.BearerToken)
			}
		})
	}
}

func TestLogs(t *testing.T) {
	klogs := klog.CaptureState()
	for name, tc := range map[string]struct {
		flags []string
		// ours and theirs are parts of what is written for a line of ours and one of client-go's, both of verbosity 2.
		ours, theirs, refused string
	}{
		"by default":                         {nil, "", "", ""},
		"more of it":                         {[]string{"--v=2"}, `"msg":"ours"`, `"msg":"theirs"`, ""},
		"zap's level goes first":             {[]string{"--v=2", "--zap-log-level=info"}, "", "", ""},
		"as Kubernetes' components log":      {[]string{"--v=2", "--logtostderr=true"}, `"ours" key="value"`, "theirs", ""},
		"the same, with klog's own spelling": {[]string{"--v=2", "--skip_headers=false"}, `"ours" key="value"`, "theirs", ""},
		"both":                               {[]string{"--zap-encoder=console", "--log_dir=/tmp"}, "", "", "give one or the other"},
	} {
		t.Run(name, func(t *testing.T) {
			defer klogs.Restore()
			o := DefaultOptions()
			var written bytes.Buffer
			o.Log.DestWriter = &written
			flags := newFlagSet()
			for _, group := range o.Flags(environment(nil)) {
				flags.AddFlagSet(group.FlagSet)
			}
			if err := flags.Parse(append([]string{"--v=0"}, tc.flags...)); err != nil {
				t.Fatal(err)
			}
			logger, err := o.logger(flags)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("error %v, want %s", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(tc.ours, `"ours"`) { // klog writes to standard error by itself
				klog.LogToStderr(false)
				klog.SetOutput(&written)
			}
			logger.V(2).Info("ours", "key", "value")
			klog.V(2).Info("theirs")
			klog.Flush()
			for text, want := range map[string]string{"ours": tc.ours, "theirs": tc.theirs} {
				if got := written.String(); !strings.Contains(got, want) || want == "" && strings.Contains(got, text) {
					t.Errorf("%s: want %q in\n%s", text, want, got)
				}
			}
		})
	}
}
