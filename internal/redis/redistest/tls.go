// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"cmp"
	"net"
	"strconv"
)

// Nodes obey the settings of TLS as far as it matters who finds whom: which port takes TLS, which ones are announced, and who speaks TLS on
// the bus and to its master. Whoever connects encrypts the connection itself (see TakesTLS). Links that are open end with a change.

// tlsDefaults are the settings of TLS of a node without redis.conf.
func (n *Node) tlsDefaults() map[string]string {
	return map[string]string{"port": strconv.Itoa(n.options.Port), "tls-port": "0", "tls-cluster": "no", "tls-replication": "no",
		"tls-auth-clients": "yes", "tls-cert-file": "", "tls-key-file": "", "tls-ca-cert-file": "", "cluster-announce-port": "0",
		"cluster-announce-tls-port": "0", "cluster-announce-bus-port": "0", "cluster-preferred-endpoint-type": "ip"}
}

// number is a setting's; 0 when it has none.
func (n *Node) number(setting string) int {
	number, _ := strconv.Atoi(n.settings[setting]) // a setting that is none counts as 0
	return number
}

// takes reports whether the node listens to a port, and whether that one takes TLS.
func (n *Node) takes(port string) (listens, secured bool) {
	if port == "0" {
		return false, false
	}
	secured = n.settings["tls-port"] == port
	return secured || n.settings["port"] == port, secured
}

// announcePorts fills in the ports that the node tells of itself.
func (n *Node) announcePorts() {
	n.self().port = cmp.Or(n.number("cluster-announce-port"), n.number("port"))
	n.self().tlsPort = cmp.Or(n.number("cluster-announce-tls-port"), n.number("tls-port"))
}

// portOf is where a client finds a peer that is connected as the present one is.
func (n *Node) portOf(p *peer) int {
	if n.askedByTLS {
		return p.tlsPort
	}
	return p.port
}

// speaksWith reports whether two nodes encrypt the bus both, or neither of them does.
func (n *Node) speaksWith(other *Node) bool {
	return (n.settings["tls-cluster"] == "yes") == (other.settings["tls-cluster"] == "yes")
}

// link is how a replica is connected to its master.
type link struct {
	port    int
	secured bool
}

// findsMaster reports whether the replica is connected to its master as it was, or can be by the port that it knows.
func (n *Node) findsMaster(master *peer, source *Node) bool {
	if n.masterLinkUp && n.link.port == portFor(master, n.link.secured) {
		return true
	}
	secured := n.settings["tls-replication"] == "yes"
	to := link{port: portFor(master, secured), secured: secured}
	listens, takesTLS := source.takes(strconv.Itoa(to.port))
	if !listens || takesTLS != secured {
		return false
	}
	n.link = to
	return true
}

func portFor(p *peer, secured bool) int {
	if secured {
		return p.tlsPort
	}
	return p.port
}

// TakesTLS reports whether the node at addr (ip:port), if there is one, takes TLS there.
func (w *World) TakesTLS(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if n.alive() && n.options.IP == host {
			_, secured := n.takes(port)
			return secured
		}
	}
	return false
}
