// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis"
)

// source is a cluster that is backed up.
type source struct {
	taking archive.Taking
	login  login
}

// add adds what says which cluster it is, and how it is reached.
func (s *source) add(flags *pflag.FlagSet, o *options, within time.Duration, timeout string) {
	t := &s.taking
	flags.StringSliceVar(&t.Seeds, "from", nil, "addresses of instances, IP:PORT or NAME:PORT; one that answers is enough (required)")
	flags.StringSliceVar(&t.Nodes, "node", nil, "node IDs of the cluster; an instance that knows none of them is not asked further")
	flags.StringVar(&t.Cluster, "cluster", "", "whose data it is, for people")
	flags.StringVar(&s.login.user, "user", "", "who logs in (default: the default user)")
	flags.StringVar(&s.login.passwordFile, "password-file", "", "file with the password; none: no password")
	flags.StringVar(&s.login.caFile, "ca-file", "", "certificates to trust, in PEM; with it, connections are encrypted")
	flags.StringVar(&s.login.serverName, "server-name", "", "name that the instances' certificates are for")
	s.login.addCertificate(flags)
	flags.StringSliceVar(&o.recipients, "recipient", nil, "age recipients (age1...) that what is written is encrypted for")
	flags.DurationVar(&t.Pause, "pause", archive.DefaultPause, "for how long writes may be delayed at most")
	flags.DurationVar(&t.Timeout, "timeout", within, timeout)
	flags.BoolVar(&t.SlotsStay, "slots-stay", false, "somebody else sees to it that no slots move")
}

// with reaches the cluster and the store, and has what is done on the way said.
func (s *source) with(command *cobra.Command, o *options, do func(archive.Taking) error) (err error) {
	t := s.taking
	if t.Credentials, err = s.login.credentials(); err != nil {
		return err
	}
	return o.with(command.Context(), func(store *archive.Store) error {
		t.Pool = redis.NewPool(redis.Options{IOTimeout: 10 * time.Second, DialTimeout: 5 * time.Second})
		defer t.Pool.Close()
		t.Store = store
		t.Report = func(p archive.Progress) {
			whose := "all shards"
			if p.Shard >= 0 {
				whose = fmt.Sprintf("shard %d", p.Shard)
			}
			fmt.Fprintf(command.ErrOrStderr(), "%s: %s%s\n", whose, p.What, amount(p.Bytes))
		}
		return do(t)
	})
}

const rightsNeeded = "The user needs the rights\n  " + archive.Rights + "\nand, without --slots-stay, " + archive.RightsValkey9 +
	" on Valkey from 9.0 on."

func newTake(o *options) *cobra.Command {
	var s source
	var reportFile, listen string
	command := &cobra.Command{
		Use:   "take NAME",
		Short: "take a backup of a cluster, all shards at one moment",
		Long: "Takes a backup. Each shard's data comes from a replica, by replication; the cluster's disks are not touched. Writes are delayed\n" +
			"for a few milliseconds while the moment is set that the backup is of.\n\n" + rightsNeeded,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			s.taking.Name = args[0]
			var m *archive.Manifest
			err := s.with(command, o, func(t archive.Taking) error {
				t.Meter = &archive.Meter{}
				return serving(command.Context(), listen, progress(t.Meter, t.Request), func(ctx context.Context) (err error) {
					m, err = t.Take(ctx)
					return err
				})
			})
			if reportFile != "" {
				err = errors.Join(err, writeReport(reportFile, m, err, none))
			}
			if err != nil {
				return err
			}
			stored, plain := m.Bytes()
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s: %d shards, %d bytes of data, %d stored, consistent: %t, writes delayed for %.1f ms\n",
				m.Name, len(m.Shards), plain, stored, m.Consistent, m.Paused*1000)
			return err
		},
	}
	flags := command.Flags()
	s.add(flags, o, archive.DefaultTimeout, "for how long slots may move, or a failover last, before the backup is given up")
	flags.StringVar(&s.taking.Request, "request", "",
		"what the backup is asked for with; one that is complete, and was asked for with the same, is no error")
	flags.StringVar(&reportFile, "report-file", "", reportFileUsage)
	flags.StringVar(&listen, "listen", "", listenUsage)
	return command
}

const (
	listenUsage     = "address to say at how far it is, such as :8080; none: nowhere"
	reportFileUsage = "file to write what became of it into, as JSON, 4096 bytes at most"
	none            = -1 // no shard
)

// writeReport writes what became of a backup, and which shard of it was restored.
func writeReport(path string, m *archive.Manifest, failed error, shard int) error {
	var r report.Report
	if failed == nil {
		r, failed = m.Report()
	}
	switch {
	case failed != nil:
		r = report.Report{Error: failed.Error()}
	case shard != none:
		r.Restored = m.Shards[shard].Slots.String()
	}
	text, err := r.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// amount is a number of bytes for people; empty: none.
func amount(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f MiB", float64(bytes)/(1<<20))
}

func newList(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list the backups that are complete, and the archives",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.with(command.Context(), func(store *archive.Store) error {
				table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "NAME\tFROM\tTO\tCLUSTER\tENGINE\tSHARDS\tCONSISTENT")
				for found, err := range store.List(command.Context()) {
					if err != nil {
						return err
					}
					s, err := spanOf(command.Context(), store, found)
					if err != nil {
						fmt.Fprintf(table, "%s\t%v\n", found.Name, err)
						continue
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%q\t%s %s\t%d\t%t\n", found.Name, s.First.Marked.Format(time.RFC3339),
						s.Last.Marked.Format(time.RFC3339), s.Cluster, s.Engine, s.Version, s.Shards, s.Last.Consistent)
				}
				return table.Flush()
			})
		},
	}
}

// spanOf is what moments there are: of a backup, one.
func spanOf(ctx context.Context, store *archive.Store, found archive.Entry) (archive.Span, error) {
	if found.Archive {
		return store.Span(ctx, found.Name)
	}
	m, err := store.Manifest(ctx, found.Name)
	if err != nil {
		return archive.Span{}, err
	}
	return archive.Span{First: m.Moment, Last: m.Moment, Cluster: m.Cluster, Engine: m.Engine, Version: m.Version, Shards: len(m.Shards)}, nil
}

func newShow(o *options) *cobra.Command {
	var w which
	command := &cobra.Command{
		Use:   "show NAME",
		Short: "print the manifest of a backup, or of a moment of an archive, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return o.withBackup(command.Context(), args[0], w, func(_ *archive.Store, m *archive.Manifest) error {
				out := json.NewEncoder(command.OutOrStdout())
				out.SetIndent("", "  ")
				return out.Encode(m)
			})
		},
	}
	w.add(command.Flags())
	return command
}

func newVerify(o *options) *cobra.Command {
	var w which
	command := &cobra.Command{
		Use:   "verify NAME",
		Short: "read a whole backup and compare it with its manifest",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return o.withBackup(command.Context(), args[0], w, func(store *archive.Store, m *archive.Manifest) error {
				if err := store.Verify(command.Context(), m); err != nil {
					return err
				}
				_, plain := m.Bytes()
				_, err := fmt.Fprintf(command.OutOrStdout(), "%s: %d shards, %d bytes, all as the manifest says\n", m.Name, len(m.Shards), plain)
				return err
			})
		},
	}
	w.add(command.Flags())
	return command
}

func newRestore(o *options) *cobra.Command {
	var (
		w                            which
		r                            archive.Restoring
		shards                       int
		reader, checksum, reportFile string
		listen                       string
		files                        []string
	)
	command := &cobra.Command{
		Use:   "restore NAME",
		Short: "write what an instance needs to start as the master of one shard",
		Long: "Writes an append-only file and nodes.conf into an instance's directory. Start the instance with appendonly yes and\n" +
			"aof-load-truncated no; once all shards' instances have their data, let them meet (CLUSTER MEET), and add replicas.",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			engine, version, err := engineOf(reader)
			if err != nil {
				return err
			}
			use := func(store *archive.Store, m *archive.Manifest) error {
				r.Manifest = m
				if err := fits(m, shards, checksum); err != nil {
					return err
				}
				if engine != "" {
					if err := m.CheckReadable(engine, version); err != nil {
						return err
					}
				}
				r.Meter = &archive.Meter{}
				err := serving(command.Context(), listen, progress(r.Meter, r.Request),
					func(ctx context.Context) error { return store.Restore(ctx, r) })
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(command.OutOrStdout(), "shard %d as of %s, consistent: %t, manifest %s\n", r.Shard,
					m.Marked.Format(time.RFC3339Nano), m.Consistent, m.Checksum)
				return err
			}
			if len(files) > 0 {
				err = o.withFiles(command.Context(), files, use)
			} else {
				err = o.withBackup(command.Context(), args[0], w, use)
			}
			if reportFile != "" {
				err = errors.Join(err, writeReport(reportFile, r.Manifest, err, r.Shard))
			}
			return err
		},
	}
	flags := command.Flags()
	w.add(flags)
	flags.IntVar(&r.Shard, "shard", 0, "number of the shard, from 0")
	flags.StringVar(&r.Directory, "directory", "/data", "directory of an instance that has no data")
	flags.StringArrayVar(&files, "file", nil, "SLOTS:OBJECT[,OBJECT...]: restore no backup, but an RDB or an append-only file of a\n"+
		"server in the store, the parts of the latter in their order; once for each shard. NAME is for people then")
	flags.StringVar(&reader, "engine", "", "engine that is to read it, such as redis:8.0.6 or valkey:9.1.2: refuse what it cannot")
	flags.IntVar(&shards, "shards", 0, "how many shards the backup must have; 0: any number")
	flags.StringVar(&checksum, "manifest-checksum", "", "SHA-256 that the backup's manifest must have, in hex digits")
	flags.StringVar(&r.Request, "request", "",
		"what the restore is asked for with; one that was asked for with the same, and is whole, is no error")
	flags.StringVar(&reportFile, "report-file", "", reportFileUsage)
	flags.StringVar(&listen, "listen", "", listenUsage)
	return command
}

// fits says why a backup is not the one that is wanted.
func fits(m *archive.Manifest, shards int, checksum string) error {
	if shards != 0 && shards != len(m.Shards) {
		return fmt.Errorf("the backup has %d shards, and the cluster %d: restore it into a cluster of %d shards, and scale that",
			len(m.Shards), shards, len(m.Shards))
	}
	if checksum == "" {
		return nil
	}
	is, err := m.Report()
	if err == nil && is.Manifest != checksum {
		err = fmt.Errorf("the manifest has the checksum %s: it is not the backup that is meant, or was changed since", is.Manifest)
	}
	return err
}

func newDelete(o *options) *cobra.Command {
	var request, reportFile string
	command := &cobra.Command{
		Use:   "delete NAME",
		Short: "delete a backup or an archive, or what a backup left that was never complete",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			err := o.with(command.Context(), func(store *archive.Store) error {
				if command.Flags().Changed("request") {
					return store.DeleteRequested(command.Context(), args[0], request)
				}
				return store.Delete(command.Context(), args[0])
			})
			if reportFile != "" {
				err = errors.Join(err, writeDeletion(reportFile, err))
			}
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&request, "request", "", "delete only what was asked for with the same; another's is left alone, and an error if it is complete")
	flags.StringVar(&reportFile, "report-file", "", "file to write into what became of it, as JSON, 4096 bytes at most")
	return command
}

func writeDeletion(path string, failed error) error {
	d := report.Deletion{Deleted: failed == nil, Another: errors.Is(failed, archive.ErrAnother)}
	if failed != nil {
		d.Error = failed.Error()
	}
	text, err := d.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
