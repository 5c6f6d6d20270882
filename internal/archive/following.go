// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/relay"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Following is what an instance needs in its empty directory to start as the replica of a server outside.
type Following struct {
	Directory string
	// Shard is the shard that the instance begins, and Slots are those of the shard.
	Shard int
	Slots slots.Set
	// MasterID is the node ID that the instance knows the server by, and that no node has; Address is where it is reached, IP:PORT.
	MasterID, Address string
	// Request is what it is asked for with, such as the UID of an object.
	Request string
}

// mark is what is kept of it in the directory.
func (f Following) mark() string {
	return fmt.Sprintf("request %q follows %q at %q slots %s\n", f.Request, f.MasterID, f.Address, f.Slots)
}

// formerMark is what operators of before kept, which did not say the address.
func (f Following) formerMark() string {
	return fmt.Sprintf("request %q follows %q slots %s\n", f.Request, f.MasterID, f.Slots)
}

// elsewhere reports whether a mark is the same but for the address, which may be one that it does not say: that may be
// another's by now, who would be sent the password.
func (f Following) elsewhere(mark string) bool {
	var request, id, owned string
	of := f
	_, err := fmt.Sscanf(mark, "request %q follows %q at %q slots %s\n", &request, &id, &of.Address, &owned)
	return err == nil && of.Address != f.Address && of.mark() == mark || mark == f.formerMark()
}

// Write writes nodes.conf: the instance is a replica, of a master that owns the slots. What was written for the same request stays as it
// is, whatever an instance has made of it since. An instance that was to follow another address is prepared anew as long as it has no
// data; a directory with anything else of an instance is refused.
func (f Following) Write() error {
	mark := f.mark()
	text, err := os.ReadFile(filepath.Join(f.Directory, restored))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	was := string(text)
	anew := f.elsewhere(was)
	for _, name := range []string{nodesFile, appendDir, "dump.rdb"} {
		switch _, err := os.Stat(filepath.Join(f.Directory, name)); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case was == mark && name == nodesFile:
			return nil
		case anew && name == nodesFile:
		default:
			return fmt.Errorf("%s has %s: an instance has its data there, and nothing is brought over that", f.Directory, name)
		}
	}
	nodes, err := f.nodes()
	if err != nil {
		return err
	}
	if anew { // before the mark, which vouches for what is there
		if err := os.Remove(filepath.Join(f.Directory, nodesFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := syncDir(f.Directory); err != nil {
			return err
		}
	}
	if err := writeText(filepath.Join(f.Directory, restored), mark); err != nil {
		return err
	}
	if err := errors.Join(writeText(filepath.Join(f.Directory, staging), nodes), syncDir(f.Directory)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(f.Directory, staging), filepath.Join(f.Directory, nodesFile)); err != nil {
		return err
	}
	return syncDir(f.Directory)
}

func (f Following) nodes() (string, error) {
	host, portText, err := net.SplitHostPort(f.Address)
	port, notNumber := strconv.ParseUint(portText, 10, 16)
	if err != nil || net.ParseIP(host) == nil || notNumber != nil || port == 0 || port > 1<<15 {
		return "", fmt.Errorf("%.80q is no address IP:PORT", f.Address)
	}
	const idBytes = 20
	if id, err := hex.DecodeString(f.MasterID); err != nil || len(id) != idBytes || f.MasterID != strings.ToLower(f.MasterID) {
		return "", fmt.Errorf("%.80q is no node ID", f.MasterID)
	}
	id := make([]byte, idBytes)
	rand.Read(id)
	if f.Slots.IsEmpty() {
		return "", errors.New("the shard has no slots")
	}
	epoch := epochBase + 1 + f.Shard // each shard has one of its own, also after it took over
	const busBeyond = 10000          // where the cluster bus is by default: nobody answers there
	return fmt.Sprintf("%s :0@0 myself,slave %s 0 0 %d connected\n%s %s:%d@%d master - 0 0 %d connected %s\nvars currentEpoch %d lastVoteEpoch 0\n",
		hex.EncodeToString(id), f.MasterID, epoch, f.MasterID, host, port, port+busBeyond, epoch, strings.ReplaceAll(f.Slots.String(), ",", " "),
		epoch), nil
}

// written is as which RDB version engines write, from the first version of the engine in which they do; the newest first.
var written = map[redis.Engine][]struct{ from, rdb string }{
	redis.EngineRedis:  {{"7.4.0", "REDIS0012"}, {"7.2.0", "REDIS0011"}, {"7.0.0", "REDIS0010"}, {"6.2.0", "REDIS0009"}},
	redis.EngineValkey: {{"9.0.0", "VALKEY080"}, {"7.2.0", "REDIS0011"}},
}

// CheckSource says why the data of a server outside cannot come into an instance by replication; with no engine, which instance that is
// is not known, and its engine says so.
func CheckSource(is redis.Outside, engine redis.Engine, version string) error {
	switch {
	case is.Role != redis.RoleMaster:
		return errors.New("it is a replica, at which writes cannot be delayed: name its master")
	case is.Others:
		return errors.New("it has keys in other databases than 0, which a cluster does not have: move or delete them")
	case len(is.Modules) > 0 && engine == redis.EngineValkey:
		return fmt.Errorf("it has the modules %s loaded, which Valkey lacks", strings.Join(is.Modules, ", "))
	}
	from, err := semver.NewVersion(is.Version)
	if err != nil {
		return fmt.Errorf("%.40q is no version: %w", is.Version, err)
	}
	var rdb string
	for _, entry := range written[is.Engine] {
		if !from.LessThan(semver.MustParse(entry.from)) {
			rdb = entry.rdb
			break
		}
	}
	if rdb == "" {
		return fmt.Errorf("it is %s %s, which cannot delay writes alone: Redis can from 6.2 on", is.Engine, is.Version)
	}
	if engine == "" {
		return nil
	}
	to, err := semver.NewVersion(version)
	if err != nil {
		return fmt.Errorf("%.40q is no version: %w", version, err)
	}
	older := to.Major() < from.Major() || to.Major() == from.Major() && to.Minor() < from.Minor()
	if engine == is.Engine && !older {
		return nil
	}
	for _, entry := range readable[engine] {
		if to.LessThan(semver.MustParse(entry.from)) {
			continue
		}
		if rdb == "REDIS0009" || slices.Contains(entry.rdbs, rdb) && engine != is.Engine {
			return nil // what came with a version of the same engine is not known to one before it
		}
		break
	}
	return fmt.Errorf("%s %s does not read what %s %s writes (%s)", engine, version, is.Engine, is.Version, rdb)
}

// Followable says why a source cannot be followed at the moment. Redis 7.0 crashes in cluster mode when a base has other databases.
func Followable(ctx context.Context, source *relay.Source) error {
	is, err := source.Look(ctx)
	if err == nil {
		err = CheckSource(is, "", "")
	}
	if err == nil {
		err = source.Owns(is)
	}
	return err
}
