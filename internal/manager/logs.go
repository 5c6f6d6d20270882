// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"flag"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	uzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// klogFlags are klog's own, which Kubernetes' components and client-go have.
func klogFlags() *pflag.FlagSet {
	f := newFlagSet()
	native := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(native)
	f.AddGoFlagSet(native)
	f.VisitAll(func(flag *pflag.Flag) { // in the words of this command line: --log-dir, where klog says -log_dir
		flag.Usage = strings.TrimSuffix(strings.NewReplacer("-logtostderr", "--logtostderr", "-alsologtostderr", "--alsologtostderr",
			"-legacy_stderr_threshold_behavior", "--legacy-stderr-threshold-behavior").Replace(flag.Usage), ".")
	})
	return f
}

// StartLogs has everything log to where the flags say: ours, controller-runtime's and client-go's. It is zap's JSON unless a flag of
// klog's output is given; then it is klog's lines. --v is the verbosity of both. Call flush before the end.
func (o *Options) StartLogs(flags *pflag.FlagSet) (flush func(), err error) {
	logger, err := o.logger(flags)
	if err != nil {
		return func() {}, err
	}
	ctrl.SetLogger(logger)
	return klog.Flush, nil
}

func (o *Options) logger(flags *pflag.FlagSet) (logr.Logger, error) {
	ours, theirs := false, false
	klogs := klogFlags()
	flags.Visit(func(given *pflag.Flag) {
		verbosity := slices.Contains([]string{"v", "vmodule"}, given.Name)
		ours = ours || strings.HasPrefix(given.Name, "zap-")
		theirs = theirs || klogs.Lookup(given.Name) != nil && !verbosity
	})
	if ours && theirs {
		return logr.Logger{}, errors.New("logs: flags of klog's output and flags of zap's are given; give one or the other (--v goes with both)")
	}
	if theirs {
		return klog.NewKlogr(), nil
	}
	if given := flags.Lookup("v"); given != nil && given.Changed && !flags.Changed("zap-log-level") {
		verbosity, err := strconv.Atoi(given.Value.String())
		if err != nil {
			return logr.Logger{}, err
		}
		o.Log.Level = uzap.NewAtomicLevelAt(zapcore.Level(-min(max(verbosity, 0), 127)))
	}
	logger := zap.New(zap.UseFlagOptions(&o.Log))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	return logger, nil
}
