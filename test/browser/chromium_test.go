// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// chromium is a browser that is driven by the DevTools protocol, over two pipes: messages are JSON, and end with a zero byte.
type chromium struct {
	send *os.File
	mu   sync.Mutex
	last int
	// waits are who waits for an answer, pages who is told what happens.
	waits map[int]chan message
	pages map[string]*page
}

type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    any             `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

const longestMessage = 64 << 20

// launch starts the browser that CHROMIUM names. It asks nobody for anything by itself.
func launch(t *testing.T) *chromium {
	t.Helper()
	fromTest, toBrowser, err := os.Pipe()
	check(t, err)
	fromBrowser, toTest, err := os.Pipe()
	check(t, err)
	command := exec.CommandContext(t.Context(), os.Getenv("CHROMIUM"), "--headless", "--remote-debugging-pipe", "--no-sandbox",
		"--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb", "--font-render-hinting=none", "--user-data-dir="+t.TempDir(),
		"about:blank")
	command.ExtraFiles = []*os.File{fromTest, toTest} // 3 and 4
	var said bytes.Buffer
	command.Stderr = &said
	check(t, command.Start())
	check(t, fromTest.Close())
	check(t, toTest.Close())
	b := &chromium{send: toBrowser, waits: map[int]chan message{}, pages: map[string]*page{}}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		b.hear(fromBrowser)
	}()
	t.Cleanup(func() {
		_ = toBrowser.Close() // at which it ends
		_ = command.Process.Kill()
		_ = command.Wait()
		<-heard
		if t.Failed() {
			t.Logf("%s", said.String())
		}
	})
	return b
}

// hear passes on what the browser says, until it ends.
func (b *chromium) hear(from *os.File) {
	in := bufio.NewScanner(from)
	in.Buffer(nil, longestMessage)
	in.Split(func(data []byte, _ bool) (int, []byte, error) {
		if end := bytes.IndexByte(data, 0); end >= 0 {
			return end + 1, data[:end], nil
		}
		return 0, nil, nil
	})
	for in.Scan() {
		var m message
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		b.mu.Lock()
		if wait := b.waits[m.ID]; wait != nil {
			delete(b.waits, m.ID)
			wait <- m
		} else if p := b.pages[m.SessionID]; p != nil {
			p.note(m.Method, in.Bytes())
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, wait := range b.waits {
		close(wait)
	}
	b.waits = nil
}

// call has the browser do something.
func (b *chromium) call(t *testing.T, session, method string, params, result any) {
	t.Helper()
	b.mu.Lock()
	if b.waits == nil {
		b.mu.Unlock()
		t.Fatal("the browser has ended")
	}
	b.last++
	wait := make(chan message, 1)
	b.waits[b.last] = wait
	encoded, err := json.Marshal(message{ID: b.last, SessionID: session, Method: method, Params: params})
	if err == nil {
		_, err = b.send.Write(append(encoded, 0))
	}
	b.mu.Unlock()
	check(t, err)
	select {
	case m, there := <-wait:
		if !there || m.Error != nil {
			t.Fatalf("%s: %+v", method, m.Error)
		}
		if result != nil {
			check(t, json.Unmarshal(m.Result, result))
		}
	case <-time.After(timeout):
		t.Fatalf("%s is not answered", method)
	}
}

// timeout is how long the browser may take for anything.
const timeout = time.Minute

type values = map[string]any

// page is a tab.
type page struct {
	*testing.T
	browser *chromium
	session string
	// asked are the addresses that it asked, wrong what it complained of.
	asked, wrong []string
}

// open opens an address in a window of a size.
func (b *chromium) open(t *testing.T, url string, width, height int, dark bool) *page {
	t.Helper()
	var made struct{ TargetID string }
	b.call(t, "", "Target.createTarget", values{"url": "about:blank"}, &made)
	var attached struct{ SessionID string }
	b.call(t, "", "Target.attachToTarget", values{"targetId": made.TargetID, "flatten": true}, &attached)
	p := &page{T: t, browser: b, session: attached.SessionID}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		p.do(domain+".enable", nil)
	}
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	p.do("Emulation.setEmulatedMedia", values{"features": []values{{"name": "prefers-color-scheme", "value": scheme},
		{"name": "prefers-reduced-motion", "value": "reduce"}}})
	p.do("Emulation.setDeviceMetricsOverride", values{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	p.do("Page.navigate", values{"url": url})
	return p
}

func (p *page) do(method string, params values) {
	p.Helper()
	if params == nil {
		params = values{}
	}
	p.browser.call(p.T, p.session, method, params, nil)
}

// note keeps what the page asks for and complains of. The lock is held.
func (p *page) note(method string, raw []byte) {
	var m struct {
		Params struct {
			Request          struct{ URL string }
			Entry            struct{ Level, Text, URL string }
			Type             string
			Message          string
			ExceptionDetails struct {
				Text      string
				Exception struct{ Description string }
			}
		}
	}
	if json.Unmarshal(raw, &m) != nil {
		return
	}
	switch method {
	case "Network.requestWillBeSent":
		p.asked = append(p.asked, m.Params.Request.URL)
	case "Log.entryAdded":
		if m.Params.Entry.Level == "error" || strings.Contains(m.Params.Entry.Text, "Security Policy") {
			p.wrong = append(p.wrong, m.Params.Entry.Text+" "+m.Params.Entry.URL)
		}
	case "Runtime.exceptionThrown":
		p.wrong = append(p.wrong, m.Params.ExceptionDetails.Text+" "+m.Params.ExceptionDetails.Exception.Description)
	case "Page.javascriptDialogOpening":
		p.wrong = append(p.wrong, "a dialog: "+m.Params.Message)
	}
}

// wantQuiet asserts that the page asked nobody but its own server, and complained of nothing but what is excused.
func (p *page) wantQuiet(url string, excused ...string) {
	p.Helper()
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	for _, asked := range p.asked {
		if !strings.HasPrefix(asked, url) && asked != "about:blank" {
			p.Errorf("it asked %s", asked)
		}
	}
	for _, wrong := range p.wrong {
		ok := false
		for _, one := range excused {
			ok = ok || strings.Contains(wrong, one)
		}
		if !ok {
			p.Error(wrong)
		}
	}
}

// eval is what an expression comes to.
func (p *page) eval(expression string, result any) {
	p.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.browser.call(p.T, p.session, "Runtime.evaluate", values{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if e := answer.ExceptionDetails; e != nil {
		p.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if result != nil && len(answer.Result.Value) > 0 {
		check(p.T, json.Unmarshal(answer.Result.Value, result))
	}
}

// await waits until an expression holds.
func (p *page) await(expression string) {
	p.Helper()
	for until := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		holds := false
		if p.eval("Boolean("+expression+")", &holds); holds {
			return
		}
		if time.Now().After(until) {
			var text string
			p.eval("document.body.innerText", &text)
			p.Fatalf("%s does not hold; the page says\n%s", expression, text)
		}
	}
}

// text is what people see.
func (p *page) text() (text string) {
	p.Helper()
	p.eval("document.body.innerText", &text)
	return text
}

// press presses a key.
func (p *page) press(key string, code int) {
	p.Helper()
	down := values{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
	if key == "Enter" {
		down["text"] = "\r"
	}
	p.do("Input.dispatchKeyEvent", down)
	p.do("Input.dispatchKeyEvent", values{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code})
}

// picture is all of the page, as a PNG.
func (p *page) picture(width int) []byte {
	p.Helper()
	height := 0
	p.eval("Math.ceil(document.documentElement.scrollHeight)", &height)
	var shot struct{ Data string }
	p.browser.call(p.T, p.session, "Page.captureScreenshot", values{"format": "png", "captureBeyondViewport": true,
		"clip": values{"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	check(p.T, err)
	return png
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("browser: %w", err))
	}
}
