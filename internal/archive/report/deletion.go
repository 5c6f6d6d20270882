// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"

	"middleware.hc.cn/operator/internal/excerpt"
)

// Deletion is what became of the deletion of a backup.
type Deletion struct {
	// Deleted reports whether nothing is left of it.
	Deleted bool `json:"deleted,omitempty"`
	// Another reports whether nothing of it is left, and a backup of the name that was not asked for with the same was left alone.
	Another bool   `json:"another,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Encode is the message, of Most bytes at most.
func (d Deletion) Encode() ([]byte, error) {
	d.Error = excerpt.Of(d.Error, Most/8) //nolint:mnd // quotes and escapes take up to six bytes for one
	return json.Marshal(d)
}

// ParseDeletion reads a message. An error says that it is not one that Encode wrote of a deletion.
func ParseDeletion(text string) (Deletion, error) {
	var d Deletion
	if len(text) > Most {
		return d, fmt.Errorf("it has more than %d bytes", Most)
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return Deletion{}, err
	}
	if d.Deleted == (d.Error != "") || d.Deleted && d.Another {
		return Deletion{}, errors.New("it describes no deletion")
	}
	d.Error = excerpt.Of(d.Error, Most)
	return d, nil
}
