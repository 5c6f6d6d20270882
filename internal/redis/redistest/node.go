// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// Node is a simulated server. Its fields are guarded by World.mu.
type Node struct {
	world    *World
	options  NodeOptions
	listener net.Listener         // nil until somebody dials
	conns    map[net.Conn]bool    // nil while the node is dead
	failures map[string][]Failure // by command in capitals
	next     func()               // makes it what it is to be when it starts next; nil: what it is

	// The process.
	runID   string
	started time.Time
	loading bool
	// loadErrors are commands of the append-only file that could not be carried out.
	loadErrors int
	// carriedOut is how many commands the node has counted until countedAt.
	carriedOut float64
	countedAt  time.Time
	disk       disk
	settings   map[string]string
	file       map[string]string   // redis.conf; nil: settings stay through a restart
	words      map[string]string   // what CONFIG GET shows, whatever is set
	users      map[string][]string // rules by name, as ACL LIST shows them

	// The data set and its replication.
	keys            map[string]string
	libraries       []string // names of function libraries
	offset          int64
	history         string // of the data (master_replid)
	former          string // history until the node became a master in this process, empty: none
	formerEnd       int64  // the first offset that is not of it
	histories       int
	masterLinkUp    bool
	masterLostSince time.Time // zero while the link is up and before it ever was
	link            link
	askedByTLS      bool // the command that is carried out

	// nodes.conf.
	id            string
	table         []*peer // the node itself first
	currentEpoch  uint64
	lastVoteEpoch uint64
	migrating     marks // to whom
	importing     marks // from whom

	// What the cluster code keeps in memory only.
	notClaimed    slots.Set // bound to an owner that has stopped to claim them (owner_not_claiming_slot)
	banned        map[string]time.Time
	state         string // cluster_state
	minoritySince time.Time
	manual        manualFailover
	election      election
	voted         map[string]time.Time // when it voted for a replica of which master
	jobs          []*job               // migrations of Valkey 9, the newest first
	pausedUntil   time.Time            // writes of clients
}

// peer is one entry of a node's table (clusterNode).
type peer struct {
	id            string
	ip            string
	port, busPort int // port: where plain connections are taken
	tlsPort       int
	hostname      string
	shard         string // shard_id
	replica       bool
	masterID      string
	configEpoch   uint64
	slots         slots.Set

	handshake, meet bool // meet: the first message is a MEET
	noAddress       bool
	pfail, fail     bool
	failedAt        time.Time
	reports         map[string]time.Time // who reported the peer as failing, and when
	linkUp          bool
	created         time.Time
	pingSent, pong  time.Time
	unlinked        time.Time // since when the node at the other end has no link to this one, as far as known; then when it was met
}

// ID is the node ID.
func (n *Node) ID() string {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	return n.id
}

// Addr is where clients reach the node, ip:port.
func (n *Node) Addr() string {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	return n.addr()
}

// Keys is a copy of the data set.
func (n *Node) Keys() map[string]string {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	return maps.Clone(n.keys)
}

// LoseKeys empties the data set, as a restart without persistence does to a node that keeps its nodes.conf.
func (n *Node) LoseKeys() {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.keys, n.offset = map[string]string{}, 0
}

// SetLoading puts the node in the state in which it reads its data set, or ends that.
func (n *Node) SetLoading(loading bool) {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.loading = loading
}

func (n *Node) addr() string { return net.JoinHostPort(n.options.IP, strconv.Itoa(n.options.Port)) }

func (n *Node) busPort() int { return n.options.Port + 10000 }

// majorVersion is the first number of the engine's version.
func (n *Node) majorVersion() int {
	major, _, _ := strings.Cut(n.options.Version, ".")
	number, err := strconv.Atoi(major)
	if err != nil {
		panic("redistest: version " + n.options.Version)
	}
	return number
}

func (n *Node) self() *peer { return n.table[0] }

// find is the entry with the ID, nil when the node does not know it.
func (n *Node) find(id string) *peer {
	for _, p := range n.table {
		if p.id == id {
			return p
		}
	}
	return nil
}

// owned is every slot that has an owner in this node's table.
func (n *Node) owned() slots.Set {
	var all slots.Set
	for _, p := range n.table {
		all = all.Union(p.slots)
	}
	return all
}

// master is the entry of this replica's master; nil for a master and when it is not known.
func (n *Node) master() *peer {
	if !n.self().replica {
		return nil
	}
	return n.find(n.self().masterID)
}

// remove deletes an entry and all marks that name it; replicas of it lose their master (clusterDelNode, freeClusterNode).
func (n *Node) remove(p *peer) {
	n.migrating.drop(p.id)
	n.importing.drop(p.id)
	n.table = slices.DeleteFunc(n.table, func(other *peer) bool { return other == p })
	n.notClaimed = n.notClaimed.Subtract(p.slots)
	for _, other := range n.table {
		delete(other.reports, p.id)
		if other.masterID == p.id {
			other.masterID = ""
		}
	}
}

// becomeMaster turns the node itself into a master (clusterSetNodeAsMaster, replicationUnsetMaster).
func (n *Node) becomeMaster() {
	self := n.self()
	if self.replica {
		n.endHistory()
	}
	self.replica, self.masterID = false, ""
	n.masterLinkUp, n.masterLostSince = false, time.Time{}
}

// follow makes the node a replica of the master (clusterSetMaster). A master that turns replica forgets its marks, in
// Valkey only when it comes into another shard (clusterSetPrimary).
func (n *Node) follow(masterID string) {
	self, master := n.self(), n.find(masterID)
	if n.options.Valkey && self.shard != master.shard || !n.options.Valkey && !self.replica {
		n.closeSlots()
	}
	self.replica, self.masterID, self.shard = true, masterID, master.shard
	self.slots = slots.Set{}
	n.masterLinkUp, n.masterLostSince = false, time.Time{} // replicationSetMaster: down "since ever"
	n.manual, n.election = manualFailover{}, election{}
}

// wipe gives the node an empty data set and an empty nodes.conf with a new identity.
func (n *Node) wipe() {
	n.libraries = nil
	n.keys, n.offset = map[string]string{}, 0
	n.forgetAll()
}

// forgetAll gives the node an empty nodes.conf with a new identity.
func (n *Node) forgetAll() {
	n.id = n.world.hexID()
	n.beginHistory()
	n.currentEpoch, n.lastVoteEpoch = 0, 0
	n.closeSlots()
	n.table = []*peer{{id: n.id, shard: n.id, created: n.world.now, linkUp: true}}
}

// reloadTable keeps what nodes.conf holds and drops the rest (clusterLoadConfig): handshakes are not saved, links are
// down, failure reports are gone, and nobody is suspected yet.
func (n *Node) reloadTable() {
	n.table = slices.DeleteFunc(n.table, func(p *peer) bool { return p.handshake })
	for _, p := range n.table[1:] {
		p.linkUp, p.pfail = false, false
		p.reports = nil
		p.pingSent, p.pong = time.Time{}, time.Time{}
	}
}

// alive reports whether the process runs.
func (n *Node) alive() bool { return n.conns != nil }

// listen is the address at which the node takes connections.
func (n *Node) listen() string {
	if n.listener == nil {
		address := "127.0.0.1:0"
		if n.world.options.Listens {
			address = net.JoinHostPort(n.options.IP, strconv.Itoa(n.options.Port))
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			panic(fmt.Sprintf("redistest: %v", err))
		}
		n.listener = listener
		go n.serve(listener)
	}
	return n.listener.Addr().String()
}

// start begins a new process.
func (n *Node) start() {
	n.conns = map[net.Conn]bool{}
	if n.next != nil {
		n.next()
		n.next = nil
	}
	n.readFile()
	n.loadCertificate()
	n.loadUsers()
	n.runID, n.started, n.loading = n.world.hexID(), n.world.now, false
	n.masterLinkUp, n.masterLostSince = false, time.Time{}
	n.notClaimed, n.banned = slots.Set{}, map[string]time.Time{}
	n.state, n.minoritySince = "fail", time.Time{}
	n.manual, n.election, n.voted = manualFailover{}, election{}, map[string]time.Time{}
	n.jobs, n.pausedUntil = nil, time.Time{}
	n.former = ""
	self := n.self()
	self.ip, self.busPort, self.hostname = n.options.IP, n.busPort(), n.options.Hostname
	n.announcePorts()
	n.verifyData()
	if n.world.options.Listens {
		n.listen()
	}
}

// stop ends the process at once.
func (n *Node) stop() {
	if !n.alive() {
		return
	}
	if n.listener != nil {
		_ = n.listener.Close() // it is gone either way
	}
	for conn := range n.conns {
		_ = conn.Close() // it is gone either way
	}
	n.listener, n.conns = nil, nil
}

// fingerprint is what gossip can change of the node itself but the times.
func (n *Node) fingerprint() string {
	var jobs strings.Builder
	for _, j := range n.jobs {
		jobs.WriteString(" " + j.state)
	}
	return fmt.Sprintf("%s %d %d %t %s %v %v%s", n.id, n.currentEpoch, n.offset, n.masterLinkUp, n.state, n.migrating, n.importing,
		jobs.String())
}
