// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command zstd decompresses its input, as `zstd --decompress` does, on machines that have no zstd.
package main

import (
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] != "--decompress" {
		fmt.Fprintln(os.Stderr, "usage: zstd --decompress <FILE")
		os.Exit(2)
	}
	if err := decompress(); err != nil {
		fmt.Fprintln(os.Stderr, "zstd:", err)
		os.Exit(1)
	}
}

func decompress() error {
	in, err := zstd.NewReader(os.Stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = in.WriteTo(os.Stdout)
	return err
}
