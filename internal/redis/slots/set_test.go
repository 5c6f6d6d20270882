// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package slots_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"middleware.hc.cn/operator/internal/redis/slots"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{" , ", ""},
		{"7", "7"},
		{"0-5460,6000", "0-5460,6000"},
		{"0-5460 6000", "0-5460,6000"},
		{"6000, 0-10, 11-20", "0-20,6000"},
		{"5-9,0-7,3", "0-9"},
		{"16383", "16383"},
		{"0-16383", "0-16383"},
	} {
		got, err := slots.Parse(tc.text)
		if err != nil || got.String() != tc.want {
			t.Errorf("Parse(%q) = %q, %v; want %q", tc.text, got, err, tc.want)
		}
	}
}

func TestParseNamesTheBadPart(t *testing.T) {
	for text, wants := range map[string][]string{
		"0-10,abc,20": {`"abc"`, "0 to 16383"},
		"16384":       {`"16384"`},
		"0-16384":     {`"0-16384"`, `"16384"`},
		"9-5":         {`"9-5"`, "ends before it begins"},
		"-5":          {`"-5"`},
		"5-":          {`"5-"`},
		"1-2-3":       {`"1-2-3"`},
		"+5":          {`"+5"`},
		"99999999999": {`"99999999999"`},
	} {
		_, err := slots.Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) was accepted", text)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Parse(%q): %q does not say %s", text, err, want)
			}
		}
	}
}

func TestSplitIsThatOfRedisCLI(t *testing.T) {
	for n, want := range map[int][]string{
		1: {"0-16383"},
		3: {"0-5460", "5461-10922", "10923-16383"},
		4: {"0-4095", "4096-8191", "8192-12287", "12288-16383"},
		5: {"0-3276", "3277-6553", "6554-9829", "9830-13106", "13107-16383"},
	} {
		var got []string
		for _, part := range slots.All().Split(n) {
			got = append(got, part.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Split(%d) (-want +got):\n%s", n, diff)
		}
	}
}

func TestSlotsThatDoNotExistPanic(t *testing.T) {
	for name, make := range map[string]func(){
		"Of":    func() { slots.Of(16384) },
		"Range": func() { slots.Range(0, 16384) },
		"Split": func() { slots.All().Split(0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			make()
		}()
	}
}

// The expected values are what CLUSTER KEYSLOT of Redis 7.0.15 answers.
func TestKeySlot(t *testing.T) {
	for key, want := range map[string]uint16{
		"":                     0,
		"123456789":            12739,
		"foo":                  12182,
		"{user1000}.following": 3443,
		"{user1000}.followers": 3443,
		"user1000":             3443,
		"foo{}{bar}":           8363,
		"foo{{bar}}zap":        4015,
		"foo{bar}{zap}":        5061,
		"{":                    4092,
		"}{":                   12793,
	} {
		if got := slots.KeySlot(key); got != want {
			t.Errorf("KeySlot(%q) = %d, want %d", key, got, want)
		}
	}
}

// anySet draws fragmented and whole sets alike, with the plain list of their slots as the model to compare with.
func anySet(t *rapid.T, label string) (slots.Set, *[slots.Count]bool) {
	set, model := slots.Set{}, new([slots.Count]bool)
	for range rapid.IntRange(0, 8).Draw(t, label+" intervals") {
		first := rapid.Uint16Range(0, slots.Count-1).Draw(t, label+" first")
		length := rapid.SampledFrom([]uint16{0, 1, 7, 500, slots.Count}).Draw(t, label+" length")
		last := uint16(min(int(first)+int(length), slots.Count-1))
		set = set.Union(slots.Range(first, last))
		for slot := first; slot <= last; slot++ {
			model[slot] = true
		}
	}
	return set, model
}

func TestAlgebraAgreesWithPlainSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, inA := anySet(t, "a")
		b, inB := anySet(t, "b")
		results := map[string]struct {
			got  slots.Set
			want func(slot uint16) bool
		}{
			"a":          {a, func(s uint16) bool { return inA[s] }},
			"union":      {a.Union(b), func(s uint16) bool { return inA[s] || inB[s] }},
			"intersect":  {a.Intersect(b), func(s uint16) bool { return inA[s] && inB[s] }},
			"subtract":   {a.Subtract(b), func(s uint16) bool { return inA[s] && !inB[s] }},
			"complement": {a.Complement(), func(s uint16) bool { return !inA[s] }},
		}
		for name, result := range results {
			var want []uint16
			for slot := range uint16(slots.Count) {
				if result.want(slot) {
					want = append(want, slot)
				}
				if result.got.Contains(slot) != result.want(slot) {
					t.Fatalf("%s: Contains(%d) = %t", name, slot, !result.want(slot))
				}
			}
			if !slices.Equal(slices.Collect(result.got.Slots()), want) {
				t.Fatalf("%s: Slots() differs from Contains", name)
			}
			if result.got.Len() != len(want) || result.got.IsEmpty() != (len(want) == 0) {
				t.Fatalf("%s: Len() = %d, want %d", name, result.got.Len(), len(want))
			}
			if canonical := slots.Of(want...); !result.got.Equal(canonical) || !reflect.DeepEqual(result.got, canonical) {
				t.Fatalf("%s: %q is not in canonical form %q", name, result.got, canonical)
			}
		}
	})
}

func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, _ := anySet(t, "set")
		text, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		var got slots.Set
		if err := json.Unmarshal(text, &got); err != nil || !got.Equal(set) {
			t.Fatalf("%s became %q, %v", text, got, err)
		}
	})
}

func TestTakeAndSplitKeepEverySlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, _ := anySet(t, "set")
		n := rapid.IntRange(-1, slots.Count+1).Draw(t, "n")
		all := slices.Collect(set.Slots())
		if got, want := slices.Collect(set.Take(n).Slots()), all[:max(min(n, len(all)), 0)]; !slices.Equal(got, want) {
			t.Fatalf("Take(%d) of %q = %q", n, set, set.Take(n))
		}

		parts := set.Split(rapid.IntRange(1, 40).Draw(t, "parts"))
		var joined []uint16
		shortest, longest := slots.Count, 0
		for _, part := range parts {
			joined = slices.AppendSeq(joined, part.Slots())
			shortest, longest = min(shortest, part.Len()), max(longest, part.Len())
		}
		if !slices.Equal(joined, all) {
			t.Fatalf("Split of %q is %v: not its slots in order", set, parts)
		}
		if longest-shortest > 1 {
			t.Fatalf("Split of %q is %v: sizes from %d to %d", set, parts, shortest, longest)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "0-5460,6000", "1 2 3", "-", "16384", "5-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := slots.Parse(text)
		if err != nil {
			return
		}
		again, err := slots.Parse(set.String())
		if err != nil || !again.Equal(set) {
			t.Errorf("%q was read as %q, which reads as %q, %v", text, set, again, err)
		}
	})
}
