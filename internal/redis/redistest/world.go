// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// Options configures a World. The zero value is usable.
type Options struct {
	// NodeTimeout is cluster-node-timeout, by default 5 s.
	NodeTimeout time.Duration
	// InstantGossip lets gossip settle after every command and every event, so that a test need not call Gossip.
	// Time does not pass by it: what takes time (failure detection, elections) still needs Run.
	InstantGossip bool
	// SlotMigrationTime is how long a migration of slots by Valkey 9 takes at least; at once when zero, which is two rounds.
	SlotMigrationTime time.Duration
	// Listens has nodes take connections at their own IP and port, which must be this machine's (such as of 127.0.0.0/8), for clients that do
	// not use Dial.
	Listens bool
	// Figures are fields that INFO has besides, with numbers that differ from node to node: a small one each, but those of "total_" and
	// "keyspace_", which grow.
	Figures []string
	// Seed makes node IDs and run IDs, the same ones for the same seed.
	Seed uint64
	// LoadsCertificate is called when a node reads the files of its certificate: when it starts, and when it is told to. It must not
	// ask the World.
	LoadsCertificate func(addr string, now time.Time)
	// Clock lets time pass in the world as it does on this clock, too, with its rounds of gossip: between two commands, not
	// during one. Nil: it passes by Advance and Run only.
	Clock func() time.Time
}

// World is a set of simulated nodes and the network between them and the operator. It is safe for concurrent use.
type World struct {
	options Options

	mu       sync.Mutex
	now      time.Time
	seen     time.Time // by Options.Clock
	due      time.Time // of the next round of gossip, if time passes by itself
	random   *rand.Rand
	nodes    []*Node
	slots    map[string]uint16 // of keys
	isolated map[*Node]bool    // one side of a partition, the operator is on the other
	silent   bool              // nobody hears anybody
	relays   map[string]*Node  // by IP

	onCommand func(n *Node, args []string)
	// perSlot is how many commands masters count each second, for each slot of theirs.
	perSlot float64
	// keyBytes is what each key takes besides what it is.
	keyBytes int
}

// New makes a world without nodes. Its clock starts on an arbitrary date and moves by Advance and Run only.
func New(options Options) *World {
	if options.NodeTimeout <= 0 {
		options.NodeTimeout = 5 * time.Second
	}
	w := &World{
		options:  options,
		now:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		random:   rand.New(rand.NewPCG(options.Seed, 16384)), //nolint:gosec // reproducible IDs are the purpose
		slots:    map[string]uint16{},
		isolated: map[*Node]bool{},
	}
	w.due = w.now.Add(roundTime)
	if options.Clock != nil {
		w.seen = options.Clock()
	}
	return w
}

// roundTime is how long a round of gossip takes.
const roundTime = 500 * time.Millisecond

// NodeOptions describes a node. Only IP is required.
type NodeOptions struct {
	// IP is announced by the node; it need not exist on this machine. Port is 6379 by default, the bus port Port+10000.
	IP   string
	Port int
	// Hostname is announced by the node.
	Hostname string
	// Password is required of clients; none when empty.
	Password string
	// Config are lines of redis.conf about users (user, requirepass) and the link to the master (masterauth, masteruser),
	// which the node reads whenever it starts.
	Config string
	// Settings are those of redis.conf, see Node.SetFile; nil: the defaults.
	Settings map[string]string
	// Valkey makes the node report that engine. Version is 7.0.15, or 9.1.2 for Valkey, by default.
	Valkey  bool
	Version string
	// MaxMemory is what the node reports, bytes.
	MaxMemory int64
	// Slots, Epoch and Keys are what a backup gave the node before it started, LoadErrors how much of it the node could not
	// carry out.
	Slots      slots.Set
	Epoch      uint64
	Keys       map[string]string
	LoadErrors int
	// Follows is whom the node follows outside, nil: nobody.
	Follows *StandIn
}

// AddNode starts a fresh node that knows nobody. It is empty, unless the options say otherwise.
func (w *World) AddNode(options NodeOptions) *Node {
	if options.Port == 0 {
		options.Port = 6379
	}
	if options.Version == "" {
		options.Version = defaultVersion(options.Valkey)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &Node{world: w, options: options, failures: map[string][]Failure{}}
	n.settings, n.file = n.defaultSettings(), maps.Clone(options.Settings)
	n.wipe()
	n.self().slots, n.self().configEpoch, n.currentEpoch = options.Slots, options.Epoch, options.Epoch
	maps.Copy(n.keys, options.Keys)
	n.loadErrors = options.LoadErrors
	if options.Follows != nil {
		n.standIn(*options.Follows)
	}
	n.start()
	w.nodes = append(w.nodes, n)
	return n
}

func defaultVersion(valkey bool) string {
	if valkey {
		return "9.1.2"
	}
	return "7.0.15"
}

// Upgrade makes the node run another engine or version when it starts next. An empty version is the default one.
func (w *World) Upgrade(n *Node, valkey bool, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.next = func() { n.options.Valkey, n.options.Version = valkey, cmp.Or(version, defaultVersion(valkey)) }
}

// Close stops all nodes.
func (w *World) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		n.stop()
	}
}

// Now is the time of the world.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.elapse()
	return w.now
}

// elapse lets the time pass that has passed on Options.Clock.
func (w *World) elapse() {
	if w.options.Clock == nil {
		return
	}
	now := w.options.Clock()
	passed := now.Sub(w.seen)
	w.seen = now
	w.pass(passed)
}

// pass lets time pass with its rounds of gossip.
func (w *World) pass(d time.Duration) {
	for end := w.now.Add(d); !w.due.After(end); w.due = w.due.Add(roundTime) {
		w.now = w.due
		w.round()
		d = end.Sub(w.now)
	}
	w.now = w.now.Add(d)
}

// SetKeyBytes has each key take so many bytes besides those of the key and its value.
func (w *World) SetKeyBytes(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keyBytes = n
}

// SetCommandsPerSecond has masters count so many commands each second, all together, spread evenly over their slots. None is carried out.
func (w *World) SetCommandsPerSecond(n float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.elapse()
	for _, node := range w.nodes {
		node.commands()
	}
	w.perSlot = n / slots.Count
}

// Advance moves the clock. Nothing else happens until the next command or Gossip.
func (w *World) Advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// Run lets time pass with a round of gossip every half second.
func (w *World) Run(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.options.Clock != nil {
		w.elapse()
		w.pass(d)
		return
	}
	for ; d > 0; d -= roundTime {
		w.now = w.now.Add(min(d, roundTime))
		w.round()
	}
}

// Gossip is one round: every living node exchanges PING and PONG with every node in its table, replicas copy their
// master's data, and elections that are due are held.
func (w *World) Gossip() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round()
}

// Kill stops a node as SIGKILL does: its connections break and later ones are refused.
func (w *World) Kill(n *Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.stop()
	w.settle()
}

// Restart starts the node again under a new process identity, killing it first when it lives. It announces newIP from
// now on; the others know it under the old one until they exchange a message. Without keepData it comes back as a new
// node: empty, with a new node ID and an empty table.
func (w *World) Restart(n *Node, newIP string, keepData bool) {
	load := n.wipe
	if keepData {
		load = n.reloadTable
	}
	w.restart(n, newIP, load)
}

// RestartForgetful is Restart of a node that has lost its nodes.conf and kept its data set: it has a new ID, knows nobody,
// and claims the slots of its keys.
func (w *World) RestartForgetful(n *Node, newIP string) { w.restart(n, newIP, n.forgetAll) }

// restart starts a node again with what load leaves of its files.
func (w *World) restart(n *Node, newIP string, load func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.stop()
	n.options.IP = newIP
	load()
	n.start()
	w.settle()
}

// Partition cuts the given nodes off from the other nodes and from the operator, not from each other. Messages vanish:
// who waits for an answer waits until its own deadline. It replaces an earlier partition.
func (w *World) Partition(isolated ...*Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.isolated)
	for _, n := range isolated {
		w.isolated[n] = true
	}
	w.settle()
}

// Silence lets no node hear another on the cluster bus, or ends that; the operator reaches all of them.
func (w *World) Silence(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = on
	w.settle()
}

// Heal ends the partition.
func (w *World) Heal() { w.Partition() }

// Dial connects to the node that announces addr (ip:port), as redis.Options.Dialer wants it. Where no node lives the
// connection is refused; a node behind a partition does not answer until the context ends. It panics when no loopback port can
// be had.
func (w *World) Dial(ctx context.Context, addr string) (net.Conn, error) {
	target, reachable := w.resolve(addr)
	if !reachable {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	}
	if target == "" {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", addr, syscall.ECONNREFUSED)}
	}
	dialer := &net.Dialer{}
	return dialer.DialContext(ctx, "tcp", target)
}

// resolve is the loopback address of the living node at addr, empty when there is none.
func (w *World) resolve(addr string) (target string, reachable bool) {
	n, reachable := w.nodeAt(addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n == nil || !n.alive() {
		return "", reachable
	}
	return n.listen(), reachable
}

// nodeAt is the living node at addr, nil when there is none.
func (w *World) nodeAt(addr string) (n *Node, reachable bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, _ = w.at(addr)
	return n, n == nil || !w.isolated[n]
}

// onBus is the living node whose cluster bus from can reach at the address, nil when there is none.
func (w *World) onBus(from *Node, ip string, busPort int) *Node {
	if w.silent {
		return nil
	}
	for _, n := range w.nodes {
		if n.alive() && n.options.IP == ip && n.busPort() == busPort && w.isolated[n] == w.isolated[from] && n.speaksWith(from) {
			return n
		}
	}
	return nil
}

func (w *World) settle() {
	if !w.options.InstantGossip {
		return
	}
	const limit = 30 // enough for handshakes and role changes to travel through any table
	for range limit {
		before := w.fingerprint()
		if w.round(); slices.Equal(w.fingerprint(), before) {
			return
		}
	}
}

// fingerprint is what gossip can change, without the times.
func (w *World) fingerprint() []string {
	var lines []string
	for _, n := range w.nodes {
		lines = append(lines, n.fingerprint())
		for _, p := range n.table {
			lines = append(lines, p.fingerprint())
		}
	}
	return lines
}

// hexID makes node IDs and run IDs (getRandomHexChars).
func (w *World) hexID() string {
	id := make([]byte, 40)
	for i := range id {
		id[i] = "0123456789abcdef"[w.random.IntN(16)]
	}
	return string(id)
}
