// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of backups.
package cli

import "github.com/spf13/cobra"

// New returns the command line.
func New() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "backup",
		Short: "take backups of Redis clusters, and bring them back",
		Long: "Takes backups of Redis and Valkey clusters into an object store, all shards at one moment, and brings them back.\n\n" +
			"A store is s3://BUCKET?region=REGION&prefix=PATH/, azblob://CONTAINER?prefix=PATH/ or file:///DIRECTORY. S3's credentials\n" +
			"are those of the AWS SDK (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, a web identity, ...); endpoint=URL and\n" +
			"use_path_style=true are for what only speaks its language, and AWS_CA_BUNDLE names the certificates to trust.",
		Example: "  backup take monday --store file:///backups --from 10.0.0.7:6379\n" +
			"  backup archive cache --store file:///backups --from 10.0.0.7:6379\n" +
			"  backup list --store 's3://backups?region=eu-west-1&prefix=shop/'\n" +
			"  backup restore monday --shard 0 --directory /data --store file:///backups",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&o.store, "store", "", "where backups lie, such as s3://BUCKET?region=REGION or file:///DIRECTORY (required)")
	flags.StringVar(&o.identityFile, "identity-file", "", "age identities that decrypt, a line each (of age-keygen)")
	root.AddCommand(newTake(o), newArchive(o), newList(o), newShow(o), newVerify(o), newRestore(o), newDelete(o), newFollow(), newRelay())
	return root
}
