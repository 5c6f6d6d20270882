// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transitions

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

type props = apiextensionsv1.JSONSchemaProps

// change is one change in the making.
type change struct {
	*rand.Rand
	kind *Kind
	// wild is how many of a hundred values are those that a schema or a rule is likely to refuse.
	wild int
	done string
}

// Change returns a copy of a spec with one change, and what that is. Wild is how many of a hundred changes use a value that is
// likely to be refused.
func (k *Kind) Change(random *rand.Rand, spec map[string]any, wild int) (changed map[string]any, what string) {
	for {
		c := &change{Rand: random, kind: k, wild: wild}
		value, kept := c.change("spec", k.spec, runtime.DeepCopyJSON(spec), true)
		changed, whole := value.(map[string]any)
		if kept && whole && c.done != "" {
			return changed, c.done
		}
	}
}

// Mistake returns a copy of a spec with something that people do wrong, and what that is.
func (k *Kind) Mistake(random *rand.Rand, spec map[string]any) (changed map[string]any, what string, err error) {
	what = k.Mistakes()[random.IntN(len(k.mistakes))]
	changed, err = k.With(what, spec)
	return changed, what, err
}

// Mistakes are what people do wrong.
func (k *Kind) Mistakes() []string { return slices.Sorted(maps.Keys(k.mistakes)) }

// With returns a copy of a spec with a mistake.
func (k *Kind) With(mistake string, spec map[string]any) (changed map[string]any, err error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if text, err = jsonpatch.MergePatch(text, []byte(k.mistakes[mistake])); err != nil {
		return nil, err
	}
	return changed, utiljson.Unmarshal(text, &changed)
}

func (c *change) chance(percent int) bool { return c.IntN(100) < percent }

// say notes what was changed.
func (c *change) say(path, what string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte(err.Error())
	}
	if len(text) > 100 {
		text = append(text[:100:100], "..."...)
	}
	c.done = strings.TrimSpace(fmt.Sprintf("%s %s %s", path, what, text))
}

// change changes the value at a path, or something in it. There is none after it when the second result is false.
func (c *change) change(path string, s *props, value any, there bool) (any, bool) {
	switch {
	case there && path != "spec" && c.chance(12):
		c.say(path, "is left out, was", value)
		return nil, false
	case there && path != "spec" && c.chance(c.wild/4):
		made := c.of([]any{"text", int64(7), true, []any{}, map[string]any{}, nil})
		c.say(path, "is of another type:", made)
		return made, true
	case there && len(s.Properties) > 0:
		if object, ok := value.(map[string]any); ok {
			return c.property(path, s, object), true
		}
	case there && s.Items != nil:
		if list, ok := value.([]any); ok {
			return c.list(path, s, list), true
		}
	case there && s.AdditionalProperties != nil || s.XPreserveUnknownFields != nil:
		if object, ok := value.(map[string]any); ok && c.chance(60) {
			return c.entry(path, s, object), true
		}
	}
	made := c.value(path, s)
	c.say(path, "becomes", made)
	return made, true
}

// property changes one property of an object. Those that are there are likelier.
func (c *change) property(path string, s *props, object map[string]any) any {
	name := c.name(slices.Sorted(maps.Keys(s.Properties)))
	if existing := slices.Sorted(maps.Keys(object)); len(existing) > 0 && c.chance(40) {
		name = c.name(existing)
	}
	property := s.Properties[name]
	value, there := object[name]
	if made, kept := c.change(path+"."+name, &property, value, there); kept {
		object[name] = made
	} else {
		delete(object, name)
	}
	return object
}

// list makes a list shorter, longer, or other.
func (c *change) list(path string, s *props, list []any) any {
	item := s.Items.Schema
	how := c.IntN(7)
	if len(list) == 0 {
		how = 0
	}
	switch how {
	case 0:
		list = append(list, c.value(path+"[]", item))
		c.say(path, "grows by", list[len(list)-1])
	case 1:
		at := c.IntN(len(list))
		list = slices.Delete(list, at, at+1)
		c.say(path, "shrinks to", list)
	case 2:
		c.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		c.say(path, "is in another order:", list)
	case 3:
		list = append(list, runtime.DeepCopyJSONValue(list[c.IntN(len(list))]))
		c.say(path, "has twice", list[len(list)-1])
	case 4:
		list = []any{}
		c.say(path, "is empty", nil)
	default:
		at := c.IntN(len(list))
		if made, kept := c.change(path+"[]", item, list[at], true); kept {
			list[at] = made
		} else {
			list = slices.Delete(list, at, at+1)
		}
	}
	return list
}

// entry changes an entry of a map.
func (c *change) entry(path string, s *props, object map[string]any) any {
	existing := slices.Sorted(maps.Keys(object))
	if len(existing) == 0 || c.chance(30) {
		key := c.of([]any{"a", "example.com/b", "team", "cpu", "memory", "hz", "UPPER", "a b", ""}).(string)
		object[key] = c.value(path+"{}", within(s))
		c.say(path, "has a new "+key+":", object[key])
		return object
	}
	key := c.name(existing)
	if c.chance(40) {
		delete(object, key)
		c.say(path, "has no "+key, nil)
		return object
	}
	object[key] = c.value(path+"{}", within(s))
	c.say(path, "has another "+key+":", object[key])
	return object
}

// within is the schema of the values of a map.
func within(s *props) *props {
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return s.AdditionalProperties.Schema
	}
	return &props{Type: "string"}
}

func (c *change) name(of []string) string { return of[c.IntN(len(of))] }

func (c *change) of(values []any) any { return runtime.DeepCopyJSONValue(values[c.IntN(len(values))]) }

// value makes one for a schema.
func (c *change) value(path string, s *props) any {
	field := path[strings.LastIndex(path, ".")+1:]
	switch {
	case len(s.Enum) > 0 && !c.chance(c.wild):
		return decoded(s.Enum[c.IntN(len(s.Enum))].Raw)
	case len(c.kind.seen[path]) > 0 && c.chance(40):
		return c.of(c.kind.seen[path])
	case len(words[field]) > 0 && fits(s, words[field]) && c.chance(70):
		return c.of(words[field])
	case s.Default != nil && c.chance(15):
		return decoded(s.Default.Raw)
	case len(s.Properties) > 0:
		return c.object(path, s)
	case s.Items != nil && s.Items.Schema != nil:
		return c.items(path, s)
	case s.AdditionalProperties != nil:
		return map[string]any{c.name([]string{"a", "example.com/b", "cpu"}): c.value(path+"{}", within(s))}
	}
	switch s.Type {
	case "boolean":
		return c.chance(50)
	case "integer":
		return c.number(s)
	case "object":
		return map[string]any{}
	}
	if s.XIntOrString && c.chance(50) {
		return c.number(s)
	}
	return c.text(s)
}

// fits reports whether words are of the type that a schema asks for.
func fits(s *props, words []any) bool {
	switch words[0].(type) {
	case map[string]any:
		return s.Type == "object"
	case int64:
		return s.Type == "integer" || s.XIntOrString
	}
	return s.Type == "string" || s.XIntOrString
}

// object has what is required, and some of the rest.
func (c *change) object(path string, s *props) any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if required := slices.Contains(s.Required, name); required && !c.chance(c.wild/4) || c.chance(25) {
			property := s.Properties[name]
			object[name] = c.value(path+"."+name, &property)
		}
	}
	return object
}

func (c *change) items(path string, s *props) any {
	list := make([]any, 0, 2)
	for range c.IntN(3) {
		list = append(list, c.value(path+"[]", s.Items.Schema))
	}
	if s.MaxItems != nil && c.chance(c.wild/4) {
		for len(list) <= int(*s.MaxItems) {
			list = append(list, c.value(path+"[]", s.Items.Schema))
		}
	}
	return list
}

// number is a bound, one beyond, one within, or one that no 32 or 53 bits hold.
func (c *change) number(s *props) any {
	least, most := int64(0), int64(100)
	if s.Minimum != nil {
		least = int64(*s.Minimum)
	}
	if s.Maximum != nil {
		most = int64(*s.Maximum)
	}
	if c.chance(c.wild) {
		return c.of([]any{least - 1, most + 1, int64(-1), int64(math.MaxInt32), int64(math.MaxInt32) + 1, int64(math.MinInt32) - 1,
			int64(math.MaxInt64), int64(1)<<53 + 1, 1.5})
	}
	return c.of([]any{least, most, least + c.Int64N(most-least+1), least + c.Int64N(min(most-least, 5)+1)})
}

// text is one that the pattern does not concern, or that is as long as it may be.
func (c *change) text(s *props) any {
	if s.MaxLength != nil && c.chance(c.wild) {
		return strings.Repeat("x", int(*s.MaxLength)+c.IntN(2))
	}
	if c.chance(c.wild) {
		return c.name(texts)
	}
	return c.name([]string{"a", "b", "web", "10", "/x", "1Gi"})
}

func decoded(text []byte) any {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		panic(err) // it is of a CRD that was read
	}
	return whole(value)
}
