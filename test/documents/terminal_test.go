// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// colours are those of the terminal in the picture, by what SGR calls them.
var colours = map[string]string{"32": "#7ee2a0", "36": "#7fd6e4", "33": "#f4c874", "31": "#ff9a92", "35": "#d7a8f5", "34": "#9ab8ff",
	"2": "#93a3b3"}

// drawn is text with colours of a terminal as a picture (SVG).
func drawn(command, text string) string {
	const letter, line, margin = 7.8, 18.0, 16.0
	lines := append([]string{"\x1b[2m$\x1b[0m " + command, ""}, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
	sgr, columns := regexp.MustCompile("\x1b\\[([0-9]+)m"), 0
	var b strings.Builder
	for i, of := range lines {
		columns = max(columns, utf8.RuneCountInString(sgr.ReplaceAllString(of, "")))
		y, column, style := margin+line*float64(i+1)-5, 0, ""
		for len(of) > 0 {
			if at := sgr.FindStringSubmatchIndex(of); at != nil && at[0] == 0 {
				style = of[at[2]:at[3]]
				of = of[at[1]:]
				continue
			}
			piece := of
			if at := strings.IndexByte(of, '\x1b'); at >= 0 {
				piece = of[:at]
			}
			of = of[len(piece):]
			attributes := ""
			if fill := colours[style]; fill != "" {
				attributes = ` fill="` + fill + `"`
			}
			if style == "1" {
				attributes = ` font-weight="700"`
			}
			n := utf8.RuneCountInString(piece)
			if strings.TrimSpace(piece) != "" {
				fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" textLength=\"%.1f\"%s>%s</text>\n", margin+letter*float64(column), y, letter*float64(n),
					attributes, html.EscapeString(strings.ReplaceAll(piece, " ", "\u00a0")))
			}
			column += n
		}
	}
	width, height := 2*margin+letter*float64(columns), 2*margin+line*float64(len(lines))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" font-family="ui-monospace, SFMono-Regular, `+
		`Menlo, 'DejaVu Sans Mono', monospace" font-size="13" fill="#e6ecf2">`+"\n"+
		`<rect width="100%%" height="100%%" rx="8" fill="#10181f"/>`+"\n%s</svg>\n", width, height, width, b.String())
}

// The picture of a status is of what the code prints; -update draws it anew.
func TestPictureOfStatus(t *testing.T) {
	got := drawn("kubectl middleware status cache -n shop", read(t, "internal/plugin/overview/testdata/scaling-colours.txt"))
	path := filepath.Join(repository, "docs", "pictures", "status.svg")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not as the code is, draw it with -update (-picture +code):\n%s", path, diff)
	}
}
