// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"middleware.hc.cn/operator/internal/plugin/overview"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// forty is a cluster of forty shards.
func forty(c *overview.Cluster) {
	first := c.Shards[0]
	c.Name, c.Ready, c.Shards = "sessions", "80/80", nil
	for n, part := range slots.All().Split(40) {
		s := overview.Shard{Number: int32(n), Slots: part.String(), Count: part.Len()}
		for ordinal, in := range first.Instances {
			in.Name = fmt.Sprintf("sessions-%d-%d", n, ordinal)
			used := (n*37+ordinal*11)%80 + 10
			in.Memory, in.Share = fmt.Sprintf("%dMi", used*256/100), &used
			s.Instances = append(s.Instances, in)
		}
		c.Shards = append(c.Shards, s)
	}
}

// The pictures of the documentation are of the page as it is; -update takes them anew. Nothing is cut off at the side.
func TestPictures(t *testing.T) {
	b := launch(t)
	for _, picture := range []struct {
		name, of string
		width    int
		dark     bool
		change   func(*overview.Cluster)
	}{
		{"light", "scaling", 1280, false, nil}, {"dark", "broken", 1280, true, nil}, {"narrow", "healthy", 390, false, nil},
		{"forty", "healthy", 1440, true, forty},
	} {
		t.Run(picture.name, func(t *testing.T) {
			s, url := served(t, picture.of)
			if picture.change != nil {
				s.change(picture.change)
			}
			p := b.open(t, url, picture.width, 800, picture.dark)
			p.await(drawn + " && document.querySelector('#fresh').textContent === 'live'")
			wide := 0
			if p.eval("document.documentElement.scrollWidth", &wide); wide > picture.width {
				t.Errorf("it is %d wide in a window of %d", wide, picture.width)
			}
			got := p.picture(picture.width)
			p.wantQuiet(url)
			path := filepath.Join("..", "..", "docs", "pictures", "web-"+picture.name+".png")
			if *update {
				check(t, os.WriteFile(path, got, 0o600))
				return
			}
			want, err := os.ReadFile(path)
			check(t, err)
			if differ := difference(t, want, got); differ > mostDiffer {
				made := filepath.Join("..", "..", "build", "pictures", filepath.Base(path))
				check(t, os.MkdirAll(filepath.Dir(made), 0o750))
				check(t, os.WriteFile(made, got, 0o600))
				t.Errorf("%.1f%% of %s is not as the page is: take it anew with -update; %s is how it is", 100*differ, path, made)
			}
		})
	}
}

// mostDiffer is which part of a picture may differ: browsers and fonts draw letters in other ways.
const mostDiffer = 0.06

// difference is which part of two pictures differs, in squares whose mean colours are compared.
func difference(t *testing.T, want, got []byte) float64 {
	t.Helper()
	a, err := png.Decode(bytes.NewReader(want))
	check(t, err)
	b, err := png.Decode(bytes.NewReader(got))
	check(t, err)
	const square, visible = 16, 20
	size := a.Bounds().Union(b.Bounds()).Size()
	differ, all := 0, 0
	for y := 0; y < size.Y; y += square {
		for x := 0; x < size.X; x += square {
			all++
			at := image.Rect(x, y, x+square, y+square)
			p, q := mean(a, at), mean(b, at)
			for i := range p {
				if p[i]-q[i] > visible || q[i]-p[i] > visible {
					differ++
					break
				}
			}
		}
	}
	return float64(differ) / float64(all)
}

func mean(of image.Image, at image.Rectangle) (colour [3]int) {
	at = at.Intersect(of.Bounds())
	if at.Empty() {
		return [3]int{-1000, -1000, -1000}
	}
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			r, g, b, _ := of.At(x, y).RGBA()
			for i, c := range []uint32{r, g, b} {
				colour[i] += int(c >> 8)
			}
		}
	}
	for i := range colour {
		colour[i] /= at.Dx() * at.Dy()
	}
	return colour
}
