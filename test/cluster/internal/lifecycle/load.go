// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"middleware.hc.cn/operator/test/cluster/internal/config"
	"middleware.hc.cn/operator/test/cluster/internal/image"
	"middleware.hc.cn/operator/test/cluster/internal/state"
)

// prefixed marks every line of a program's output.
type prefixed struct {
	out    io.Writer
	prefix string
}

func (p prefixed) Write(b []byte) (int, error) {
	for _, line := range bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n")) {
		if _, err := fmt.Fprintf(p.out, "%s%s\n", p.prefix, line); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// importIntoAll puts images into every running node.
func (c *Cluster) importIntoAll(archives []string) error {
	nodes, err := c.nodeNames()
	if err != nil {
		return err
	}
	errs := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, name := range nodes {
		group.Go(func() { errs[i] = c.importInto(name, archives) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// importedFile, in a node's image store, says which archives the store holds.
const importedFile = "imported.json"

// importInto puts those images into a node that its store lacks. A node that does
// not run is left out: it gets them when it starts.
func (c *Cluster) importInto(node string, archives []string) error {
	record, alive, err := c.running(node)
	if err != nil || !alive {
		return err
	}
	store := filepath.Join(c.Dirs.Member(node), imageStore, importedFile)
	imported := map[string]string{}
	if data, err := os.ReadFile(store); err == nil {
		if err := json.Unmarshal(data, &imported); err != nil {
			return fmt.Errorf("reading %s: %w", store, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ctr, err := c.installed("containerd", "ctr")
	if err != nil {
		return err
	}
	// The socket as the node sees it: its path on the host could be too long for one.
	socket := fmt.Sprintf("/proc/%d/root%s", record.PID, config.ContainerdSocket)
	if err := waitForFile(socket); err != nil {
		return fmt.Errorf("containerd of %s: %w", node, err)
	}
	for _, archive := range archives {
		identity, err := identify(archive)
		if err != nil {
			return err
		}
		if imported[filepath.Base(archive)] == identity {
			continue
		}
		cmd := exec.Command(ctr, "--address", socket, "--namespace", "k8s.io", "images", "import", archive)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("importing %s into %s: %w: %s", archive, node, err, bytes.TrimSpace(out))
		}
		imported[filepath.Base(archive)] = identity
		data, err := json.Marshal(imported)
		if err != nil {
			return err
		}
		if err := os.WriteFile(store, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// identify tells two archives of one name apart.
func identify(archive string) (string, error) {
	info, err := os.Stat(archive)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano)), nil
}

func waitForFile(path string) error {
	for range 300 {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s did not appear within 30 s", path)
}

// Load puts image archives into all nodes; those that are stopped get them when
// they start. An argument is a file or the name of a recipe.
func (c *Cluster) Load(arguments []string) error {
	release, err := c.lock()
	if err != nil {
		return err
	}
	defer release()
	if _, err := c.installed("containerd", "ctr"); err != nil {
		return err
	}
	var archives []string
	for _, a := range arguments {
		path, err := c.findArchive(a)
		if err != nil {
			return err
		}
		// Named after the image, so that a newer build of it takes the place of an older.
		name, err := image.NameOf(path)
		if err != nil {
			return err
		}
		kept := filepath.Join(c.Dirs.Loaded(), state.SafeName(name)+".tar")
		if err := copyFile(path, kept); err != nil {
			return err
		}
		archives = append(archives, kept)
	}
	return c.stage("loading images", func() error { return c.importIntoAll(archives) })
}

// findArchive is the archive that an argument of load-image means.
func (c *Cluster) findArchive(argument string) (string, error) {
	if _, err := os.Stat(argument); err == nil {
		return argument, nil
	}
	var names []string
	for _, r := range image.Recipes() {
		if r.Name == argument {
			archives, err := c.imageBuilder().Build([]image.Recipe{r})
			if err != nil {
				return "", err
			}
			return archives[0], nil
		}
		names = append(names, r.Name)
	}
	return "", fmt.Errorf("%s is neither a file nor one of the images built here: %s", argument, strings.Join(names, ", "))
}

// copyFile replaces to in one step, with the time of change of from.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to + ".new")
	if err != nil {
		return err
	}
	defer target.Close()
	if _, err := io.Copy(target, source); err != nil {
		return err
	}
	if err := os.Chtimes(target.Name(), info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return os.Rename(target.Name(), to)
}
