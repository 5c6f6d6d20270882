// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	v1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	"middleware.hc.cn/operator/internal/admission/crontab"
)

func valid() *v1beta1.CronTab {
	c := &v1beta1.CronTab{Spec: v1beta1.CronTabSpec{CronSpec: "* * * * */5", Image: "my-awesome-cron-image"}}
	c.Name = "my-new-cron-object"
	return c
}

func TestValidateRefuses(t *testing.T) {
	cron := func(spec string) func(*v1beta1.CronTab) { return func(c *v1beta1.CronTab) { c.Spec.CronSpec = spec } }
	tests := []struct {
		name   string
		change func(*v1beta1.CronTab)
		want   string
	}{
		{"nothing", func(*v1beta1.CronTab) {}, ""},
		{"macro", cron("@hourly"), ""},
		{"lists, ranges and names", cron("0,30 8-18/2 1,15 JAN-jun MON-FRI"), ""},
		{"leap day", cron("0 0 29 2 *"), ""},
		{"no schedule", cron(""), `spec.cronSpec: Required value: write five cron fields, such as "*/5 * * * *" for every five minutes`},
		{"hour too large", cron("0 25 * * *"),
			`spec.cronSpec: Invalid value: "0 25 * * *": position 3: hour "25": end of range (25) above maximum (23)`},
		{"second element of a list", cron("* * * 1,13 *"), `position 9: month "13": end of range (13) above maximum (12)`},
		{"not a number", cron("a * * * *"), `position 1: minute "a": failed to parse int from a`},
		{"step of zero", cron("*/0 * * * *"), `position 1: minute "*/0": step of range should be a positive number`},
		{"backward range", cron("30-10 * * * *"), `position 1: minute "30-10": beginning of range (30) beyond end of range (10)`},
		{"Sunday as 7", cron("0 0 * * 7"), `position 9: day of week "7": end of range (7) above maximum (6); Sunday is 0`},
		{"missing element", cron("1,,2 * * * *"), `position 3: an element of the list of the minute is missing`},
		{"four fields", cron("* * * *"), `position 8: the field "day of week" is missing`},
		{"six fields", cron("0 * * * * *"),
			`position 11: "*" is a field too many; write five (minute, hour, day of month, month, day of week), there are no seconds`},
		{"a day that never comes", cron("0 0 30 2 *"), `position 5: day of month "30" never comes in month "2"`},
		{"@every", cron("@every 5m"), `position 1: @every has no fixed times; write five fields`},
		{"unknown name", cron("@reboot"), `position 1: "@reboot" is not a known name; use one of @yearly, @annually`},
		{"time zone inside", cron("TZ=UTC * * * * *"), `position 1: a time zone; write it into spec.timeZone`},
		{"line break", cron("* * * * *\n- x"), `position 10: a line break; write one line`},
		{"other space", cron("0\v0 * * * *"), `position 2: '\v' has no meaning here; write letters, digits, spaces and * / , - ? only`},
		{"no image", func(c *v1beta1.CronTab) { c.Spec.Image = "" }, `spec.image: Required value: name the container image`},
		{"bad image", func(c *v1beta1.CronTab) { c.Spec.Image = "Busybox:1.36" },
			`spec.image: Invalid value: "Busybox:1.36": is not an image reference (`},
		{"image with a line break", func(c *v1beta1.CronTab) { c.Spec.Image = "busybox\nprivileged: true" },
			`is not an image reference (invalid reference format)`},
		{"no pods", func(c *v1beta1.CronTab) { c.Spec.Replicas = ptr.To[int32](0) }, `spec.replicas: Invalid value: 0: must be from 1 to 1000`},
		{"NUL", func(c *v1beta1.CronTab) { c.Spec.Args = []string{"ok", "a\x00b"} },
			`spec.args[1]: Invalid value: "a\x00b": must not hold a NUL character`},
		{"time zone", func(c *v1beta1.CronTab) { c.Spec.TimeZone = "Mars/Olympus" },
			`spec.timeZone: Invalid value: "Mars/Olympus": is not a time zone; write an IANA name, such as Asia/Shanghai or Etc/UTC`},
		{"the reader's time zone", func(c *v1beta1.CronTab) { c.Spec.TimeZone = "Local" },
			`spec.timeZone: Invalid value: "Local": is not a time zone`},
		{"path as time zone", func(c *v1beta1.CronTab) { c.Spec.TimeZone = "../../etc/passwd" }, `is not a time zone`},
		{"policy", func(c *v1beta1.CronTab) { c.Spec.ConcurrencyPolicy = "Maybe" },
			`spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"`},
		{"history", func(c *v1beta1.CronTab) { c.Spec.HistoryLimit = ptr.To[int32](-1) },
			`spec.historyLimit: Invalid value: -1: must be from 0 to 100`},
		{"name", func(c *v1beta1.CronTab) { c.Name = strings.Repeat("n", 53) }, `metadata.name: Invalid value: "` + strings.Repeat("n", 53) +
			`": must have at most 52 characters`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := valid()
			tt.change(c)
			refused := crontab.Validate(c)
			switch {
			case tt.want == "" && len(refused) > 0:
				t.Errorf("refused: %v", refused.ToAggregate())
			case tt.want != "" && len(refused) != 1:
				t.Errorf("want one refusal, got %v", refused)
			case tt.want != "" && !strings.Contains(refused[0].Error(), tt.want):
				t.Errorf("got  %s\nwant %s", refused[0], tt.want)
			}
			if diff := cmp.Diff(refused, crontab.ValidateUpdate(valid(), c)); diff != "" {
				t.Errorf("an update is judged otherwise:\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	got := crontab.Warnings(valid())
	want := []string{
		`spec.image: "my-awesome-cron-image" names no version, so each node runs the "latest" that it pulled first; add a tag or a digest`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c := valid()
	c.Spec.Image += ":1"
	if got := crontab.Warnings(c); len(got) > 0 {
		t.Error(got)
	}
}

// FuzzParseSchedule: whatever is written, there is a schedule that comes, or a position.
func FuzzParseSchedule(f *testing.F) {
	for _, spec := range []string{"* * * * */5", "@daily", "@", " ", ",", "0 0 31 2 *", "1-2-3 * * * *", "*/ * * * *", "TZ=x", "\t*\t* * * *",
		"? ? ? ? ?"} {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		schedule, err := crontab.ParseSchedule(spec)
		if (schedule == nil) == (err == nil) {
			t.Fatalf("%q: schedule %v, error %v", spec, schedule, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "position ") {
			t.Errorf("%q: no position: %v", spec, err)
		}
	})
}
