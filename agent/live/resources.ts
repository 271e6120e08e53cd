import type { HttpResponse, KubeClient, KubeObject } from '../../lib/kube/index.ts';
import {
  isDiscoveryPath,
  type Requirement,
  type ResourcePath,
  type ResourceRequest,
  requirementOf,
  resourcePathOf,
  resourceRequest,
} from '../../lib/live/index.ts';
import type { Logger } from '../../lib/ops/index.ts';
import { agentSource, dataOf, eventTypes, messageEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import { BodyWriter, ReaderGoneError } from './body-writer.ts';
import { type ListDocument, linesOf, shownEvent, shownItems, type WatchLine } from './items.ts';
import type { ManagedObjects } from './managed.ts';
import { Refusal, statusOf } from './refusal.ts';
import type { RequestContext } from './requests.ts';

/** What {@link Resources} works with. */
export interface ResourcesOptions {
  /** For live requests alone: those who keep resources in step must never wait for one. */
  readonly client: KubeClient;
  readonly managed: Pick<ManagedObjects, 'verdictOn' | 'isDestination'>;
  /** `all`: whatever the agent's own rights allow; `managed`: of that, what belongs to Applications. */
  readonly access: 'managed' | 'all';
  readonly logger: Logger;
}

/** Answers up to this go into the event; longer ones would hold up the events behind them. */
const inlineBytes = 64 * 1024;
/** How long the API server may take; principals wait 30 s in all. */
const serverTimeoutMs = 25_000;
const json = 'application/json';
const protobuf = 'application/vnd.kubernetes.protobuf';
const methods: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);

/** A request to the API server of this cluster. */
interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly contentType: string | undefined;
  readonly body: Buffer | undefined;
}

/**
 * Carries out the principal's requests to this cluster's API server, with the agent's own rights and within the rules of
 * {@link requirementOf}. What goes wrong is answered with a `Status`.
 */
export class Resources {
  readonly #options: ResourcesOptions;

  constructor(options: ResourcesOptions) {
    this.#options = options;
  }

  /** Answers one request. */
  async handle(event: WireEvent, context: RequestContext): Promise<void> {
    let request: ResourceRequest | undefined;
    try {
      request = dataOf(event, resourceRequest);
      await this.#carryOut(event.type, request, context);
    } catch (error) {
      if (context.signal.aborted || error instanceof ReaderGoneError) return;
      const [code, text] = statusOf(error);
      if (code >= 500) this.#options.logger.warn({ error, method: event.type }, 'a request for a live resource failed');
      const { uuid = event.eventId, streams = false } = request ?? {};
      answer(context, { uuid, streams }, code, text, json);
    }
  }

  async #carryOut(method: string, request: ResourceRequest, context: RequestContext): Promise<void> {
    if (!methods.has(method)) throw new Refusal(405, `${method} is not served by the resource proxy`);
    const { signal } = context;
    if (request.document !== undefined || request.resource === '') {
      if (method !== 'GET') throw new Refusal(405, `${method} is not served for what the API server offers`);
      return this.#discover(request, context);
    }
    const path: ResourcePath = request;
    const call: Call = { ...callOf(method as Call['method'], request), path: pathOf(path) };
    const isWatch = isTrue(call.query.get('watch'));
    const requirement = requirementOf({ method, path, isWatch });
    if (typeof requirement === 'object') throw new Refusal(403, requirement.refused);
    if (isWatch && !request.streams) {
      throw new Refusal(501, 'this principal cannot pass on a watch: it needs an answer of one piece');
    }
    const isFiltered = this.#options.access === 'managed' && requirement === 'items';
    if (!isFiltered) {
      await this.#require(requirement, path, signal);
      return this.#pass(call, request, context, isWatch);
    }
    const asked = { ...call, accept: withoutProtobuf(call.accept) };
    // The rows of a Table say whose they are only with their objects.
    if (/as=Table/.test(asked.accept)) asked.query.set('includeObject', 'Object');
    if (isWatch) return this.#watch(asked, request, context);
    const response = await this.#send(asked, signal);
    const document = await shownItems(parsed<ListDocument>(await response.body.text()), (object) =>
      this.#shows(object, signal),
    );
    const body = Buffer.from(JSON.stringify(document));
    await this.#answerWith(response.status, contentTypeOf(response), body, request, context);
  }

  /** What the API server offers: nobody's objects. */
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
      return this.#answerWith(200, json, body, request, context);
    }
    const path = document ?? (group === '' ? `/api/${version}` : `/apis/${group}/${version}`);
    if (!isDiscoveryPath(path)) throw new Refusal(404, 'the path is not served by the resource proxy');
    return this.#pass({ ...call, path: path.replace(/(?<=.)\/$/, '') }, request, context, false);
  }

  /** @throws Refusal when the rule does not hold */
  async #require(requirement: Requirement, path: ResourcePath, signal: AbortSignal): Promise<void> {
    if (this.#options.access === 'all') return;
    const { namespace, resource, name } = path;
    if (requirement === 'destination') {
      if (namespace !== '' && this.#options.managed.isDestination(namespace)) return;
      const where = namespace === '' ? 'outside of namespaces' : `in namespace ${namespace}`;
      throw new Refusal(403, `nothing may be created ${where}: no Application of this cluster deploys there`);
    }
    const parent = pathOf({ ...path, subresource: '' });
    const response = await this.#send(
      {
        method: 'GET',
        path: parent,
        query: new URLSearchParams(),
        accept: json,
        contentType: undefined,
        body: undefined,
      },
      signal,
    );
    const { isManaged, hindrance } = await this.#options.managed.verdictOn(
      parsed<KubeObject>(await response.body.text()),
      signal,
    );
    if (isManaged) return;
    const which = `${resource} "${namespace === '' ? '' : `${namespace}/`}${name}"`;
    const why = hindrance === undefined ? '' : ` (${hindrance})`;
    throw new Refusal(403, `${which} belongs to no Application of this cluster${why}`);
  }

  async #shows(object: KubeObject, signal: AbortSignal): Promise<boolean> {
    return (await this.#options.managed.verdictOn(object, signal)).isManaged;
  }

  /** Passes an answer on as it comes. */
  async #pass(call: Call, request: ResourceRequest, context: RequestContext, isEndless: boolean): Promise<void> {
    const response = await this.#send(call, context.signal, isEndless);
    const contentType = contentTypeOf(response);
    if (!request.streams) {
      answer(context, request, response.status, await response.body.text(), contentType);
      return;
    }
    // Short answers of one piece travel with the event, everything else by itself.
    const parts: Uint8Array[] = [];
    let length = 0;
    const isText = contentType.startsWith(json);
    const iterator = response.body[Symbol.asyncIterator]();
    while (!isEndless && isText && length <= inlineBytes) {
      const { done, value } = await iterator.next();
      if (done) {
        answer(context, request, response.status, Buffer.concat(parts).toString('utf8'), contentType);
        return;
      }
      parts.push(value);
      length += value.length;
    }
    async function* whole() {
      yield* parts;
      yield* { [Symbol.asyncIterator]: () => iterator };
    }
    await this.#stream(response.status, contentType, whole(), request, context);
  }

  async #watch(call: Call, request: ResourceRequest, context: RequestContext): Promise<void> {
    const response = await this.#send(call, context.signal, true);
    const shows = (object: KubeObject) => this.#shows(object, context.signal);
    async function* shown() {
      for await (const line of linesOf(response.body)) {
        const event = line.trim() === '' ? undefined : await shownEvent(parsed<WatchLine>(line), shows);
        if (event !== undefined) yield Buffer.from(`${JSON.stringify(event)}\n`);
      }
    }
    await this.#stream(response.status, contentTypeOf(response), shown(), request, context);
  }

  async #answerWith(
    status: number,
    contentType: string,
    body: Buffer,
    request: ResourceRequest,
    context: RequestContext,
  ): Promise<void> {
    if (request.streams && body.length > inlineBytes) {
      await this.#stream(status, contentType, [body], request, context);
    } else {
      answer(context, request, status, body.toString('utf8'), contentType);
    }
  }

  async #stream(
    status: number,
    contentType: string,
    body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    { uuid }: ResourceRequest,
    { answer: send, live, signal, abandon }: RequestContext,
  ): Promise<void> {
    const writer = await BodyWriter.open(live, uuid, signal, abandon);
    const payload = { uuid, status, contentType, streamed: true };
    send(messageEvent(targets.resource, eventTypes.response, payload, { source: agentSource }, { eventId: uuid }));
    try {
      for await (const chunk of body) await writer.write(chunk);
      writer.end();
    } catch (error) {
      if (error instanceof ReaderGoneError || signal.aborted) return;
      writer.end((error as Error).message);
    }
  }

  #send(call: Call, signal: AbortSignal, isEndless = false): Promise<HttpResponse> {
    const { method, path, query, accept, contentType, body } = call;
    const text = query.toString();
    return this.#options.client.request(text === '' ? path : `${path}?${text}`, {
      method,
      headers: { accept, ...(contentType === undefined ? {} : { 'content-type': contentType }) },
      ...(body === undefined ? {} : { body }),
      signal,
      timeoutMs: isEndless ? 0 : serverTimeoutMs,
    });
  }
}

function answer(
  context: RequestContext,
  { uuid, streams = false }: Pick<ResourceRequest, 'uuid' | 'streams'>,
  status: number,
  resource: string,
  contentType: string,
): void {
  // A principal of the original takes 200 alone for success.
  const code = streams || status >= 300 ? status : 200;
  const payload = { uuid, status: code, ...(resource === '' ? {} : { resource }), contentType };
  context.answer(
    messageEvent(targets.resource, eventTypes.response, payload, { source: agentSource }, { eventId: uuid }),
  );
}

/** The call without its path, from what the principal sent: all of it when it is one of ours. */
function callOf(method: Call['method'], { query, params, headers, body }: ResourceRequest): Omit<Call, 'path'> {
  const search = new URLSearchParams(query ?? params);
  const isPatch = method === 'PATCH';
  // The key by which argocd-agent's agents can be told the kind of a patch; it is not for the API server.
  const typed = params['content-type'];
  if (query === undefined) search.delete('content-type');
  const contentType = headers?.['content-type'] ?? (isPatch ? (typed ?? 'application/merge-patch+json') : json);
  return {
    method,
    query: search,
    accept: headers?.accept ?? json,
    contentType: body === undefined ? undefined : contentType,
    body,
  };
}

function pathOf(path: ResourcePath): string {
  try {
    return resourcePathOf(path);
  } catch (cause) {
    throw new Refusal(400, (cause as Error).message);
  }
}

/** What `GET /api` and `GET /apis` say, as one list of groups: argocd-agent's agents answer both with it. */
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

function withoutProtobuf(accept: string): string {
  const rest = accept
    .split(',')
    .filter((type) => !type.trim().startsWith(protobuf))
    .join(',');
  if (rest.trim() === '') throw new Refusal(406, 'lists and watches are answered as JSON or as a Table only');
  return rest;
}

function isTrue(text: string | null): boolean {
  return text !== null && /^(1|t|true)$/i.test(text);
}
