import type { ServerResponse } from 'node:http';
import { after, BoundedMap, type Logger } from '../../lib/base/index.ts';
import type { ExtensionCaller } from './access/extension-callers.ts';
import type { PageAccess } from './access/page-access.ts';
import type { PageViewer } from './access/page-viewers.ts';
import { TokenRefusedError } from './access/session-tokens.ts';
import { streamCluster, streamOverview } from './fleet-streams.ts';
import type { FleetLens } from './model/fleet-lens.ts';
import { readPageAssets } from './page-assets.ts';
import type { PageLenses } from './page-lenses.ts';
import { type PageAnswer, type PageRequest, readyAnswer } from './page-server.ts';
import { clusterPage, clusterRegions, type ListedApplications } from './view/cluster-page.ts';
import { type ApplicationWay, clusterData, totalsData, wayData } from './view/extension-data.ts';
import type { SafeHtml } from './view/html.ts';
import { page } from './view/layout.ts';
import { forbiddenNotice, notFoundNotice, signInNotice } from './view/notices.ts';
import { overview, overviewContent } from './view/overview.ts';
import { pageQuery } from './view/page-query.ts';
import type { ViewerStream } from './viewer-stream.ts';

/** Streams at once, of all viewers and of one. */
const mostStreams = 200;
const mostStreamsOfOne = 20;
/** How often it is looked at whether a viewer who stays may still see what they see. */
const recheckMs = 60_000;
/** The same after a change of accounts or rights, at most so often: whoever may edit one AppProject makes such changes. */
const reviewMs = 5_000;
/** Questions about Applications that the API server is asked at once. */
const mostQuestions = 20;

/** Slashes in a path; our own have two. Links of a page lead back by as many steps. */
const mostSlashes = 8;
/** Pages for strangers that are kept: they differ by how deep the path is alone. */
const mostStrangerPages = 16;

const assets = readPageAssets();

/** What {@link FleetPage} shows, and to whom. */
export interface FleetPageOptions {
  readonly access: PageAccess;
  readonly lenses: PageLenses;
  /** The Applications of an agent that a viewer may see. */
  readonly applications: (agent: string, viewer: PageViewer) => ListedApplications;
  /** Where the change of an Application is; undefined when there is none of this project. */
  readonly way: (application: ExtensionCaller['application']) => Promise<ApplicationWay | undefined>;
  /** The path at which it is served, with slashes at both ends. */
  readonly path: string;
  /** Where people log in, if Argo CD's own settings do not say it. */
  readonly loginUrl: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** A stream, and whether its viewer may still see what they see. */
interface OpenStream {
  readonly name: string;
  readonly isAllowed: () => boolean | Promise<boolean>;
}

/** The pages of the fleet and their streams. It changes nothing, and shows nothing to anybody who has not proved who they are. */
export class FleetPage {
  readonly #options: FleetPageOptions;
  readonly #streams = new Map<ViewerStream, OpenStream>();
  #reviewedAt = Number.NEGATIVE_INFINITY;
  #isReviewDue = false;
  #questions = 0;
  /** By name: each is made once, and sent as it is to whoever asks. */
  readonly #assets: ReadonlyMap<string, { readonly fresh: PageAnswer; readonly immutable: PageAnswer }>;
  readonly #strangerPages = new BoundedMap<string, PageAnswer>(mostStrangerPages);

  constructor(options: FleetPageOptions) {
    this.#options = options;
    this.#assets = readyAssets(options.path);
    options.access.onChange(() => this.#reviewSoon());
  }

  /** Whoever may no longer see something does not get any more of it. */
  #reviewSoon(): void {
    if (this.#isReviewDue) {
      return;
    }
    this.#isReviewDue = true;
    const wait = Math.max(0, this.#reviewedAt + reviewMs - performance.now());
    after(
      wait,
      () => {
        this.#isReviewDue = false;
        this.#reviewedAt = performance.now();
        for (const stream of this.#streams.keys()) {
          void this.#review(stream);
        }
      },
      { unref: true },
    );
  }

  /** Ends a stream that its viewer may not have any more; the viewer comes back at once, and gets what they may. */
  async #review(stream: ViewerStream): Promise<void> {
    const isAllowed = await this.#streams.get(stream)?.isAllowed();
    if (isAllowed === false) {
      stream.end(true);
    }
  }

  /** Answers a request; undefined when it has become a stream. */
  async handle(request: PageRequest, response: ServerResponse): Promise<PageAnswer | undefined> {
    const { path, search } = request;
    const asset = this.#assets.get(/^\/assets\/([a-z.-]+)$/.exec(path)?.[1] ?? '');
    if (asset !== undefined) {
      return search === '' ? asset.fresh : asset.immutable;
    }
    if (path.startsWith('/extension/')) {
      return this.#extension(request, response);
    }
    const [, ...steps] = path.split('/');
    if (steps.length > mostSlashes) {
      return plain(404, 'there is nothing here');
    }
    const root = steps
      .map(() => '../')
      .slice(1)
      .join('');
    const viewer = await this.#identify(request);
    if (viewer === undefined) {
      return this.#strangerPage(root);
    }
    const lens = this.#options.lenses.of(viewer);
    if (lens === undefined) {
      return this.#page({ status: 403, title: 'No cluster for you', root, viewer, main: forbiddenNotice(viewer.name) });
    }
    if (path === '/') {
      const query = pageQuery(search);
      const events = `events?view=${query.view}&since=${lens.model.revision}`;
      return this.#page({ status: 200, title: titleOf(lens), root, viewer, events, main: overview(lens, query) });
    }
    if (path === '/events') {
      return this.#stream(request, response, viewer, lens);
    }
    const agent = decoded(/^\/clusters\/([^/]{1,400})$/.exec(path)?.[1]);
    const cluster = agent === undefined ? undefined : lens.get(agent);
    if (agent === undefined || cluster === undefined) {
      return this.#page({ status: 404, title: 'Not here', root, viewer, main: notFoundNotice(root) });
    }
    const list = this.#options.applications(agent, viewer);
    const events = `../events?cluster=${encodeURIComponent(agent)}`;
    const title = `${cluster.facts.title} · Fleet`;
    return this.#page({ status: 200, title, root, viewer, events, main: clusterPage(cluster, list) });
  }

  async #identify({ caller }: Pick<PageRequest, 'caller'>): Promise<PageViewer | undefined> {
    try {
      return await this.#options.access.identify(caller);
    } catch (error) {
      if (!(error instanceof TokenRefusedError)) {
        throw error;
      }
      this.#options.logger.debug(
        { address: caller.address, reason: error.message },
        'a viewer of the fleet page is not known',
      );
      return undefined;
    }
  }

  /** What whoever has not said who they are gets, whatever they ask for. */
  #strangerPage(root: string): PageAnswer {
    const loginUrl = this.#options.loginUrl || this.#options.access.loginUrl;
    const key = JSON.stringify([root, loginUrl]);
    const known = this.#strangerPages.get(key);
    if (known !== undefined) {
      return known;
    }
    const made = this.#page({ status: 401, title: 'Sign in', root, main: signInNotice(loginUrl) });
    const answer = readyAnswer(made);
    this.#strangerPages.set(key, answer);
    return answer;
  }

  #page(made: {
    status: number;
    title: string;
    root: string;
    viewer?: PageViewer;
    events?: string;
    main: SafeHtml;
  }): PageAnswer {
    const { status, title, root, viewer, events, main } = made;
    const digests = { style: assets['fleet.css'].digest, script: assets['fleet.js'].digest };
    const frame = { title, root, viewer: viewer?.name, events, assets: digests, main };
    return { status, type: 'text/html; charset=utf-8', body: page(frame).text };
  }

  /** Answers Argo CD's server, which has checked who asks and what they may see. */
  async #extension(request: PageRequest, response: ServerResponse): Promise<PageAnswer | undefined> {
    const { access, lenses, way } = this.#options;
    const caller = access.extensionCaller(request);
    if (caller === undefined) {
      return plain(401, 'only Argo CD itself may ask here, by its proxy extension');
    }
    if (request.path === '/extension/clusters' && caller.extension === 'clusters') {
      const { project } = caller.application;
      const decided = access.rightsIn(project);
      // Argo CD decides, by these rights and its key. It looks again when the stream is asked for again.
      const isAllowed = () => access.rightsIn(project) === decided && access.extensionCaller(request) !== undefined;
      return this.#startStream({ name: `extension ${caller.user}`, isAllowed }, response, (signal) => {
        const lens = lenses.whole;
        const content = { entry: clusterData, regions: { totals: () => totalsData(lens) } };
        const stream = streamOverview({ response, lens, content, since: 'nothing', signal });
        // It is asked for again, and Argo CD looks at the rights again.
        const end = setTimeout(() => stream?.end(true), recheckMs);
        response.once('close', () => clearTimeout(end));
        return stream;
      });
    }
    if (request.path === '/extension/application' && caller.extension === 'application') {
      if (this.#questions >= mostQuestions) {
        return plain(503, 'too many questions at once', { 'retry-after': '5' });
      }
      this.#questions += 1;
      const found = await way(caller.application).finally(() => {
        this.#questions -= 1;
      });
      return found === undefined
        ? plain(404, 'there is no such Application on the hub')
        : { status: 200, type: 'application/json', body: wayData(found, lenses.whole.get(found.agent ?? '')) };
    }
    return plain(404, 'there is nothing here');
  }

  #startStream(
    open: OpenStream,
    response: ServerResponse,
    start: (signal: AbortSignal) => ViewerStream | undefined,
  ): PageAnswer | undefined {
    const own = [...this.#streams.values()].filter(({ name }) => name === open.name).length;
    if (this.#streams.size >= mostStreams || own >= mostStreamsOfOne) {
      return plain(503, 'too many viewers', { 'retry-after': '30' });
    }
    const stream = start(this.#options.signal);
    if (stream === undefined) {
      const body = 'retry: 2000\nevent: reload\ndata: {}\n\n';
      return { status: 200, type: 'text/event-stream; charset=utf-8', body };
    }
    this.#streams.set(stream, open);
    response.once('close', () => this.#streams.delete(stream));
    return undefined;
  }

  #stream(request: PageRequest, response: ServerResponse, viewer: PageViewer, lens: FleetLens): PageAnswer | undefined {
    const given = new URLSearchParams(request.search);
    const agent = given.get('cluster');
    const since = Number(request.header('last-event-id') ?? given.get('since') ?? Number.NaN);
    const regions = () => {
      const cluster = lens.get(agent ?? '');
      return cluster && clusterRegions(cluster, this.#options.applications(agent ?? '', viewer));
    };
    const view = given.get('view') === 'table' ? 'table' : 'map';
    const isAllowed = () => this.#isSame(request, viewer, lens);
    return this.#startStream({ name: viewer.name, isAllowed }, response, (signal) => {
      const stream =
        agent === null
          ? streamOverview({ response, lens, content: overviewContent(lens, view), since, signal })
          : streamCluster({ response, lens, agent, regions, signal });
      if (stream === undefined) {
        return undefined;
      }
      const recheck = setInterval(() => void this.#review(stream), recheckMs);
      const left = viewer.expires === undefined ? undefined : viewer.expires.getTime() - Date.now();
      // A timer of more than 24 days would end at once.
      const expiry = left === undefined || left > 2 ** 31 - 1 ? undefined : setTimeout(() => stream.end(true), left);
      response.once('close', () => {
        clearInterval(recheck);
        clearTimeout(expiry);
      });
      return stream;
    });
  }

  /** Whether a viewer is still known, and may see the same clusters. */
  async #isSame(request: PageRequest, viewer: PageViewer, lens: FleetLens): Promise<boolean> {
    const now = await this.#identify(request).catch(() => undefined);
    if (now?.name !== viewer.name || this.#options.lenses.of(now) !== lens) {
      return false;
    }
    lens.rightsChanged();
    return true;
  }
}

function readyAssets(
  path: string,
): ReadonlyMap<string, { readonly fresh: PageAnswer; readonly immutable: PageAnswer }> {
  return new Map(
    Object.entries(assets).map(([name, { type, body }]) => {
      const text = name === 'extension-fleet.js' ? body.toString().replace('{{path}}', path) : body;
      const ready = readyAnswer({ status: 200, type, body: text });
      const kept = (how: string) => ({ ...ready, headers: { 'cache-control': `public, ${how}` } });
      return [name, { fresh: kept('max-age=300'), immutable: kept('max-age=31536000, immutable') }];
    }),
  );
}

function plain(status: number, text: string, headers: Readonly<Record<string, string>> = {}): PageAnswer {
  return { status, type: 'text/plain; charset=utf-8', body: `${text}\n`, headers };
}

function titleOf({ totals }: FleetLens): string {
  return `${totals.states.get('ready') ?? 0} of ${totals.clusters} ready · Fleet`;
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
