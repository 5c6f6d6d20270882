// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/internal/pause"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// List is the objects of all kinds as people look at them. Its JSON is what `-o json` prints.
type List struct {
	Objects []Object `json:"objects"`
	Unread  []Unread `json:"unread,omitempty"`
	// Upgrades are of kinds of which some object is not as the operator makes them yet.
	Upgrades []Upgrade `json:"upgrades,omitempty"`

	allNamespaces bool
}

// Upgrade is how far the objects of a kind are with what is new in the operator, which they take in turn.
type Upgrade struct {
	Kind string `json:"kind"`
	// UpToDate, Upgrading and Waiting are how many are how far. Stopped reports whether none goes on before one that took it is well.
	UpToDate  int  `json:"upToDate"`
	Upgrading int  `json:"upgrading"`
	Waiting   int  `json:"waiting"`
	Stopped   bool `json:"stopped"`
}

// Object is a custom resource of any kind.
type Object struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Created   time.Time `json:"created"`
	// Ready is the condition of that name, or Stalled while that is True; Unknown while nobody has said anything.
	Ready string `json:"ready"`
	// State is the phase, or the condition's reason; Message is the same in a sentence.
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
	Paused  bool   `json:"paused"`
	// Conditions are all of them.
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is one of a status.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is when it became so.
	Since time.Time `json:"lastTransitionTime,omitzero"`
}

// ListOf makes the model.
func ListOf(seen SeenList) List {
	list := List{Unread: seen.Unread, allNamespaces: seen.AllNamespaces, Objects: []Object{}}
	for i := range seen.Objects {
		list.Objects = append(list.Objects, ObjectOf(&seen.Objects[i]))
	}
	slices.SortStableFunc(list.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	list.Upgrades = upgradesOf(list.Objects)
	return list
}

// upgradesOf counts by the condition Upgraded. Who never waited for a turn has none.
func upgradesOf(objects []Object) (upgrades []Upgrade) {
	of := map[string]Upgrade{}
	for _, o := range objects {
		u := of[o.Kind]
		u.Kind = o.Kind
		at := slices.IndexFunc(o.Conditions, func(c Condition) bool { return c.Type == "Upgraded" && c.Status == "False" })
		switch {
		case at < 0:
			u.UpToDate++
		case o.Conditions[at].Reason == "Upgrading":
			u.Upgrading++
		default:
			u.Waiting++
			u.Stopped = u.Stopped || o.Conditions[at].Reason == "UpgradeStopped"
		}
		of[o.Kind] = u
	}
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		if u := of[kind]; u.Upgrading+u.Waiting > 0 {
			upgrades = append(upgrades, u)
		}
	}
	return upgrades
}

// text is an upgrade in one line.
func (u Upgrade) text(page terminal.Page) string {
	text := fmt.Sprintf("%s: %d of %d up to date with the operator, %d being upgraded, %d waiting", u.Kind, u.UpToDate,
		u.UpToDate+u.Upgrading+u.Waiting, u.Upgrading, u.Waiting)
	if u.Stopped {
		return page.Paragraph("", text+" until one that was upgraded is well", terminal.Warn)
	}
	return page.Paragraph("", text, terminal.Note)
}

// ObjectOf is a custom resource, whatever its version: it is read by the fields that all kinds have.
func ObjectOf(object *unstructured.Unstructured) Object {
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	o := Object{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		Created: object.GetCreationTimestamp().UTC(), Ready: "Unknown", Paused: pause.Asked(object)}
	if paused, is := spec["pause"].(bool); is {
		o.Paused = o.Paused || paused
	}
	o.Conditions = conditionsOf(status)
	for _, name := range []string{"Ready", "Stalled"} {
		at := slices.IndexFunc(o.Conditions, func(c Condition) bool { return c.Type == name })
		if at < 0 {
			continue
		}
		c := o.Conditions[at]
		switch {
		case name == "Ready":
			o.Ready, o.State, o.Message = c.Status, c.Reason, c.Message
		case c.Status == "True":
			o.State, o.Message = c.Reason, c.Message
		}
	}
	if phase, is := status["phase"].(string); is && phase != "" {
		o.State = phase
	}
	if reason, is := status["reason"].(string); is && reason != "" {
		o.Message = reason
	}
	return o
}

func conditionsOf(status map[string]any) []Condition {
	encoded, err := json.Marshal(status["conditions"])
	if err != nil {
		return nil
	}
	var all []Condition
	if err := json.Unmarshal(encoded, &all); err != nil {
		return nil // of a form that this version does not know
	}
	return all
}

// Text is the list on a page.
func (l List) Text(page terminal.Page, now time.Time) string {
	page = page.Sized()
	if len(l.Objects) == 0 {
		return "no object of these kinds\n" + unread(page, l.Unread)
	}
	names := []string{"KIND", "NAME", "READY", "STATE", "AGE", "MESSAGE"}
	if l.allNamespaces {
		names = append([]string{"NAMESPACE"}, names...)
	}
	rows := [][]terminal.Cell{heads(names)}
	for _, o := range l.Objects {
		message := o.Message
		if o.Ready == "True" && !o.Paused {
			message = ""
		}
		row := []terminal.Cell{terminal.Of(o.Kind), terminal.Of(o.Name), o.ready(), terminal.Of(cmp.Or(o.State, "-")),
			terminal.Of(age(o.Created, now)), terminal.Of(message)}
		if o.Paused {
			row[3] = terminal.Of("Paused").In(terminal.Note)
		}
		if l.allNamespaces {
			row = append([]terminal.Cell{terminal.Of(o.Namespace)}, row...)
		}
		rows = append(rows, row)
	}
	text := page.Table("", rows)
	for _, u := range l.Upgrades {
		text += u.text(page)
	}
	return text + unread(page, l.Unread)
}

func (o Object) ready() terminal.Cell {
	cell := terminal.Of(o.Ready)
	switch o.Ready {
	case "True":
		cell.Style = terminal.Good
	case "False":
		cell.Style = terminal.Bad
	default:
		cell.Style = terminal.Warn
	}
	return cell
}

// Text is one object of any kind on a page.
func (o Object) Text(page terminal.Page, now time.Time) string {
	page = page.Sized()
	text := page.Paint(o.Kind+" "+terminal.Clean(o.Namespace+"/"+o.Name), terminal.Head) + "  ready: "
	ready := o.ready()
	text += page.Paint(ready.Text, ready.Style) + fmt.Sprintf(", %s old\n", age(o.Created, now))
	if o.Paused {
		text += page.Paragraph("  ", "paused: the operator changes nothing", terminal.Note)
	}
	if o.Message != "" {
		text += page.Paragraph("  ", terminal.Clean(o.State+": "+o.Message), terminal.Plain)
	}
	if len(o.Conditions) == 0 {
		return text + page.Paragraph("  ", "no operator has looked at it: it does not run, or does not watch the namespace", terminal.Warn)
	}
	rows := [][]terminal.Cell{heads([]string{"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"})}
	for _, c := range o.Conditions {
		rows = append(rows, []terminal.Cell{terminal.Of(c.Type), terminal.Of(c.Status), terminal.Of(c.Reason), terminal.Of(age(c.Since, now)),
			terminal.Of(c.Message)})
	}
	return text + "\n" + page.Table("  ", rows)
}
