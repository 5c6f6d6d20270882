// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/exec"
)

// Running is a verb of test/load that runs by itself: it does not end when a connection to the API server does.
type Running struct {
	application *Application
	files       string // path of the files .pid, .out, .err and .code, without their endings
}

// begun numbers what Begin has started, so that each has files of its own.
var begun atomic.Int64

// begin starts "$@" after the first word, which names its files.
const begin = `at="$1"; shift; rm -f "$at".*
( "$@" </dev/null >"$at.out" 2>"$at.err" & echo $! >"$at.pid"; wait $!; echo $? >"$at.code" ) </dev/null >/dev/null 2>&1 &
until [ -s "$at.pid" ]; do sleep 0.1; done`

// end waits for it and does as it did.
const end = `until [ -s "$1.code" ]; do sleep 0.1; done; cat "$1.out"; cat "$1.err" >&2; exit "$(cat "$1.code")"`

// stop tells it to end, once; it fails when it has ended by itself.
const stop = `[ ! -e "$1.told" ] || exit 0; [ ! -s "$1.code" ] || exit 1; : >"$1.told"; kill -TERM "$(cat "$1.pid")"`

// Do runs a verb of test/load to its end and returns what it printed.
func (a *Application) Do(ctx context.Context, verb string, flags ...string) (string, error) {
	r, err := a.Begin(ctx, verb, append([]string{"--addr", a.Address()}, flags...)...)
	if err != nil {
		return "", err
	}
	return r.surely(ctx, end)
}

// Begin starts a verb of test/load that runs until it is told to end, as run and watch do.
// It needs a flag --addr; Address gives the cluster's Service.
func (a *Application) Begin(ctx context.Context, verb string, flags ...string) (*Running, error) {
	r := &Running{application: a, files: fmt.Sprintf("%s/%s-%d", filepath.Dir(program), verb, begun.Add(1))}
	_, err := a.execute(ctx, append([]string{"sh", "-c", begin, "sh", r.files, program, verb}, flags...)...)
	return r, err
}

// End tells the verb to end, waits for it and reads the JSON that it printed into result.
// An error if it had ended by itself.
func (r *Running) End(ctx context.Context, result any) error {
	if _, err := r.surely(ctx, stop); err != nil {
		out, why := r.surely(ctx, end)
		return fmt.Errorf("it ended by itself: %w: %s", errors.Join(err, why), out)
	}
	out, err := r.surely(ctx, end)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), result); err != nil {
		return fmt.Errorf("read what load printed: %w: %s", err, out)
	}
	return nil
}

// surely runs a script that may be run again, and does so when the connection to the API server breaks off.
func (r *Running) surely(ctx context.Context, script string) (out string, err error) {
	const tries, aWhile = 30, 10 * time.Second
	for failed := 1; ; failed++ {
		began := time.Now()
		out, err = r.application.execute(ctx, "sh", "-c", script, "sh", r.files)
		var code exec.CodeExitError
		if err == nil || errors.As(err, &code) || ctx.Err() != nil || failed == tries {
			return out, err
		}
		if time.Since(began) > aWhile {
			failed = 0
		}
		time.Sleep(time.Second)
	}
}
