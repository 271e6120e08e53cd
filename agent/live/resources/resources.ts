import type { Logger } from '../../../lib/base/index.ts';
import { type HttpResponse, isNotFound, type KubeClient, type KubeObject } from '../../../lib/kube/index.ts';
import {
  asksToFollow,
  asksToWatch,
  BufferSweep,
  impersonatedType,
  isDiscoveryPath,
  type ResourcePath,
  type ResourceRequest,
  requirementOf,
  resourcePathOf,
  resourceRequest,
} from '../../../lib/live/index.ts';
import { agentSource, dataOf, eventTypes, messageEvent, targets, type WireEvent } from '../../../lib/wire/index.ts';
import { BodyWriter, ReaderGoneError } from '../body-writer.ts';
import type { ManagedObjects } from '../managed/managed-objects.ts';
import { RequestRefusedError, statusOf } from '../refusal.ts';
import type { RequestContext } from '../requests.ts';
import { linesOf, type RowObjects, type Shows, shownLine, shownList } from './items.ts';

/** Counts requests for live resources. */
export interface ResourceMetrics {
  request(): void;
  /** A request was answered with an error, of the API server or the agent. */
  failed(): void;
}

/** What {@link Resources} works with. */
export interface ResourcesOptions {
  /** For live requests alone: those who keep resources in step must never wait for one. */
  readonly client: KubeClient;
  readonly managed: Pick<ManagedObjects, 'verdictOn' | 'visibilityOf' | 'wasVisible' | 'isDestination'>;
  /** `all`: whatever the agent's own rights allow; `managed`: of that, what belongs to Applications. */
  readonly access: 'managed' | 'all';
  /** Whether an Application of this cluster lets Argo CD act as this user. */
  readonly mayActAs: (user: string) => boolean;
  /** Counts requests, and those that were answered with an error. */
  readonly metrics: ResourceMetrics;
  readonly logger: Logger;
}

/** Answers up to this go into the event; longer ones would hold up the events behind them. */
const inlineBytes = 64 * 1024;
/** Pieces of a longer answer are put together to at least this: each one that is sent costs, on both sides. */
const gatheredBytes = 48 * 1024;
/** How long the API server may take; principals wait 30 s in all. */
const serverTimeoutMs = 25_000;
const json = 'application/json';
const applyPatch = 'application/apply-patch';
/** How objects are read that are only looked at. */
const plain = { accept: json, contentType: undefined, body: undefined, user: undefined } as const;
const methods: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** A request to the API server of this cluster. */
interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly contentType: string | undefined;
  readonly body: Buffer | undefined;
  /** As whom the API server executes it; undefined: as the agent. */
  readonly user: string | undefined;
}

/**
 * Executes the principal's requests to this cluster's API server, within the rules of {@link requirementOf}: with the agent's own
 * rights, or with those of a service account that an AppProject names for an Application. Errors are answered with a `Status`.
 */
export class Resources {
  readonly #options: ResourcesOptions;
  readonly #sweep = new BufferSweep();

  constructor(options: ResourcesOptions) {
    this.#options = options;
  }

  /** Answers one request. */
  async handle(event: WireEvent, context: RequestContext): Promise<void> {
    let request: ResourceRequest | undefined;
    this.#options.metrics.request();
    try {
      request = dataOf(event, resourceRequest);
      await this.#carryOut(this.#methodOf(event.type, request), request, context);
    } catch (error) {
      if (context.signal.aborted || error instanceof ReaderGoneError) {
        return;
      }
      this.#options.metrics.failed();
      const [code, text] = statusOf(error);
      if (code >= 500) {
        this.#options.logger.warn({ error, method: event.type }, 'a request for a live resource failed');
      }
      answer(context, request ?? { uuid: event.eventId }, code, text, json);
    }
  }

  /**
   * The HTTP method of a request.
   * @throws RequestRefusedError when it is to be executed as a user that the agent may not act as
   */
  #methodOf(type: string, { impersonated }: ResourceRequest): string {
    if ((type === impersonatedType) !== (impersonated !== undefined)) {
      throw new RequestRefusedError(400, 'the type of the request and its user do not match');
    }
    if (impersonated === undefined) {
      return type;
    }
    const { user, method } = impersonated;
    if (!this.#options.mayActAs(user)) {
      throw new RequestRefusedError(
        403,
        `${user} may not be impersonated: no AppProject on this cluster names it in destinationServiceAccounts for one of its Applications`,
      );
    }
    return method;
  }

  async #carryOut(method: string, request: ResourceRequest, context: RequestContext): Promise<void> {
    if (!methods.has(method)) {
      throw new RequestRefusedError(405, `${method} is not served by the resource proxy`);
    }
    const { signal } = context;
    if (request.document !== undefined || request.resource === '') {
      if (method !== 'GET') {
        throw new RequestRefusedError(405, `${method} is not served for what the API server offers`);
      }
      return this.#discover(request, context);
    }
    const path: ResourcePath = request;
    const call: Call = { ...callOf(method as Call['method'], request), path: pathOf(path) };
    const requirement = requirementOf({ method, path });
    if (typeof requirement === 'object') {
      throw new RequestRefusedError(403, requirement.refused);
    }
    const isWatch = requirement === 'items' && asksToWatch(call.query);
    if (isWatch && !request.streams) {
      throw new RequestRefusedError(501, 'this principal cannot pass on a watch: it needs an answer of one piece');
    }
    const isEndless = isWatch || asksToFollow(path, call.query);
    const { access } = this.#options;
    if (access === 'all' || requirement === 'nothing') {
      return this.#pass(call, request, context, isEndless);
    }
    if (requirement === 'items') {
      return this.#passShown(call, request, context, isWatch);
    }
    if (requirement === 'destination') {
      this.#requireDestination(path);
    } else {
      const object = await this.#requireOwn(requirement, path, call, signal);
      // It has just been read, with the agent's own rights.
      if (object !== undefined && call.user === undefined && method === 'GET' && isPlainObject(path, call)) {
        return this.#reply(200, json, [Buffer.from(object)], request, context);
      }
    }
    return this.#pass(call, request, context, isEndless);
  }

  /** Discovery: responses without objects. */
  async #discover(request: ResourceRequest, context: RequestContext): Promise<void> {
    const { document, group, version } = request;
    const call = callOf('GET', request);
    if (document === undefined && version === '') {
      const groups = parsed(
        await (await this.#send({ ...call, path: '/apis', accept: json }, context.signal)).body.text(),
      );
      const core = parsed(
        await (await this.#send({ ...call, path: '/api', accept: json }, context.signal)).body.text(),
      );
      const body = Buffer.from(JSON.stringify(mergedGroups(groups, core)));
      return this.#reply(200, json, [body], request, context);
    }
    const path = document ?? (group === '' ? `/api/${version}` : `/apis/${group}/${version}`);
    if (!isDiscoveryPath(path)) {
      throw new RequestRefusedError(404, 'the path is not served by the resource proxy');
    }
    return this.#pass({ ...call, path: path.replace(/(?<=.)\/$/, '') }, request, context, false);
  }

  /** @throws RequestRefusedError when no Application deploys into the namespace */
  #requireDestination({ namespace }: ResourcePath): void {
    if (namespace !== '' && this.#options.managed.isDestination(namespace)) {
      return;
    }
    const where = namespace === '' ? 'outside of namespaces' : `in namespace ${namespace}`;
    throw new RequestRefusedError(403, `nothing may be created ${where}: no Application of this cluster deploys there`);
  }

  /**
   * The JSON of the object that a request is about; undefined when server-side apply is to create it.
   * @throws RequestRefusedError when it may not be seen, or changed; ApiError when it cannot be read
   */
  async #requireOwn(
    requirement: 'visible' | 'managed',
    path: ResourcePath,
    call: Call,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { managed } = this.#options;
    const question = {
      method: 'GET',
      path: pathOf({ ...path, subresource: '' }),
      query: plainQuery(call),
      ...plain,
    } as const;
    let text: string;
    try {
      text = await (await this.#send(question, signal)).body.text();
    } catch (error) {
      const isApply = call.method === 'PATCH' && path.subresource === '' && call.contentType?.startsWith(applyPatch);
      if (!isApply || !isNotFound(error)) {
        throw error;
      }
      this.#requireDestination(path);
      return undefined;
    }
    const object = parsed<KubeObject>(text);
    const { isManaged, hindrance } =
      requirement === 'visible' ? await managed.visibilityOf(object, signal) : await managed.verdictOn(object, signal);
    if (isManaged) {
      return text;
    }
    const { namespace, resource, name } = path;
    const which = `${resource} "${namespace === '' ? '' : `${namespace}/`}${name}"`;
    const why = hindrance === undefined ? '' : ` (${hindrance})`;
    throw new RequestRefusedError(403, `${which} belongs to no Application of this cluster${why}`);
  }

  /** Passes on what may be shown of a list or a watch, as it comes. */
  async #passShown(call: Call, request: ResourceRequest, context: RequestContext, isWatch: boolean): Promise<void> {
    const asked = { ...call, accept: jsonOnly(call.accept), query: new URLSearchParams(call.query) };
    let rowObjects: RowObjects = 'Metadata';
    // The owner of a Table's row is known only from its object.
    if (/as=Table/.test(asked.accept)) {
      const wanted = asked.query.get('includeObject');
      if (wanted === 'None' || wanted === 'Object') {
        rowObjects = wanted;
      }
      asked.query.set('includeObject', 'Object');
    }
    const { signal } = context;
    const response = await this.#send(asked, signal, isWatch);
    const { managed } = this.#options;
    const shows: Shows = (object, isLast) => {
      if (isLast && managed.wasVisible(object)) {
        return true;
      }
      const verdict = managed.visibilityOf(object, signal);
      return verdict instanceof Promise ? verdict.then(({ isManaged }) => isManaged) : verdict.isManaged;
    };
    async function* shownLines() {
      for await (const line of linesOf(response.body)) {
        const shown = line.trim() === '' ? undefined : await shownLine(line, shows, rowObjects);
        if (shown !== undefined) {
          yield Buffer.from(`${shown}\n`);
        }
      }
    }
    const body = isWatch ? shownLines() : shownList(response.body, shows, rowObjects);
    await this.#reply(response.status, contentTypeOf(response), body, request, context, isWatch);
  }

  /** Passes an answer on as it comes. */
  async #pass(call: Call, request: ResourceRequest, context: RequestContext, isEndless: boolean): Promise<void> {
    const response = await this.#send(call, context.signal, isEndless);
    await this.#reply(response.status, contentTypeOf(response), response.body, request, context, isEndless);
  }

  /** Short answers travel with the event, everything else by itself, as it comes. */
  async #reply(
    status: number,
    contentType: string,
    body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    request: ResourceRequest,
    context: RequestContext,
    isEndless = false,
  ): Promise<void> {
    if (status >= 400) {
      this.#options.metrics.failed();
    }
    const parts: Uint8Array[] = [];
    let length = 0;
    const pieces = piecesOf(body);
    const mustFit = !request.streams;
    while (mustFit || (!isEndless && contentType.startsWith(json) && length <= inlineBytes)) {
      const { done, value } = await pieces.next();
      if (done) {
        answer(context, request, status, Buffer.concat(parts).toString('utf8'), contentType);
        return;
      }
      parts.push(value);
      length += value.length;
    }
    async function* whole() {
      yield* parts;
      yield* pieces;
    }
    const all = isEndless ? whole() : gathered(whole(), gatheredBytes);
    await this.#stream(status, contentType, all, request, context);
  }

  async #stream(
    status: number,
    contentType: string,
    body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    { uuid, impersonated }: ResourceRequest,
    context: RequestContext,
  ): Promise<void> {
    const { answer: send, signal } = context;
    const writer = await BodyWriter.open(uuid, context, this.#sweep);
    const payload = { uuid, status, contentType, streamed: true, ...(impersonated && { impersonated: true }) };
    send(messageEvent(targets.resource, eventTypes.response, payload, { source: agentSource }, { eventId: uuid }));
    try {
      for await (const chunk of body) {
        await writer.write(chunk);
      }
      writer.end();
    } catch (error) {
      if (error instanceof ReaderGoneError || signal.aborted) {
        return;
      }
      writer.end((error as Error).message);
    }
  }

  #send(call: Call, signal: AbortSignal, isEndless = false): Promise<HttpResponse> {
    const { method, path, query, accept, contentType, body, user } = call;
    const text = query.toString();
    return this.#options.client.request(text === '' ? path : `${path}?${text}`, {
      method,
      headers: {
        accept,
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
        ...(user === undefined ? {} : { 'impersonate-user': user }),
      },
      ...(body === undefined ? {} : { body }),
      signal,
      timeoutMs: isEndless ? 0 : serverTimeoutMs,
    });
  }
}

function answer(
  context: RequestContext,
  { uuid, streams = false, impersonated }: Pick<ResourceRequest, 'uuid' | 'streams' | 'impersonated'>,
  status: number,
  resource: string,
  contentType: string,
): void {
  // A principal of the original takes 200 alone for success.
  const code = streams || status >= 300 ? status : 200;
  const payload = {
    uuid,
    status: code,
    ...(resource === '' ? {} : { resource }),
    contentType,
    ...(impersonated === undefined ? {} : { impersonated: true }),
  };
  context.answer(
    messageEvent(targets.resource, eventTypes.response, payload, { source: agentSource }, { eventId: uuid }),
  );
}

/** The request without its path. Only principals of this project send all parts of it. */
function callOf(
  method: Call['method'],
  { query, params, headers, body, impersonated }: ResourceRequest,
): Omit<Call, 'path'> {
  const search = new URLSearchParams(query ?? params);
  const isPatch = method === 'PATCH';
  // This key names the kind of a patch for agents of argocd-agent. It is not for the API server.
  const typed = params['content-type'];
  if (query === undefined) {
    search.delete('content-type');
  }
  const contentType = headers?.['content-type'] ?? (isPatch ? (typed ?? 'application/merge-patch+json') : json);
  return {
    method,
    query: search,
    accept: headers?.accept ?? json,
    contentType: body === undefined ? undefined : contentType,
    body,
    user: impersonated?.user,
  };
}

function pathOf(path: ResourcePath): string {
  try {
    return resourcePathOf(path);
  } catch (cause) {
    throw new RequestRefusedError(400, (cause as Error).message);
  }
}

/** The results of `GET /api` and `GET /apis` as one list of groups, with which argocd-agent's agents answer both. */
function mergedGroups(groups: { groups?: object[] }, core: { versions?: string[] }): object {
  const versions = (core.versions ?? []).map((version) => ({ groupVersion: version, version }));
  const own = { name: '', versions, preferredVersion: versions[0] ?? { groupVersion: '', version: '' } };
  return { ...groups, groups: [own, ...(groups.groups ?? [])] };
}

/** An answer of the API server, whose form its path promises. */
function parsed<T extends object>(text: string): T {
  return JSON.parse(text) as T;
}

function contentTypeOf({ headers }: HttpResponse): string {
  return headers['content-type'] ?? json;
}

/** Of what is accepted, that which can be looked into. */
function jsonOnly(accept: string): string {
  const types = accept.split(',').filter((type) => /^\s*(application\/json|application\/\*|\*\/\*)\s*(;|$)/.test(type));
  if (types.length === 0) {
    throw new RequestRefusedError(406, 'lists and watches are answered as JSON or as a Table only');
  }
  return types.map((type) => type.replace(/(application\/|\*\/)\*/, json)).join(',');
}

/** Whether a request asks for nothing but an object as it is. */
function isPlainObject({ subresource }: ResourcePath, { accept, query }: Call): boolean {
  const isSame = [...query.keys()].every((key) => key === 'resourceVersion' || key === 'agentName');
  return isSame && subresource === '' && /^\s*(application\/json|\*\/\*)\s*(,|$)/.test(accept);
}

/** Of the query of a GET, what changes how the object is read. */
function plainQuery({ method, query }: Call): URLSearchParams {
  const asked = new URLSearchParams();
  const version = method === 'GET' ? query.get('resourceVersion') : null;
  if (version !== null) {
    asked.set('resourceVersion', version);
  }
  return asked;
}

/** The same bytes in pieces of at least this length; those that are long enough are passed on as they are. */
async function* gathered(pieces: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let held = 0;
  for await (const piece of pieces) {
    if (held === 0 && piece.length >= length) {
      yield piece;
      continue;
    }
    parts.push(piece);
    held += piece.length;
    if (held < length) {
      continue;
    }
    yield Buffer.concat(parts);
    parts = [];
    held = 0;
  }
  if (held > 0) {
    yield Buffer.concat(parts);
  }
}

async function* piecesOf(body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* body;
}
