// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The page of `kubectl middleware web`. What it shows was written by others: all of it becomes text nodes and attributes of a fixed
// set, and nothing here parses HTML. It asks the server that it came from, and nobody else.
'use strict';

// ---- elements

// h describes an element. Those that have a key keep their identity, with focus and transitions, wherever they move.
function h(tag, attributes, ...children) {
  const {key, ...rest} = attributes || {};
  return {tag, key, attributes: rest, children: children.flat(3).filter((c) => c !== null && c !== undefined && c !== false && c !== '')};
}

const keys = new WeakMap();
const allowed = /^(class|title|href|type|role|id|tabindex|scope|colspan|disabled|data-[a-z]+|aria-[a-z]+)$/;

// sync makes the children of an element what is described, with as little change as may be.
function sync(parent, described) {
  const known = new Map();
  for (const node of [...parent.childNodes]) {
    if (known.has(keys.get(node))) node.remove(); // two that were described as one
    else known.set(keys.get(node), node);
  }
  described.forEach((d, i) => {
    const text = typeof d !== 'object';
    const key = text ? '#' + i : d.tag + ':' + (d.key === undefined ? '#' + i : d.key);
    let node = known.get(key);
    known.delete(key);
    if (!node) {
      node = text ? document.createTextNode('') : document.createElement(d.tag);
      keys.set(node, key);
    }
    if (text) {
      if (node.data !== String(d)) node.data = String(d);
    } else {
      attribute(node, d.attributes);
      sync(node, d.children);
    }
    if (parent.childNodes[i] !== node) parent.insertBefore(node, parent.childNodes[i] || null);
  });
  for (const node of known.values()) node.remove();
}

function attribute(node, wanted) {
  for (const {name} of [...node.attributes]) {
    if (!(name in wanted) && name !== 'style') node.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(wanted)) {
    if (name === 'vars') {
      for (const [variable, is] of Object.entries(value)) node.style.setProperty('--' + variable, String(is));
    } else if (name === 'click') {
      node.onclick = value;
    } else if (!allowed.test(name)) {
      throw new Error('no such attribute: ' + name);
    } else if (value === false || value === undefined || value === null) {
      node.removeAttribute(name);
    } else if (node.getAttribute(name) !== String(value)) {
      node.setAttribute(name, String(value));
    }
  }
}

// ---- what is shown

const all = 16384;
const mostListed = 500;
const state = {list: null, listError: '', view: null, viewError: '', of: '', at: 0, held: false, changes: [], roles: new Map(),
  lit: new Map(), hot: ''};
const byId = (id) => document.getElementById(id);

// chosen is the object that the address names: #/KIND/NAMESPACE/NAME.
function chosen() {
  const parts = location.hash.split('/').slice(1);
  try {
    return parts.length === 3 ? parts.map(decodeURIComponent) : null;
  } catch {
    return null;
  }
}

const address = (o) => '#/' + [o.kind, o.namespace, o.name].map(encodeURIComponent).join('/');

function age(then, now) {
  const s = Math.max(0, (new Date(now) - new Date(then)) / 1000);
  if (!Number.isFinite(s)) return '–';
  if (s < 120) return Math.floor(s) + ' s';
  if (s < 7200) return Math.floor(s / 60) + ' min';
  if (s < 172800) return Math.floor(s / 3600) + ' h';
  return Math.floor(s / 86400) + ' d';
}

// tone is how good a state is: good, warn, bad or calm.
function tone(state) {
  if (['Running', 'True', 'Serving', 'Completed'].includes(state)) return 'good';
  if (['Failed', 'False', 'NotRunning', 'ClusterDown', 'error'].includes(state)) return 'bad';
  if (['Paused', 'Hibernated', 'None', 'note'].includes(state)) return 'calm';
  return 'warn';
}

const chip = (text, how) => h('span', {class: 'chip ' + (how || tone(text))}, text);
const hot = (shard) => state.hot === String(shard) ? ' hot' : '';
// hue is the colour of a shard: neighbours are far apart.
const hue = (shard) => Math.round((shard * 137.508 + 200) % 360);

// ranges are slots as the status writes them: 0-5460,6000. What is cut off is left out.
function ranges(text) {
  const found = [];
  for (const part of (text || '').split(',')) {
    const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part.trim());
    if (!match) continue;
    const from = Number(match[1]), to = Number(match[2] === undefined ? match[1] : match[2]);
    if (from <= to && to < all) found.push([from, to]);
  }
  return found;
}

// band is the slots from the first to the last, each run of them by its owner. There are at most as many pieces as people can see.
function band(cluster) {
  const owned = [];
  for (const shard of cluster.shards || []) {
    ranges(shard.slots).forEach(([from, to], i) => owned.push({from, to, shard: shard.number, key: shard.number + '/' + i}));
  }
  owned.sort((a, b) => a.from - b.from);
  const pieces = [];
  let next = 0;
  const gap = (to) => { if (to >= next) pieces.push({from: next, to, shard: -1, key: 'gap' + pieces.length}); };
  for (const piece of owned) {
    if (piece.to < next) continue; // two say that they own it; the tables below tell
    gap(piece.from - 1);
    pieces.push({...piece, from: Math.max(piece.from, next)});
    next = piece.to + 1;
  }
  gap(all - 1);
  return pieces.slice(0, 1024);
}

function slotBand(cluster) {
  const pieces = band(cluster);
  const missing = pieces.filter((p) => p.shard < 0).reduce((n, p) => n + p.to - p.from + 1, 0);
  return h('section', {class: 'slots', 'aria-label': 'Slots', key: 'slots'},
    h('div', {class: 'band', role: 'img', 'aria-label': missing ? missing + ' of 16384 slots have no owner that answers' : 'all slots have an owner'},
      pieces.map((p) => h('span', {
        key: p.key, class: (p.shard < 0 ? 'piece none' : 'piece') + hot(p.shard), vars: {share: p.to - p.from + 1, hue: hue(p.shard)}, 'data-shard': p.shard,
        title: (p.shard < 0 ? 'no owner' : 'shard ' + p.shard) + ': ' + p.from + '–' + p.to,
      }, (p.to - p.from) / all > 0.018 ? (p.shard < 0 ? '!' : String(p.shard)) : ''))),
    h('div', {class: 'scale', 'aria-hidden': 'true'}, [0, 4096, 8192, 12288, 16383].map((n) => h('span', {}, n))));
}

const percent = (value, what) => h('div', {class: 'meter' + (value >= 90 ? ' full' : ''), role: 'meter', 'aria-label': what, 'aria-valuemin': 0,
  'aria-valuemax': 100, 'aria-valuenow': value, vars: {part: value}}, h('i', {}));

function instance(i) {
  const lit = state.lit.get(i.name) > Date.now();
  const facts = [i.node && 'on ' + i.node + (i.zone ? ' (' + i.zone + ')' : ''), i.claim && 'volume ' + i.claim,
    i.restarts > 0 && i.restarts + (i.restarts === 1 ? ' restart' : ' restarts')].filter(Boolean);
  return h('li', {key: i.name, class: 'instance ' + ({master: 'master', replica: 'replica'}[i.role] || 'unknown') + (lit ? ' lit' : '')},
    h('span', {class: 'role', title: i.role || 'role not known'}, {master: 'M', replica: 'R'}[i.role] || '?'),
    h('span', {class: 'name'}, i.name, h('span', {class: 'unseen'}, ' ' + (i.role || 'role not known'))),
    i.lag === 'behind' ? chip('behind', 'warn') : '',
    i.state === 'Serving' ? h('span', {class: 'dot good', title: 'Serving'}, h('span', {class: 'unseen'}, 'Serving')) : chip(i.state),
    h('span', {class: 'load'}, i.memoryPercent === undefined ? '' : percent(i.memoryPercent, 'memory of ' + i.name),
      h('span', {}, i.memory || i.memoryLimit ? (i.memory || '–') + (i.memoryLimit ? ' / ' + i.memoryLimit : '') : '')),
    h('span', {class: 'facts'}, facts.join(' · ')),
    i.message && i.state !== 'Serving' ? h('span', {class: 'why'}, i.message) : '');
}

function shard(s) {
  return h('section', {class: 'card shard' + hot(s.number), key: s.number, vars: {hue: hue(s.number)}, 'data-shard': s.number, tabindex: 0,
    'aria-label': 'shard ' + s.number},
    h('h3', {}, h('span', {class: 'swatch'}), 'Shard ' + s.number,
      h('span', {class: 'owns'}, s.count ? s.count + ' slots' : s.slots ? '' : 'no slots')),
    h('p', {class: 'ranges'}, s.slots || ''),
    h('ul', {}, (s.instances || []).map(instance)));
}

function plan(cluster) {
  const p = cluster.plan, work = cluster.work || [];
  if (!p && !work.length) return '';
  return h('section', {class: 'card', key: 'plan'}, h('h3', {}, 'Plan'),
    p ? [h('p', {class: 'step'}, h('b', {}, p.step), p.reason ? ' ' + p.reason : ''),
      p.blockedBy ? h('p', {}, 'held by ', chip(p.blockedBy, 'warn')) : ''] : '',
    work.map((w, i) => h('div', {class: 'work', key: w.what + i}, h('p', {}, h('b', {}, w.what), ' ' + w.message),
      w.percent === undefined ? '' : h('div', {class: 'progress', role: 'progressbar', 'aria-label': w.what, 'aria-valuemin': 0,
        'aria-valuemax': 100, 'aria-valuenow': w.percent, vars: {part: w.percent}}, h('i', {})))),
    p && p.moves ? more('ul', p.moves, (m) => h('li', {}, m)) : '',
    p && p.settings ? more('ul', p.settings, (m) => h('li', {}, m)) : '');
}

// more is a list with an end.
function more(tag, list, item, most = 12) {
  return h(tag, {class: 'lines'}, list.slice(0, most).map(item),
    list.length > most ? h('li', {class: 'faint'}, 'and ' + (list.length - most) + ' more') : '');
}

function findings(cluster) {
  const list = cluster.findings || [];
  return h('section', {class: 'card', key: 'findings'}, h('h3', {}, 'What is wrong'),
    list.length ? more('ul', list, (f) => h('li', {class: 'finding'}, chip(f.severity), h('p', {}, f.message),
      f.type ? h('div', {class: 'type'}, h('code', {}, f.type), h('button', {type: 'button', title: 'Copy the command',
        click: (e) => copy(e.currentTarget, f.type)}, 'Copy')) : '')) : h('p', {class: 'fine'}, 'Nothing is wrong.'));
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not copied';
  }
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

function events(cluster, now) {
  const list = cluster.events || [];
  return h('section', {class: 'card', key: 'events'}, h('h3', {}, 'Events'),
    list.length ? h('table', {}, h('tbody', {}, list.map((e, i) => h('tr', {key: i, class: e.warning ? 'warning' : ''},
      h('td', {class: 'age'}, age(e.last, now)), h('td', {}, h('b', {}, e.reason), ' ', h('span', {class: 'faint'}, e.object), h('br', {}),
        e.message, e.count > 1 ? h('span', {class: 'faint'}, ' (' + e.count + ' times)') : ''))))) : h('p', {class: 'faint'}, 'None.'));
}

function changes() {
  const here = state.changes.filter((c) => c.of === state.of);
  return here.length === 0 ? '' : h('section', {class: 'card', key: 'changes'}, h('h3', {}, 'Seen since this page is open'),
    h('ul', {class: 'lines'}, here.slice(-8).reverse().map((c) => h('li', {key: c.id}, h('span', {class: 'age'}, c.at), ' ' + c.text))));
}

const unread = (model) => (model.unread || []).map((u) => h('p', {class: 'unread'}, 'Not shown: ' + u.what + ': ' + u.why));

function fact(name, value) {
  return value ? h('div', {key: name}, h('dt', {}, name), h('dd', {}, value)) : '';
}

function clusterView({now, cluster: c}) {
  const engine = c.engine ? c.engine + ' ' + (c.version || '') + (c.targetVersion ? ' → ' + c.targetVersion : '') : '';
  return [
    h('header', {class: 'head', key: 'head'}, h('h2', {}, c.name, chip(c.phase), c.paused ? chip('paused', 'calm') : ''),
      h('dl', {class: 'factrow'}, fact('Namespace', c.namespace), fact('Ready', c.ready), fact('Slots', c.slots + ' / ' + all),
        fact('Shards', (c.shards || []).filter((s) => s.slots).length), fact('Engine', engine), fact('Age', age(c.created, now))),
      c.reason ? h('p', {class: 'reason'}, c.reason) : ''),
    slotBand(c),
    h('div', {class: 'body', key: 'body'},
      h('div', {class: 'shards' + ((c.shards || []).length > 12 ? ' many' : ''), key: 'shards'}, (c.shards || []).map(shard)),
      h('div', {class: 'side', key: 'side'}, findings(c), plan(c), changes(), events(c, now), unread(c))),
  ];
}

function objectView({now, object: o}) {
  return [h('header', {class: 'head', key: 'head'}, h('h2', {}, o.name, chip(o.state || 'Unknown', tone(o.ready)), o.paused ? chip('paused', 'calm') : ''),
    h('dl', {class: 'factrow'}, fact('Kind', o.kind), fact('Namespace', o.namespace), fact('Ready', o.ready), fact('Age', age(o.created, now))),
    o.message ? h('p', {class: 'reason'}, o.message) : ''),
  h('section', {class: 'card', key: 'conditions'}, h('h3', {}, 'Conditions'),
    (o.conditions || []).length ? h('table', {}, h('tbody', {}, o.conditions.map((c) => h('tr', {key: c.type},
      h('th', {scope: 'row'}, c.type), h('td', {}, chip(c.status, c.status === 'True' ? 'calm' : 'warn')), h('td', {}, c.reason || ''),
      h('td', {class: 'age'}, c.lastTransitionTime ? age(c.lastTransitionTime, now) : ''), h('td', {}, c.message || ''))))) :
      h('p', {class: 'faint'}, 'No operator has looked at it: none runs, or none watches the namespace.'))];
}

function drawList() {
  const wanted = byId('filter').value.toLowerCase(), current = chosen();
  const objects = (state.list ? state.list.list.objects : []).filter((o) =>
    (o.kind + ' ' + o.namespace + '/' + o.name + ' ' + (o.state || '')).toLowerCase().includes(wanted));
  const groups = new Map();
  for (const o of objects) groups.set(o.namespace, [...(groups.get(o.namespace) || []), o]);
  sync(byId('list'), [
    state.listError ? h('p', {class: 'error', key: 'error'}, state.listError) : '',
    ...[...groups].map(([namespace, of]) => h('section', {key: namespace}, h('h2', {}, namespace), h('ul', {}, of.slice(0, mostListed).map((o) =>
      h('li', {key: o.kind + '/' + o.name}, h('a', {href: address(o),
        'aria-current': current && current.join('/') === [o.kind, o.namespace, o.name].join('/') ? 'page' : false, title: o.message || ''},
      h('span', {class: 'dot ' + (o.paused ? 'calm' : tone(o.ready))}), h('span', {class: 'name'}, o.name),
      h('span', {class: 'kind'}, o.kind), h('span', {class: 'state'}, o.paused ? 'Paused' : o.state || o.ready)))),
    of.length > mostListed ? h('li', {class: 'faint', key: 'more'}, 'and ' + (of.length - mostListed) + ' more: filter them') : ''))),
    state.list && !objects.length ? h('p', {class: 'faint', key: 'none'}, wanted ? 'Nothing matches.' : 'No object of these kinds.') : '',
    ...(state.list ? unread(state.list.list) : []),
  ].filter(Boolean));
}

function drawMain() {
  const view = state.view;
  let shown = [h('p', {class: 'empty', key: 'empty'}, state.of ? 'Looking …' : 'Choose an object.')];
  if (view && view.cluster) shown = clusterView(view);
  if (view && view.object) shown = objectView(view);
  sync(byId('main'), [state.viewError ? h('p', {class: 'error', key: 'error', role: 'alert'}, state.viewError) : '', ...shown].filter(Boolean));
  byId('main').classList.toggle('old', Boolean(state.viewError));
  document.title = (view && (view.cluster || view.object) ? (view.cluster || view.object).name + ' · ' : '') + 'kubectl middleware';
}

function drawBar() {
  const seconds = state.at ? Math.floor((Date.now() - state.at) / 1000) : -1;
  byId('fresh').textContent = state.held ? 'held' : seconds < 0 ? '' : seconds < 5 ? 'live' : seconds + ' s ago';
  byId('fresh').className = state.held ? 'calm' : seconds >= 15 ? 'bad' : 'good';
}

// ---- what changes

// notice tells of roles that have changed since the last look, and lights the instances up.
function notice(view) {
  if (!view.cluster) return;
  const of = state.of, now = new Date();
  for (const s of view.cluster.shards || []) {
    for (const i of s.instances || []) {
      const key = of + '/' + i.name, was = state.roles.get(key), is = i.role || '';
      state.roles.set(key, is);
      if (was === undefined || was === is) continue;
      const text = i.name + (is ? ' is ' + (is === 'master' ? 'the master' : 'a replica') + ' of shard ' + s.number : ': role not known') + ' now';
      state.lit.set(i.name, Date.now() + 6000);
      state.changes.push({id: key + Date.now(), of, at: now.toLocaleTimeString(), text});
      byId('told').textContent = text;
    }
  }
  state.changes = state.changes.slice(-200);
}

async function ask(path) {
  const answer = await fetch(path, {cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer'});
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

async function lookAtList() {
  try {
    state.list = await ask('list');
    state.listError = '';
    byId('where').textContent = state.list.where;
  } catch (e) {
    state.listError = 'Cannot look: ' + e.message;
  }
  const list = state.list ? state.list.list.objects : [];
  if (!chosen() && list.length) location.replace(address(list.find((o) => o.kind === 'RedisCluster') || list[0]));
  drawList();
}

async function lookAtView() {
  const what = chosen();
  if (!what) {
    Object.assign(state, {of: '', view: null, viewError: ''});
    drawMain();
    return;
  }
  const of = what.join('/');
  if (of !== state.of) Object.assign(state, {of, view: null, viewError: ''});
  try {
    const [kind, namespace, name] = what;
    const view = await ask('object?' + new URLSearchParams({kind, namespace, name}));
    if (of !== state.of) return; // another one was chosen meanwhile
    notice(view);
    Object.assign(state, {view, viewError: '', at: Date.now()});
  } catch (e) {
    if (of === state.of) state.viewError = 'Cannot look: ' + e.message;
  }
  drawMain();
}

// repeat looks again and again, one look at a time, while somebody can see the page.
function repeat(look, every) {
  const go = async () => {
    if (!document.hidden && !state.held) await look();
    setTimeout(go, every);
  };
  go();
}

// ---- controls

const themes = ['system', 'light', 'dark'];

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = {system: 'Auto', light: 'Light', dark: 'Dark'}[theme];
  byId('theme').setAttribute('aria-label', 'Theme: ' + theme);
}

byId('theme').onclick = () => setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]);
byId('hold').onclick = () => {
  state.held = !state.held;
  byId('hold').setAttribute('aria-pressed', String(state.held));
  byId('hold').textContent = state.held ? 'Go on' : 'Hold';
  drawBar();
};
byId('filter').oninput = drawList;

// A shard that is pointed at or has the focus is lit in the band, and the other way round.
function light(event) {
  const on = event.type === 'mouseover' || event.type === 'focusin';
  const at = on && event.target.closest ? event.target.closest('[data-shard]') : null;
  state.hot = at ? at.dataset.shard : '';
  for (const node of document.querySelectorAll('[data-shard]')) node.classList.toggle('hot', Boolean(at) && node.dataset.shard === at.dataset.shard);
  byId('main').classList.toggle('pointing', Boolean(at));
}
for (const type of ['mouseover', 'mouseout', 'focusin', 'focusout']) byId('main').addEventListener(type, light);

window.addEventListener('hashchange', () => { drawList(); lookAtView(); });
// Where the list is above the object, choosing one leads there.
byId('list').addEventListener('click', (e) => { if (e.target.closest('a')) setTimeout(() => byId('main').scrollIntoView({block: 'nearest'})); });
document.addEventListener('visibilitychange', () => { if (!document.hidden && !state.held) lookAtView(); });
setTheme('system');
lookAtList().then(() => { repeat(lookAtView, 2000); setTimeout(() => repeat(lookAtList, 10000), 10000); });
setInterval(drawBar, 1000);
