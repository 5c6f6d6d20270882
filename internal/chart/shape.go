// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"

	"middleware.hc.cn/operator/internal/chart/shape"
)

// checkShape refuses a rendering whose shape strings of the values made.
func (c *Chart) checkShape(files map[string]string, in inputs) error {
	suspects := shape.Suspects("spec", in.values, c.facts.flow)
	if len(suspects) == 0 {
		return nil
	}
	refuse := func(problem string) error {
		return &Error{Stage: StageCheck, Path: strings.Join(suspects[:min(len(suspects), 3)], ", "), Err: errors.New(problem),
			Remedy: "leave line breaks, quotes, brackets and \": \" out of it, have the chart quote it (quote, toJson, or nindent in a block scalar), or, if the chart reads structure from text on purpose, set allow.structuredValues in watches.yaml"}
	}
	in.standIns = true
	var harmless [2]shape.Documents
	for i, values := range shape.StandIns(in.values, c.facts.flow) {
		in.values = values
		said, own, err := c.execute(in)
		if refusal := (*Error)(nil); errors.As(err, &refusal) {
			return refuse("the chart cannot be rendered without its special characters: " + refusal.Err.Error())
		} else if err != nil {
			return err
		}
		takeNotes(said, own.Name())
		harmless[i] = split(said)
	}
	if where := shape.Difference(split(files), harmless[0], harmless[1]); where != "" {
		return refuse("its special characters would change " + where + " beside the value itself")
	}
	return nil
}

func split(files map[string]string) shape.Documents {
	all := shape.Documents{}
	for name, text := range files {
		all[name] = documents(text)
	}
	return all
}
