/*
 * Keeps the fleet page up to date. The server makes all HTML, with every text in it escaped; this script only puts it in its
 * place, and filters and sorts what is there. Without it the page is complete, and filters and sorts by links and a form.
 */

const entries = document.getElementById('entries');
const tools = document.getElementById('tools');
const collator = new Intl.Collator('en', { numeric: true });

/** An element made of the server's HTML. A row needs a table around it. */
function made(html) {
  const template = document.createElement('template');
  template.innerHTML = html;
  return template.content.firstElementChild;
}

/* Filter and order */

const orders = {
  name: () => 0,
  version: (a, b) => collator.compare(a.version, b.version),
  trouble: (a, b) => a.rank - b.rank,
  lag: (a, b) => b.lag - a.lag,
  unhealthy: (a, b) => b.unhealthy - a.unhealthy,
  applications: (a, b) => b.applications - a.applications,
};

function wanted() {
  const { q, state, mode, version, sort } = tools.elements;
  return {
    words: q.value.toLowerCase().split(/\s+/),
    state: state.value,
    mode: mode.value,
    version: version.value,
    order: orders[sort.value] ?? orders.name,
  };
}

function isWanted({ title, agent, state, mode, version, why }, { words, ...want }) {
  const text = `${title} ${agent} ${version} ${why}`.toLowerCase();
  return (
    (want.state === '' || state === want.state) &&
    (want.mode === '' || mode === want.mode) &&
    (want.version === '' || version === want.version) &&
    words.every((word) => text.includes(word))
  );
}

function filter() {
  const want = wanted();
  let shown = 0;
  for (const entry of entries.children) {
    const isShown = isWanted(entry.dataset, want);
    if (entry.hidden === isShown) {
      entry.hidden = !isShown;
    }
    shown += isShown ? 1 : 0;
  }
  const all = entries.children.length;
  document.getElementById('shown').textContent = shown === all ? '' : `${shown} of ${all} shown`;
  document.getElementById('empty').hidden = shown > 0 || all === 0;
  markChips();
}

function sort() {
  const { order } = wanted();
  const compare = ({ dataset: a }, { dataset: b }) =>
    order(a, b) || collator.compare(a.title, b.title) || collator.compare(a.agent, b.agent);
  const sorted = [...entries.children].sort(compare);
  if (sorted.some((entry, index) => entries.children[index] !== entry)) {
    const focused = document.activeElement;
    entries.append(...sorted);
    if (entries.contains(focused)) {
      focused.focus({ preventScroll: true });
    }
  }
  for (const link of document.querySelectorAll('[data-sort]')) {
    const order = link.dataset.sort;
    const direction = ['name', 'version', 'trouble'].includes(order) ? 'ascending' : 'descending';
    link.closest('th').removeAttribute('aria-sort');
    if (order === tools.elements.sort.value) {
      link.closest('th').setAttribute('aria-sort', direction);
    }
  }
}

function markChips() {
  for (const chip of document.querySelectorAll('[data-filter]')) {
    const isChosen = chip.dataset.filter === tools.elements.state.value;
    isChosen ? chip.setAttribute('aria-current', 'true') : chip.removeAttribute('aria-current');
  }
}

/** The address shows what is asked for, and so do the links between map and table. */
function remember() {
  const given = new URLSearchParams();
  for (const [name, value] of new FormData(tools)) {
    const standard = { sort: 'name', view: 'map' }[name] ?? '';
    if (value !== standard) {
      given.set(name, value);
    }
  }
  history.replaceState(null, '', given.size === 0 ? './' : `./?${given}`);
  for (const link of document.querySelectorAll('.views a')) {
    given.delete('view');
    if (link.textContent === 'Table') {
      given.set('view', 'table');
    }
    link.href = given.size === 0 ? './' : `./?${given}`;
  }
}

function ask() {
  sort();
  filter();
  remember();
}

if (tools !== null && entries !== null) {
  document.documentElement.classList.add('js');
  tools.addEventListener('input', ask);
  tools.addEventListener('submit', (event) => {
    event.preventDefault();
    ask();
  });
  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[data-filter], a[data-sort]');
    if (link === null || link === undefined || event.ctrlKey || event.metaKey || event.shiftKey) {
      return;
    }
    event.preventDefault();
    const { filter: state, sort: order } = link.dataset;
    if (state !== undefined) {
      tools.elements.state.value = state;
    } else {
      tools.elements.sort.value = order;
    }
    ask();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && !/^(INPUT|SELECT)$/.test(document.activeElement?.tagName ?? '')) {
      event.preventDefault();
      tools.elements.q.focus();
    }
  });
  entries.addEventListener('keydown', walk);
  filter();
}

/** Arrow keys walk over the map. */
function walk(event) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (steps === undefined || entries.tagName !== 'UL') {
    return;
  }
  const shown = [...entries.children].filter(({ hidden }) => !hidden);
  const from = shown.indexOf(event.target.closest('li'));
  const top = shown[0]?.offsetTop;
  const columns = shown.findIndex(({ offsetTop }) => offsetTop !== top);
  const to = shown[from + steps[0] + steps[1] * (columns < 0 ? shown.length : columns)];
  if (from >= 0 && to !== undefined) {
    event.preventDefault();
    to.querySelector('a').focus();
  }
}

/* Changes */

function patchEntry(agent, html) {
  const before = entries.querySelector(`:scope > [data-agent="${CSS.escape(agent)}"]`);
  if (html === null) {
    before?.remove();
    return;
  }
  const now = made(html);
  if (before === null) {
    entries.append(now);
    return;
  }
  const hadFocus = before.contains(document.activeElement);
  if (before.dataset.state !== now.dataset.state) {
    now.classList.add('news');
  }
  before.replaceWith(now);
  if (hadFocus) {
    now.querySelector('a').focus({ preventScroll: true });
  }
}

function patchRegion(name, html) {
  const region = document.querySelector(`[data-region="${CSS.escape(name)}"]`);
  if (region === null || region.dataset.now === html) {
    return;
  }
  const focused = region.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
  region.innerHTML = html;
  if (focused !== null) {
    region.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
}

/* Screen readers hear the headline when it has changed, at most every ten seconds. */
const news = document.getElementById('news');
const headline = () => document.querySelector('#headline, .verdict')?.textContent ?? '';
let heard = headline();
let isQuiet = false;
function announce() {
  if (isQuiet || headline() === heard) {
    return;
  }
  heard = headline();
  news.textContent = heard;
  isQuiet = true;
  setTimeout(() => {
    isQuiet = false;
    announce();
  }, 10_000);
}

function apply({ entries: changed, regions, gone }) {
  if (gone) {
    location.reload();
    return;
  }
  for (const [name, html] of Object.entries(regions)) {
    patchRegion(name, html);
  }
  const agents = Object.entries(changed);
  if (entries !== null && agents.length > 0) {
    for (const [agent, html] of agents) {
      patchEntry(agent, html);
    }
    sort();
  }
  if (tools !== null && entries !== null) {
    filter();
  }
  announce();
}

function say(state, text) {
  const live = document.getElementById('live');
  if (live !== null) {
    live.dataset.live = state;
    document.getElementById('live-text').textContent = text;
  }
}

const { events } = document.body.dataset;
if (events !== '') {
  const stream = new EventSource(events);
  stream.addEventListener('open', () => say('on', 'Live'));
  stream.addEventListener('fleet', ({ data }) => apply(JSON.parse(data)));
  stream.addEventListener('reload', () => {
    stream.close();
    location.reload();
  });
  stream.addEventListener('error', () => {
    const isOver = stream.readyState === EventSource.CLOSED;
    say('off', isOver ? 'Not live: load the page again' : 'Connecting again');
  });
}
