// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// The documentation site finds what is searched for, goes from version to version, fits a narrow window, and asks nobody else.
func TestDocumentationSite(t *testing.T) {
	tool, err := exec.CommandContext(t.Context(), "../../hack/tool.sh", "site").Output()
	check(t, err)
	out := t.TempDir() + "/site"
	made := exec.CommandContext(t.Context(), strings.TrimSpace(string(tool)), "--out="+out, "latest=../..", "0.1.0=../..")
	said, err := made.CombinedOutput()
	if err != nil {
		t.Fatalf("%s", said)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(out)))
	t.Cleanup(server.Close)
	b := launch(t)
	const ready = "document.querySelector('.search:not([hidden])')"
	for _, dark := range []bool{false, true} {
		p := b.open(t, server.URL+"/index.html", 1280, 900, dark)
		p.await("document.querySelector('h1')?.innerText.startsWith('Middleware Operator')")
		p.await("location.pathname.startsWith('/0.1.0/')") // the newest release comes first
		p.await("document.querySelectorAll('.diagram svg').length === 2")
		p.await(ready)
		p.press("/", 191)
		p.eval(`{ const input = document.activeElement; input.value = 'rotate password'; input.dispatchEvent(new Event('input')); }`, nil)
		p.await("document.querySelector('.found a')?.innerText.includes('Change the password')")
		p.press("ArrowDown", 40)
		p.press("Enter", 13)
		p.await("location.pathname.endsWith('/docs/rediscluster-operations.html') && location.hash === '#change-the-password'")
		p.await(ready)
		p.eval("document.querySelector('.versions').open = true; document.querySelector('.versions a[data-file*=latest]').click()", nil)
		p.await("location.pathname === '/latest/docs/rediscluster-operations.html' && location.hash === '#change-the-password'")
		p.await("document.querySelector('.note')?.innerText.includes('0.1.0')")
		p.wantQuiet(server.URL)
	}
	p := b.open(t, server.URL+"/latest/docs/installation.html", 400, 900, false)
	p.await("document.querySelector('.menu')?.open === false")
	p.await("document.documentElement.scrollWidth <= innerWidth")
	p.wantQuiet(server.URL)
}
