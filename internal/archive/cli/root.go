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
			"A store is s3://BUCKET?region=REGION&prefix=PATH/, gs://BUCKET?prefix=PATH/, azblob://CONTAINER?prefix=PATH/ or\n" +
			"file:///DIRECTORY?prefix=PATH/. S3's credentials are those of the AWS SDK (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, a web\n" +
			"identity, ...); endpoint=URL and use_path_style=true are for what only speaks its language, and AWS_CA_BUNDLE names the\n" +
			"certificates to trust. Google's are in the file GOOGLE_APPLICATION_CREDENTIALS (a service account's key), or the machine's.\n" +
			"Azure's are AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or what its SDK finds.",
		Example: "  backup take monday --store file:///backups --from 10.0.0.7:6379\n" +
			"  backup archive cache --store file:///backups --from 10.0.0.7:6379\n" +
			"  backup list --store 's3://backups?region=eu-west-1&prefix=shop/'\n" +
			"  backup restore monday --shard 0 --directory /data --store file:///backups",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&o.store, "store", "", "where backups lie, such as s3://BUCKET?region=REGION or file:///DIRECTORY (required)")
	flags.Int64Var(&o.bytes, "max-bytes-per-second", 0, "how many bytes of objects are written to the store and read from it; 0: no limit")
	flags.StringVar(&o.identityFile, "identity-file", "", "age identities that decrypt, a line each (of age-keygen)")
	root.AddCommand(newTake(o), newArchive(o), newList(o), newShow(o), newVerify(o), newRestore(o), newDelete(o), newFollow(), newRelay(),
		newGateway())
	return root
}
