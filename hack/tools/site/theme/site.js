// Copyright 2026 The Middleware Operator Authors. SPDX-License-Identifier: Apache-2.0
'use strict';

// The menu is closed where there is no room for it beside the page.
if (matchMedia('(max-width: 50rem)').matches) document.querySelector('.menu').open = false;

// The same page of another version, where there is one.
for (const link of document.querySelectorAll('a[data-file]')) {
  link.addEventListener('click', async (event) => {
    event.preventDefault();
    const there = await fetch(link.dataset.file, {method: 'HEAD'}).then((answer) => answer.ok, () => false);
    location.assign(there ? link.dataset.file + location.hash : link.href);
  });
}

// The search: sections that have all words, those with words in their headings first.
const form = document.querySelector('.search');
const input = form.querySelector('input');
const found = form.querySelector('.found');
let index;

const load = () => index ??= fetch(form.dataset.root + 'search.json').then((answer) => answer.json())
  .then((list) => list.map((entry) => ({...entry, page: entry.p.toLowerCase(), heading: entry.h.toLowerCase(), text: entry.t.toLowerCase()})));

function score(entry, words) {
  let sum = 0;
  for (const word of words) {
    const hits = (entry.heading.includes(word) ? 8 : 0) + (entry.page.includes(word) ? 4 : 0) + Math.min(entry.text.split(word).length - 1, 3);
    if (hits === 0) return 0;
    sum += hits;
  }
  return entry.u.startsWith('docs/adr/') || entry.u.startsWith('CHANGELOG') ? sum / 2 : sum; // pages before their history
}

function result(entry, words) {
  const link = document.createElement('a');
  link.href = form.dataset.root + entry.u;
  const title = document.createElement('b');
  title.textContent = entry.h || entry.p;
  const at = Math.max(0, Math.min(...words.map((word) => entry.text.indexOf(word)).filter((at) => at >= 0), entry.t.length) - 50);
  const excerpt = document.createElement('span');
  excerpt.textContent = (at ? '… ' : '') + entry.t.slice(at, at + 160);
  link.append(title, entry.h ? ' · ' + entry.p : '', excerpt);
  return link;
}

async function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.hidden = words.length === 0;
  if (found.hidden) return;
  const list = (await load()).map((entry) => [score(entry, words), entry]).filter(([sum]) => sum > 0).sort((a, b) => b[0] - a[0]).slice(0, 15);
  const none = document.createElement('p');
  none.textContent = 'Nothing has all of these words.';
  found.replaceChildren(...(list.length ? list.map(([, entry]) => result(entry, words)) : [none]));
}

form.hidden = false;
form.addEventListener('submit', (event) => { event.preventDefault(); found.querySelector('a')?.click(); });
input.addEventListener('focus', load);
input.addEventListener('input', search);
document.addEventListener('click', (event) => { if (!form.contains(event.target)) found.hidden = true; });
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) { event.preventDefault(); input.focus(); }
  if (event.key === 'Escape') found.hidden = true;
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (step && form.contains(document.activeElement)) {
    event.preventDefault();
    const stops = [input, ...found.querySelectorAll('a')];
    stops[Math.max(0, Math.min(stops.length - 1, stops.indexOf(document.activeElement) + step))].focus();
  }
});
