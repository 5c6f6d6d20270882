// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
)

// Dashboard is one of Grafana's, of the parts that ours need.
type Dashboard struct {
	UID, Title, About string
	// Variables are chosen by who looks; each may depend on those before.
	Variables []Variable
	// Annotations are drawn over all panels: queries whose series begin where something happened.
	Annotations []Annotation
	Rows        []Row
}

// Variable is a list of values of a label, from a query label_values(SERIES, LABEL).
type Variable struct {
	Name, Series string
	// All allows more than one value, and begins with all.
	All bool
}

// Annotation marks when a query has values.
type Annotation struct{ Name, Query, Text string }

// Row is a heading and what is below it, from left to right.
type Row struct {
	Title  string
	Panels []Panel
}

// Form is how a panel is drawn.
type Form string

// Forms of panels.
const (
	Lines Form = "timeseries"
	// Band are lines that are stacked and filled.
	Band  Form = "band"
	Stat  Form = "stat"
	Table Form = "table"
	// States are spans of time in which a series has a value.
	States Form = "state-timeline"
)

// Panel is one graph.
type Panel struct {
	Title string
	// About is what is shown beside the title; set for Sometimes.
	About string
	Form  Form
	// Unit is Grafana's name of a unit: short, bytes, s, percentunit, ops, Bps, dateTimeFromNow.
	Unit    string
	Queries []Query
	// Width is of 24.
	Width int
	// Sometimes reports that there may be nothing to show, such as moves while no slot moves.
	Sometimes bool
}

// Query is one of PromQL, and how its series are called.
type Query struct{ Expr, Legend string }

// Empty is said of panels that there may be nothing to show in.
const Empty = "Empty while there is nothing of it."

const (
	columns = 24
	height  = 7
	small   = 4
	source  = "${datasource}"
)

type object = map[string]any

// JSON is the dashboard as Grafana imports it.
func (d Dashboard) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(object{
		"uid": d.UID, "title": d.Title, "description": d.About, "tags": []string{"middleware-operator"}, "schemaVersion": 39,
		"editable": true, "graphTooltip": 1, "refresh": "30s", "time": object{"from": "now-3h", "to": "now"},
		"templating": object{"list": d.variables()}, "annotations": object{"list": d.annotations()}, "panels": d.panels(),
		"links": []object{{"title": "Middleware Operator", "type": "dashboards", "tags": []string{"middleware-operator"}, "asDropdown": true,
			"keepTime": true}},
	}, "", "  ")
	return append(text, '\n'), err
}

func datasource() object { return object{"type": "prometheus", "uid": source} }

func (d Dashboard) variables() []object {
	list := []object{{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}}
	for _, v := range d.Variables {
		one := object{"name": v.Name, "label": v.Name, "type": "query", "datasource": datasource(), "refresh": 2, "sort": 1,
			"query": object{"query": fmt.Sprintf("label_values(%s, %s)", v.Series, v.Name), "refId": v.Name}}
		if v.All {
			one["includeAll"], one["multi"], one["allValue"] = true, true, ".*"
			one["current"] = object{"text": "All", "value": "$__all"}
		}
		list = append(list, one)
	}
	return list
}

func (d Dashboard) annotations() []object {
	list := []object{}
	for _, a := range d.Annotations {
		list = append(list, object{"name": a.Name, "enable": true, "datasource": datasource(), "expr": a.Query, "step": "30s",
			"titleFormat": a.Name, "textFormat": a.Text, "iconColor": "orange"})
	}
	return list
}

func (d Dashboard) panels() []object {
	var list []object
	id, y := 0, 0
	next := func(of object) {
		id++
		of["id"] = id
		list = append(list, of)
	}
	for _, row := range d.Rows {
		next(object{"type": "row", "title": row.Title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": columns, "h": 1}})
		y++
		x, tall := 0, 0
		for _, panel := range row.Panels {
			h := height
			if panel.Form == Stat {
				h = small
			}
			if x+panel.Width > columns {
				x, y, tall = 0, y+tall, 0
			}
			drawn := panel.draw()
			drawn["gridPos"] = object{"x": x, "y": y, "w": panel.Width, "h": h}
			next(drawn)
			x, tall = x+panel.Width, max(tall, h)
		}
		y += tall
	}
	return list
}

func (p Panel) draw() object {
	custom := object{}
	options := object{}
	switch p.Form {
	case Lines:
		custom = object{"fillOpacity": 5, "showPoints": "never"}
	case Band:
		custom = object{"fillOpacity": 70, "lineWidth": 0, "showPoints": "never", "stacking": object{"mode": "normal"}}
	case Stat:
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "none", "graphMode": "none"}
	case States:
		custom = object{"fillOpacity": 70}
		options = object{"showValue": "never", "mergeValues": true}
	case Table:
	}
	form := p.Form
	if form == Band {
		form = Lines
	}
	var targets []object
	for n, query := range p.Queries {
		target := object{"refId": string(rune('A' + n)), "datasource": datasource(), "expr": query.Expr, "legendFormat": query.Legend}
		if form == Table {
			target["format"], target["instant"] = "table", true
		}
		targets = append(targets, target)
	}
	if p.Sometimes {
		p.About = Empty
	}
	drawn := object{"type": form, "title": p.Title, "description": p.About, "datasource": datasource(), "targets": targets, "options": options,
		"fieldConfig": object{"defaults": object{"unit": p.Unit, "custom": custom}, "overrides": []object{}}}
	if form == Table {
		drawn["transformations"] = []object{{"id": "organize", "options": object{"excludeByName": object{"Time": true, "__name__": true}}}}
	}
	return drawn
}
