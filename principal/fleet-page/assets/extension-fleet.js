/*
 * The fleet in Argo CD's own UI: a page in its sidebar, and for each Application where its last change is. Argo CD's server
 * loads this file from /tmp/extensions and forwards its requests to the fleet page (proxy extensions `fleet` and
 * `fleet-clusters`). React is Argo CD's. Every text is put in as text.
 */
((window) => {
  const { createElement: h, useEffect, useState } = window.React;
  const path = '{{path}}';

  /** The headers by which Argo CD's server knows whose rights to look at. */
  const headersOf = ({ metadata, spec }) => ({
    'Argocd-Application-Name': `${metadata.namespace}:${metadata.name}`,
    'Argocd-Project-Name': spec?.project || 'default',
  });

  /** Asks the fleet page by way of Argo CD's server. Addresses are relative to the UI's own. */
  async function ask(extension, what, application, signal) {
    const address = `extensions/${extension}${path}extension/${what}`;
    const answer = await fetch(address, { headers: headersOf(application), signal });
    if (!answer.ok) {
      const text = (await answer.text()).trim().slice(0, 300);
      // What Argo CD's server says to those whose policy does not name the extension. Its own admin is one of them.
      const hint = /unauthorized extension/i.test(text)
        ? `. You need a role with the right: extensions, invoke, ${extension}`
        : '';
      throw Object.assign(new Error(`${answer.status}: ${text}${hint}`), { status: answer.status });
    }
    return answer;
  }

  const time = (text) => (text ? new Date(text).toLocaleString() : '–');
  const cell = (tag, content, style) =>
    h(tag, { style: { textAlign: 'left', padding: '6px 12px', ...style } }, content);
  /** A table that scrolls in itself where it is too wide, by keyboard as well. */
  const table = (label, head, rows) =>
    h(
      'div',
      { style: { overflowX: 'auto' }, tabIndex: 0, role: 'region', 'aria-label': label },
      h(
        'table',
        { style: { borderCollapse: 'collapse', width: '100%' } },
        h('thead', null, h('tr', null, ...head.map((text) => cell('th', text, { fontWeight: 600 })))),
        h('tbody', null, ...rows),
      ),
    );

  /* An Application */

  /** Where its change is. Asked anew when Argo CD's own watch brings another version of it. */
  function useWay(application) {
    const [way, setWay] = useState({});
    const { namespace, name, resourceVersion } = application.metadata;
    useEffect(() => {
      const stop = new AbortController();
      ask('fleet', 'application', application, stop.signal)
        .then((answer) => answer.json())
        .then((found) => setWay({ found }))
        .catch((error) => stop.signal.aborted || setWay({ error: error.message }));
      return () => stop.abort();
    }, [namespace, name, resourceVersion]);
    return way;
  }

  const summary = ({ found, error }) =>
    error !== undefined
      ? 'Not known'
      : found === undefined
        ? '…'
        : found.arrived
          ? 'Arrived'
          : `Waits at ${found.waitsAt}`;

  function ApplicationStatus({ application, openFlyout }) {
    const way = useWay(application);
    const text = summary(way);
    const title = way.error ?? way.found?.stations.find(({ isDone }) => !isDone)?.text ?? '';
    const value =
      openFlyout === undefined
        ? h('span', { title }, text)
        : h('button', { type: 'button', title, onClick: openFlyout, style: { all: 'unset', cursor: 'pointer' } }, text);
    // Argo CD gives no heading to what others add to its panel. This one looks like its own.
    const heading = { fontSize: '12px', fontWeight: 600, color: '#6D7F8B', minHeight: '18px' };
    return h(
      'div',
      { className: 'application-status-panel__item' },
      h('div', { style: heading }, 'LAST CHANGE'),
      h('div', { className: 'application-status-panel__item-value' }, value),
    );
  }

  function ApplicationTab({ application, resource }) {
    const { found, error } = useWay(resource?.kind === 'Application' && resource.metadata ? resource : application);
    if (found === undefined) {
      return h('p', { role: 'status', style: { padding: '20px' } }, error ?? 'Asking the principal …');
    }
    const rows = found.stations.map(({ station, isDone, at, text }) =>
      h(
        'tr',
        { key: station },
        cell('td', h('span', { role: 'img', 'aria-label': isDone ? 'done' : 'waits' }, isDone ? '✓' : '…')),
        cell('th', station),
        cell('td', time(at)),
        cell('td', text),
      ),
    );
    const { cluster } = found;
    return h(
      'div',
      { style: { padding: '20px' } },
      h(
        'p',
        { role: 'status' },
        found.arrived ? 'The last change has arrived.' : `The last change ${lower(summary({ found }))}.`,
      ),
      table('Stations', ['Done', 'Station', 'Time', 'What'], rows),
      cluster && h('p', null, `Cluster ${cluster.title}: ${cluster.state}. ${cluster.why}`),
    );
  }

  const lower = (text) => text.charAt(0).toLowerCase() + text.slice(1);

  /* All clusters */

  const longestWait = 30_000;
  const pause = (ms, signal) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true });
    });

  /** Argo CD forwards a request only for an Application that the user may get: any will do. */
  async function someApplication(signal) {
    const fields = 'items.metadata.name,items.metadata.namespace,items.spec.project';
    const answer = await fetch(`api/v1/applications?fields=${fields}`, { signal });
    const [first] = answer.ok ? ((await answer.json()).items ?? []) : [];
    if (first === undefined) {
      throw new Error('Argo CD shows the fleet only to those who may get at least one Application.');
    }
    return first;
  }

  /** Reads one stream of changes to its end. */
  async function read(answer, heard) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return;
      }
      const messages = (text + value).split('\n\n');
      text = messages.pop();
      for (const message of messages) {
        // Not by a pattern: to those U+2028 in a name ends a line, too.
        const lines = message.split('\n');
        const data = lines.find((line) => line.startsWith('data: '));
        if (data !== undefined && lines.includes('event: fleet')) {
          heard(JSON.parse(data.slice('data: '.length)));
        }
      }
    }
  }

  /** Follows the fleet until aborted. A stream begins with everything. */
  async function follow(signal, show) {
    let wait = 1_000;
    while (!signal.aborted) {
      const clusters = new Map();
      let totals;
      try {
        const application = await someApplication(signal);
        const answer = await ask('fleet-clusters', 'clusters', application, signal);
        await read(answer, ({ entries, regions }) => {
          for (const [agent, cluster] of Object.entries(entries)) {
            cluster === null ? clusters.delete(agent) : clusters.set(agent, cluster);
          }
          totals = regions.totals === undefined ? totals : JSON.parse(regions.totals);
          if (clusters.size >= totals.clusters) {
            wait = 1_000;
            show({ clusters: new Map(clusters), totals });
          }
        });
      } catch (error) {
        if (!signal.aborted) {
          show((known) => ({ ...known, error: error.message }));
          wait = Math.min(longestWait, wait * 2);
        }
      }
      await pause(wait * (0.5 + Math.random() / 2), signal);
    }
  }

  function Fleet() {
    const [{ clusters, totals, error }, show] = useState({});
    useEffect(() => {
      const stop = new AbortController();
      void follow(stop.signal, show);
      return () => stop.abort();
    }, []);
    const problem = error && h('p', { role: 'alert' }, `The fleet cannot be followed now. ${error}`);
    if (clusters === undefined) {
      return h('div', { style: { padding: '20px' } }, problem ?? h('p', { role: 'status' }, 'Asking the principal …'));
    }
    const sorted = [...clusters].sort(([, a], [, b]) => a.rank - b.rank || (a.title < b.title ? -1 : 1));
    const rows = sorted.map(([agent, { title, state, why, mode, version, since, pending, applications, unhealthy }]) =>
      h(
        'tr',
        { key: agent },
        cell('th', h('bdi', null, title)),
        cell('td', state),
        cell('td', why),
        cell('td', mode || '–'),
        cell('td', version || '–'),
        cell('td', time(since)),
        ...[pending, applications, unhealthy].map((count) => cell('td', count, { textAlign: 'right' })),
      ),
    );
    const head = ['Cluster', 'State', 'Why', 'Mode', 'Version', 'Since', 'On the way', 'Applications', 'Unhealthy'];
    const counted = `${totals.ready} of ${totals.clusters} clusters are ready. ${totals.pending} changes are on the way.`;
    return h(
      'div',
      { style: { padding: '20px' } },
      problem,
      h('h1', null, 'Fleet'),
      h('p', { role: 'status' }, counted),
      table('Clusters', head, rows),
    );
  }

  /**
   * Calls back when Argo CD's UI is there. Since 3.5 it comes after this script, and it hears only from then on which pages are
   * added to its sidebar.
   */
  function whenShown(callback) {
    const { document, MutationObserver } = window;
    const root = document.getElementById('app');
    if (root === null || root.hasChildNodes()) {
      callback();
      return;
    }
    const observer = new MutationObserver(() => {
      observer.disconnect();
      callback();
    });
    observer.observe(root, { childList: true });
  }

  const { extensionsAPI } = window;
  whenShown(() => extensionsAPI.registerSystemLevelExtension(Fleet, 'Fleet', '/fleet', 'fa-project-diagram'));
  extensionsAPI.registerResourceExtension(ApplicationTab, 'argoproj.io', 'Application', 'Fleet', { icon: 'fa-route' });
  extensionsAPI.registerStatusPanelExtension(ApplicationStatus, 'Change', 'fleet_change', ApplicationTab);
})(window);
