import { createServer, request as forward, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { build } from 'rolldown';

/** Argo CD's server and UI as far as an extension sees them, before a fleet page. */
export interface ArgoUi {
  readonly url: string;
  /** Whether the user may invoke an extension, and get Applications. */
  rights: { readonly extensions: readonly string[]; readonly applications: boolean };
  /** Ends the connections that it forwards now. */
  cut(): void;
  close(): Promise<void>;
}

/** The name of the header by which Argo CD's configuration shows the fleet page that Argo CD asks. */
const keyHeader = 'x-fleet-page-key';

/**
 * Serves a page with React and `window.extensionsAPI`, which keeps what an extension registers in `window.registered`, and
 * forwards `/extensions/NAME/…` by the rules of Argo CD's server: without cookie and authorization, with the headers that are
 * configured for the extension, and only with an Application that the user may get.
 */
export async function serveArgoUi(options: {
  /** Of the fleet page, with a slash at its end. */
  readonly fleet: string;
  readonly keys: Readonly<Record<string, string>>;
  readonly application: { readonly namespace: string; readonly name: string; readonly project: string };
}): Promise<ArgoUi> {
  const { fleet, keys, application } = options;
  const react = await reactBundle();
  // The file that somebody has put into /tmp/extensions.
  const installed = await (await fetch(`${fleet}assets/extension-fleet.js`)).text();
  const { origin } = new URL(fleet);
  const open = new Set<{ destroy(): void }>();
  const ui: { rights: ArgoUi['rights'] } = {
    rights: { extensions: Object.keys(keys), applications: true },
  };
  const item = {
    metadata: { namespace: application.namespace, name: application.name },
    spec: { project: application.project },
  };
  const server: Server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://ui');
    const text = (status: number, type: string, body: string) =>
      response.writeHead(status, { 'content-type': type }).end(body);
    const [, root, extension = ''] = pathname.split('/');
    if (root === 'react.js') {
      return text(200, 'text/javascript', react);
    }
    if (root === 'extensions.js') {
      return text(200, 'text/javascript', installed);
    }
    if (root === 'api') {
      return text(200, 'application/json', JSON.stringify({ items: ui.rights.applications ? [item] : null }));
    }
    if (root !== 'extensions') {
      return text(200, 'text/html', document);
    }
    const { cookie: _, authorization: __, ...headers } = request.headers;
    const isNamed =
      headers['argocd-application-name'] === `${application.namespace}:${application.name}` &&
      headers['argocd-project-name'] === application.project;
    if (!isNamed || !ui.rights.applications || !ui.rights.extensions.includes(extension)) {
      return text(401, 'text/plain', 'Unauthorized extension request\n');
    }
    const path = pathname.slice(`/extensions/${extension}`.length) + search;
    const sent = { ...headers, [keyHeader]: keys[extension], 'argocd-user-id': 'ann' };
    const backend = forward(`${origin}${path}`, { headers: sent }, (answer) => {
      open.add(response);
      response.once('close', () => open.delete(response) && backend.destroy());
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => response.destroy()).pipe(response);
    }).on('error', () => response.destroy());
    backend.end();
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    get rights() {
      return ui.rights;
    },
    set rights(rights) {
      ui.rights = rights;
    },
    cut() {
      for (const response of open) {
        response.destroy();
      }
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** React as Argo CD's UI gives it to extensions. */
async function reactBundle(): Promise<string> {
  const entry = '\0entry';
  const { output } = await build({
    input: entry,
    cwd: import.meta.dirname,
    platform: 'browser',
    write: false,
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
    output: { format: 'iife' },
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === entry ? entry : undefined),
        load: (id) =>
          id === entry
            ? `import * as React from ${JSON.stringify(packageFile('react'))};
               import { createRoot } from ${JSON.stringify(packageFile('react-dom/client'))};
               window.React = React; window.createRoot = createRoot;`
            : undefined,
      },
    ],
  });
  return output[0].code;
}

const packageFile = (name: string) => createRequire(import.meta.url).resolve(name);

/**
 * As in Argo CD 3.5, whose React renders later than the script of extensions runs: only the component `App` hears of pages of the
 * sidebar, and nothing is told to it that was registered before it was there.
 */
const document = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><base href="/"><title>Argo CD</title><link rel="icon" href="data:,">
<script src="/react.js"></script></head>
<body><main id="app"></main>
<script>
  window.registered = {};
  let isListening = false;
  class App extends window.React.Component {
    constructor(props) {
      super(props);
      isListening = true;
    }
    render() {
      return this.props.children ?? 'Argo CD';
    }
  }
  const keep = (kind) => (...registration) => { window.registered[kind] = registration; };
  window.extensionsAPI = {
    registerSystemLevelExtension: (...registration) => isListening && keep('system')(...registration),
    registerResourceExtension: keep('resource'),
    registerStatusPanelExtension: keep('status'),
  };
  const root = window.createRoot(document.getElementById('app'));
  const shown = (child) => root.render(window.React.createElement(App, null, child));
  setTimeout(() => shown(null), 100);
  window.render = (kind, props) => shown(window.React.createElement(window.registered[kind][0], props));
</script>
<script src="/extensions.js"></script></body></html>`;
