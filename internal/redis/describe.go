// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// describeCommands are what Describe asks. The table of nodes says who the node itself is, and INFO keyspace counts the
// keys of all databases, so that neither CLUSTER MYID nor DBSIZE (which some engines refuse while loading) is needed.
// INFO with several sections needs Redis 7.0.
var describeCommands = []command{
	{name: "INFO", args: words("INFO server clients memory persistence stats replication cpu keyspace errorstats")},
	{name: "CLUSTER INFO", args: words("CLUSTER INFO")},
	{name: "CLUSTER NODES", args: words("CLUSTER NODES")},
	{name: configGet, args: words("CONFIG GET " + settingNodeTimeout)},
	atomicProbe,
	slowlog,
}

// readers read the answers to describeCommands.
var readers = []func(*View, *redis.Cmd) error{asText(readInfo), asText(readClusterInfo), asText(readNodes), readSettings, readAtomicMethod,
	readSlowlog}

// slowlog asks for the last slow command alone, whose number says how many there have been.
var slowlog = command{name: "SLOWLOG GET", args: words("SLOWLOG GET 1")}

const (
	configGet          = "CONFIG GET"
	settingNodeTimeout = "cluster-node-timeout"
)

func asText(read func(*View, string) error) func(*View, *redis.Cmd) error {
	return func(view *View, answer *redis.Cmd) error {
		text, err := answer.Text()
		if err != nil {
			return err
		}
		return read(view, text)
	}
}

// readSettings reads the settings that decisions rest on.
func readSettings(view *View, answer *redis.Cmd) error {
	settings, err := settingsOf(answer)
	if err != nil {
		return err
	}
	milliseconds, err := strconv.ParseInt(settings[settingNodeTimeout], 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %.80q is no number", settingNodeTimeout, settings[settingNodeTimeout])
	}
	view.Settings = settings
	view.NodeTimeout = max(0, duration(milliseconds, time.Millisecond))
	return nil
}

// describing are the describeCommands that ask for these settings too.
func describing(settings []string) []command {
	commands := slices.Clone(describeCommands)
	for i := range commands {
		if c := &commands[i]; c.name == configGet {
			c.args = slices.Clone(c.args)
			for _, name := range settings {
				c.args = append(c.args, name)
			}
		}
	}
	return commands
}

// Describe asks the node everything that decisions rest on and the values of the settings named, in one round trip; in
// two when the engine moves slots on its own, for the jobs under way.
//
// While the node loads its data set, most engines refuse the cluster's commands. Then the error is ErrLoading and the
// View holds what INFO says (process, engine, memory, role, Loading); its cluster fields are unknown, not empty. With
// any other error the View is the zero value.
func (n *Node) Describe(ctx context.Context, settings ...string) (View, error) {
	commands := describing(settings)
	answers, err := n.pipeline(ctx, commands...)
	if err != nil {
		return View{}, err
	}
	view := View{SlowCommands: -1}
	for i, read := range readers {
		c, answer := commands[i], answers[i]
		if err := answer.Err(); err != nil {
			refused := n.failed(ctx, c, err)
			if errors.Is(refused, ErrLoading) && view.Loading {
				return view, refused
			}
			if mayLack(c) && (errors.Is(refused, ErrUnsupported) || errors.Is(refused, ErrAuth)) {
				continue
			}
			return View{}, refused
		}
		if err := read(&view, answer); err != nil {
			return View{}, n.notUnderstood(c, err)
		}
	}
	if view.SlotMigrations, err = n.slotMigrationsUnderWay(ctx, view.Atomic); err != nil {
		return View{}, err
	}
	return view, nil
}

// mayLack reports whether a command may be renamed, or not permitted: slots move the classic way without COMMAND, and slow commands are
// not counted without SLOWLOG.
func mayLack(c command) bool { return c.name == atomicProbe.name || c.name == slowlog.name }

// readSlowlog reads the answer to slowlog. Entries are numbered from 0 on. What is no such answer tells nothing: no decision rests on it.
func readSlowlog(view *View, answer *redis.Cmd) error {
	entries, err := answer.Slice()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	if len(entries) == 0 {
		view.SlowCommands = 0
		return nil
	}
	if entry, _ := entries[0].([]any); len(entry) > 0 {
		if number, is := entry[0].(int64); is && number >= 0 && number < math.MaxInt64 {
			view.SlowCommands = number + 1
		}
	}
	return nil
}

// Health is what a node says of its own work. It differs only if something happened to the node.
type Health struct {
	// As in View.
	Role                  Role
	Replicas              int
	MasterLinkUp, Loading bool
	PersistenceError      string
}

var (
	askHealth = command{name: "INFO", args: words("INFO replication persistence")}
	askTable  = command{name: "CLUSTER NODES", args: words("CLUSTER NODES")}
)

// Health asks the node for its health: two sections of INFO, which cost it and the caller a fraction of Describe.
func (n *Node) Health(ctx context.Context) (Health, error) {
	answer, err := n.do(ctx, askHealth)
	if err != nil {
		return Health{}, err
	}
	return n.health(answer)
}

// HealthAndTable asks in one round trip also what the node knows of the members of its cluster: of a View, what CLUSTER NODES tells. The
// rest of that is unknown, not empty.
func (n *Node) HealthAndTable(ctx context.Context) (Health, View, error) {
	answers, err := n.pipeline(ctx, askHealth, askTable)
	if err != nil {
		return Health{}, View{}, err
	}
	for i, c := range []command{askHealth, askTable} {
		if err := answers[i].Err(); err != nil {
			return Health{}, View{}, n.failed(ctx, c, err)
		}
	}
	health, err := n.health(answers[0])
	if err != nil {
		return Health{}, View{}, err
	}
	view, err := n.table(answers[1])
	return health, view, err
}

func (n *Node) health(answer *redis.Cmd) (Health, error) {
	text, err := answer.Text()
	if err != nil {
		return Health{}, n.notUnderstood(askHealth, err)
	}
	health, err := readHealth(text)
	if err != nil {
		return Health{}, n.notUnderstood(askHealth, err)
	}
	return health, nil
}

// Table asks for what HealthAndTable has of the members alone.
func (n *Node) Table(ctx context.Context) (View, error) {
	answer, err := n.do(ctx, askTable)
	if err != nil {
		return View{}, err
	}
	return n.table(answer)
}

func (n *Node) table(answer *redis.Cmd) (view View, err error) {
	if err := asText(readNodes)(&view, answer); err != nil {
		return View{}, n.notUnderstood(askTable, err)
	}
	return view, nil
}

// readHealth reads what readInfo reads of the same, without a table of all fields: it is read every few seconds of every instance.
func readHealth(text string) (h Health, err error) {
	var role, loading, off, unwritten bool
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		switch name {
		case "role":
			role = true
			if h.Role = RoleReplica; value == "master" {
				h.Role = RoleMaster
			}
		case "master_link_status":
			h.MasterLinkUp = value == "up"
		case "loading":
			loading, h.Loading = true, h.Loading || value != "0"
		case "async_loading":
			h.Loading = h.Loading || value == "1"
		case savedSnapshot:
			if value == "err" {
				h.PersistenceError = savedSnapshot
			}
		case "aof_enabled":
			off = value == "0"
		case wroteAOF:
			unwritten = value == "err"
		default:
			if inSync(name, value) {
				h.Replicas++
			}
		}
	}
	if unwritten && !off { // told if both failed, as in View
		h.PersistenceError = wroteAOF
	}
	if h.Role != RoleMaster { // those of a replica say nothing of its shard
		h.Replicas = 0
	}
	if !role || !loading {
		return Health{}, errors.New("field role or loading is missing")
	}
	return h, nil
}

// OwnSlots is what the node itself owns at the moment, as in View.Slots.
func (n *Node) OwnSlots(ctx context.Context) (slots.Set, error) {
	view, err := n.Table(ctx)
	return view.Slots, err
}

// MovesSlots says which slots the engine is moving by itself that the node knows of; empty: none. It takes no right to move any: where the
// list of tasks is a form of the command that begins them (AtomicDestination), CLUSTER INFO tells how many there are.
func (n *Node) MovesSlots(ctx context.Context) (string, error) {
	answer, err := n.do(ctx, atomicProbe)
	if errors.Is(err, ErrUnsupported) {
		return "", nil // COMMAND was renamed: slots move the classic way, as for Describe
	}
	if err != nil {
		return "", err
	}
	var view View
	if err := readAtomicMethod(&view, answer); err != nil {
		return "", n.notUnderstood(atomicProbe, err)
	}
	if view.Atomic == slots.AtomicDestination {
		return n.countsMoves(ctx)
	}
	jobs, err := n.slotMigrationsUnderWay(ctx, view.Atomic)
	if err != nil || len(jobs) == 0 {
		return "", err
	}
	return jobs[0].Slots.String(), nil
}

// countsMoves asks how many tasks there are, and how many clear up after one: the keys of slots that were given away.
func (n *Node) countsMoves(ctx context.Context) (string, error) {
	c := command{name: "CLUSTER INFO", args: words("CLUSTER INFO")}
	answer, err := n.do(ctx, c)
	if err != nil {
		return "", err
	}
	text, err := answer.Text()
	if err != nil {
		return "", n.notUnderstood(c, err)
	}
	moves, err := readMoves(text)
	if err != nil {
		return "", n.notUnderstood(c, err)
	}
	return moves, nil
}

// readMoves reads what CLUSTER INFO says of tasks; empty: there are none.
func readMoves(text string) (string, error) {
	info := parseFields(text)
	tasks, clearing := info.count("cluster_slot_migration_active_tasks"), info.count("cluster_slot_migration_active_trim_running")
	if info.err != nil || tasks+clearing == 0 {
		return "", info.err
	}
	return fmt.Sprintf("%d tasks, and %d that clear up", tasks, clearing), nil
}

func (n *Node) slotMigrationsUnderWay(ctx context.Context, method slots.AtomicMethod) ([]SlotMigration, error) {
	jobs, err := n.SlotMigrations(ctx, method)
	var underWay []SlotMigration
	for _, job := range jobs {
		if job.Outcome == SlotMigrationUnderWay {
			underWay = append(underWay, job)
		}
	}
	return underWay, err
}

func words(text string) []any {
	var args []any
	for word := range strings.FieldsSeq(text) {
		args = append(args, word)
	}
	return args
}
