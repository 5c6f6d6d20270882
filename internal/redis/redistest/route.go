// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// ownerOf is the entry of the slot's owner, nil when it has none.
func (n *Node) ownerOf(slot uint16) *peer {
	for _, p := range n.table {
		if p.slots.Contains(slot) {
			return p
		}
	}
	return nil
}

// route says why a command with these keys is not served here (getNodeByQuery, clusterRedirectClient); empty when it is.
// asking: the command follows ASKING.
func (s *session) route(command spec, keys []string, asking bool) errorText {
	n := s.node
	if len(keys) == 0 {
		return ""
	}
	slot := slots.KeySlot(keys[0])
	owner := n.ownerOf(slot)
	if owner == nil {
		return "CLUSTERDOWN Hash slot not served"
	}
	missing, several := 0, false
	for _, key := range keys {
		if slots.KeySlot(key) != slot {
			return "CROSSSLOT Keys in request don't hash to the same slot"
		}
		several = several || key != keys[0]
		if _, exists := n.keys[key]; !exists {
			missing++
		}
	}
	if n.state != "ok" {
		return "CLUSTERDOWN The cluster is down"
	}
	isMigrating, isImporting := s.isOpen(slot, owner)
	isMaster := !n.self().replica
	switch {
	case (isMigrating || isImporting) && command.migrate && (isMaster || !n.options.Valkey):
		return ""
	case isMigrating && missing > 0 && missing < len(keys), isImporting && asking && several && missing > 0:
		return "TRYAGAIN Multiple keys request during rehashing of slot"
	case isMigrating && missing > 0:
		return n.redirectTo("ASK", slot, n.find(n.migrating[slot]))
	case isImporting && asking:
		return ""
	case s.readonly && !command.write && owner == n.master():
		return ""
	case owner != n.self():
		return n.redirectTo("MOVED", slot, owner)
	}
	return ""
}

// isOpen says how the slot is marked as far as this client is concerned: in Valkey, replicas have marks, which only
// clients that read there (READONLY) get to know.
func (s *session) isOpen(slot uint16, owner *peer) (migrating, importing bool) {
	n := s.node
	isMine := owner == n.self()
	if n.options.Valkey {
		if n.self().replica && !s.readonly {
			return false, false
		}
		isMine = isMine || owner == n.master()
	}
	_, migrating = n.migrating[slot]
	_, importing = n.importing[slot]
	migrating = migrating && isMine
	return migrating, importing && !migrating
}

func (n *Node) redirectTo(code string, slot uint16, p *peer) errorText {
	return errorText(fmt.Sprintf("%s %d %s:%d", code, slot, p.ip, n.portOf(p)))
}
