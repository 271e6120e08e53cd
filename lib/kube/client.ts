import type { WebSocket } from 'ws';
import { jsonPatchOf, type MergePatch, needsJsonPatch, parseJson, TokenBucket } from '../base/index.ts';
import { AnswerListeners } from './answer-listeners.ts';
import type {
  ClientOptions,
  DeleteOptions,
  ListOptions,
  ListPage,
  MetadataOnly,
  RawRequest,
  RequestOptions,
  WriteOptions,
} from './client-options.ts';
import { Discovery } from './discovery.ts';
import { errorOfStalePatch, errorOfUnservedKind, isInvalid, isNotFound } from './errors.ts';
import { collectionPath, objectPath, withQuery } from './paths.ts';
import { ConnectionPool, type HttpRequest, type HttpResponse } from './transport/connection.ts';
import { Credentials } from './transport/credentials.ts';
import { contextFromEnvironment, contextFromFile, contextInCluster, type KubeContext } from './transport/kubeconfig.ts';
import { Reachability } from './transport/reachability.ts';
import { type RepeatableRequest, type Send, sendWithRetries } from './transport/retries.ts';
import { WatchConnections } from './transport/watch-connections.ts';
import { openWebSocket } from './transport/web-socket.ts';
import { apiVersionOf, type KubeObject, type ObjectKey, type ResourceType } from './types.ts';
import { readWatch, type WatchEvent } from './watch.ts';

const silentWatchMs = 75_000;
const jsonType = 'application/json';
const metadataType = `${jsonType};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`;
const metadataListType = `${jsonType};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`;

/**
 * A client of one API server. Methods throw ApiError when the server refuses, ConnectionError when no answer comes,
 * the signal's reason when aborted.
 *
 * Requests that the server rejected unprocessed (429) are repeated, whatever their method, after the time that it
 * asks for; requests that never reached the server or that are safe to repeat (reads, server-side apply) are repeated
 * when the connection breaks. Nothing else is repeated here: the caller's work queue retries.
 */
export class KubeClient {
  /** Who hears what the server answers to reads and writes of single objects. Lists and watches are left out. */
  readonly answers = new AnswerListeners();
  readonly #credentials: Credentials;
  readonly #pool: ConnectionPool;
  readonly #watches: WatchConnections;
  readonly #basePath: string;
  readonly #timeoutMs: number;
  readonly #userAgent: string;
  readonly #discovery: Discovery;
  readonly #bucket: TokenBucket | undefined;
  readonly #observe: ClientOptions['observe'];
  readonly #beforeWrite: ClientOptions['beforeWrite'];
  readonly #reachability = new Reachability();

  /** Prefer the static factories. */
  constructor(credentials: Credentials, options: ClientOptions = {}) {
    this.#credentials = credentials;
    this.#pool = new ConnectionPool(credentials, options.maxConnections ?? 64);
    this.#watches = new WatchConnections(credentials, {
      pingIntervalMs: options.pingIntervalMs ?? 3_000,
      pingTimeoutMs: options.pingTimeoutMs ?? 5_000,
      onDead: (reason) => this.#pool.abandon(reason),
    });
    this.#basePath = new URL(credentials.server).pathname.replace(/\/$/, '');
    this.#timeoutMs = options.requestTimeoutMs ?? 35_000;
    this.#userAgent = options.userAgent ?? 'argocd-fleet';
    this.#bucket = options.rate && new TokenBucket(options.rate);
    this.#observe = options.observe;
    this.#beforeWrite = options.beforeWrite;
    this.#discovery = new Discovery((path, signal) => this.#json<unknown>({ method: 'GET', path, signal }));
  }

  /** A client for a kubeconfig file, and a context of it other than the current one. */
  static fromKubeconfig(path: string, context?: string, options?: ClientOptions): KubeClient {
    return new KubeClient(new Credentials(() => contextFromFile(path, context), options?.server), options);
  }

  /** A client for an API server and a user that stand in no kubeconfig. */
  static fromContext(context: KubeContext, options?: ClientOptions): KubeClient {
    return new KubeClient(new Credentials(() => context, options?.server), options);
  }

  /** A client with the pod's own service account. Throws outside of a pod. */
  static inCluster(options?: ClientOptions): KubeClient {
    return new KubeClient(new Credentials(contextInCluster, options?.server), options);
  }

  /** The given kubeconfig, else KUBECONFIG, else the pod's service account, else ~/.kube/config. */
  static load(options: { kubeconfig?: string; context?: string } & ClientOptions = {}): KubeClient {
    return new KubeClient(new Credentials(contextFromEnvironment(options), options.server), options);
  }

  /** URL of the API server. */
  get server(): string {
    return this.#credentials.server;
  }

  /** The namespace of the kubeconfig context or of the pod; undefined when none is set. */
  get namespace(): string | undefined {
    return this.#credentials.namespace;
  }

  /** Reads one object; undefined when it does not exist. */
  async get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey, signal?: AbortSignal): Promise<T | undefined> {
    try {
      const object = await this.#json<T>({ method: 'GET', path: objectPath(type, key), signal });
      this.answers.answered(type, key, object);
      return object;
    } catch (error) {
      if (isNotFound(error)) {
        this.answers.refused(type, key, error);
        return undefined;
      }
      throw error;
    }
  }

  /** Reads all objects of a selection, page by page, consistent as of one moment. */
  async list<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions & RequestOptions & { pageSize?: number } = {},
  ): Promise<T[]> {
    const items: T[] = [];
    let next: string | undefined;
    do {
      const page = await this.listPage(type, { ...options, limit: options.pageSize ?? 500, continue: next });
      for (const item of page.items) {
        items.push(item);
      }
      next = page.continue;
    } while (next);
    return items;
  }

  /** Reads one page of a list. An expired continue token throws an error that `isGone` recognises. */
  async listPage<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions &
      RequestOptions & {
        limit?: number | undefined;
        continue?: string | undefined;
        resourceVersion?: string | undefined;
        /** The items have nothing but their metadata. */
        metadataOnly?: boolean | undefined;
      },
  ): Promise<ListPage<T>> {
    const { namespace, labelSelector, fieldSelector, limit, resourceVersion, signal } = options;
    const path = withQuery(collectionPath(type, namespace), {
      labelSelector,
      fieldSelector,
      limit,
      resourceVersion,
      continue: options.continue,
    });
    const page = await this.#json<{ metadata?: { resourceVersion?: string; continue?: string }; items?: T[] }>({
      method: 'GET',
      path,
      signal,
      ...(options.metadataOnly ? { accept: metadataListType } : {}),
    }).catch((error: unknown) => {
      throw isNotFound(error) ? errorOfUnservedKind(type, error) : error;
    });
    const apiVersion = apiVersionOf(type);
    const items = page.items ?? [];
    for (const item of items) {
      // Lists of built-in kinds leave these two out of their items.
      item.apiVersion = apiVersion;
      item.kind = type.kind;
    }
    return {
      items,
      resourceVersion: page.metadata?.resourceVersion ?? '',
      continue: page.metadata?.continue || undefined,
    };
  }

  /**
   * Watches a selection from a resourceVersion on. Resolves when the server has accepted the watch. The events end when
   * the server closes it, throw ApiError on an ERROR event (`isGone`: list again) and ConnectionError when the connection
   * breaks or turns out dead.
   */
  async watch<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions & RequestOptions & { resourceVersion: string; timeoutSeconds?: number },
  ): Promise<AsyncGenerator<WatchEvent<T>, void, undefined>> {
    const { namespace, labelSelector, fieldSelector, resourceVersion, signal } = options;
    const path = withQuery(collectionPath(type, namespace), {
      watch: true,
      allowWatchBookmarks: true,
      timeoutSeconds: options.timeoutSeconds ?? 300,
      resourceVersion,
      labelSelector,
      fieldSelector,
    });
    const response = await this.#sendWithRetries(
      { method: 'GET', path, signal, timeoutMs: this.#timeoutMs },
      (request) => this.#sendWatch(request),
    );
    return readWatch<T>(`watch ${type.plural}`, response.body);
  }

  /** Creates an object. Throws AlreadyExists when the name is taken. */
  create<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    options: WriteOptions & MetadataOnly,
  ): Promise<KubeObject>;
  create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: WriteOptions): Promise<T>;
  async create<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    options: WriteOptions & Partial<MetadataOnly> = {},
  ): Promise<KubeObject> {
    const path = collectionPath(type, type.namespaced ? requiredNamespace(type, object) : undefined);
    return this.#write(type, { method: 'POST', path, body: withKind(type, object) }, options);
  }

  /**
   * Replaces an object (PUT). With `metadata.resourceVersion` set, a change by someone else since is a Conflict;
   * without it the object is overwritten.
   */
  async replace<T extends KubeObject>(type: ResourceType<T>, object: T, options: WriteOptions = {}): Promise<T> {
    const path = objectPath(type, object.metadata, options.subresource);
    return this.#write(type, { method: 'PUT', path, body: withKind(type, object) }, options);
  }

  /**
   * Server-side apply: the fields given become ours, fields given before and now missing are removed. Fields that
   * another manager owns are a Conflict unless `force`.
   */
  async apply<T extends KubeObject>(
    type: ResourceType<T>,
    object: Partial<T> & Pick<T, 'metadata'>,
    options: WriteOptions & { fieldManager: string; force?: boolean },
  ): Promise<T> {
    const { managedFields: _, ...metadata } = object.metadata;
    return this.#write(
      type,
      {
        method: 'PATCH',
        path: objectPath(type, object.metadata, options.subresource),
        contentType: 'application/apply-patch+yaml',
        body: withKind(type, { ...object, metadata }),
        idempotent: true,
      },
      options,
      { force: options.force },
    );
  }

  /** JSON merge patch (RFC 7386): null removes a field, lists are replaced whole. */
  mergePatch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: object,
    options: WriteOptions & MetadataOnly,
  ): Promise<KubeObject>;
  mergePatch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: object,
    options?: WriteOptions,
  ): Promise<T>;
  async mergePatch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: object,
    options: WriteOptions & Partial<MetadataOnly> = {},
  ): Promise<KubeObject> {
    const path = objectPath(type, key, options.subresource);
    const request = { method: 'PATCH', path, contentType: 'application/merge-patch+json', body: patch } as const;
    return this.#write(type, request, options);
  }

  /**
   * Carries out a patch of an object: as JSON merge patch, or as JSON Patch (RFC 6902) where that cannot say it. The latter depends
   * on what it was made for, `planned`: it is a Conflict if it does not apply to what the object is now.
   */
  patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: MergePatch,
    options: WriteOptions & MetadataOnly & { readonly planned?: T | undefined },
  ): Promise<KubeObject>;
  patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: MergePatch,
    options?: WriteOptions & { readonly planned?: T | undefined },
  ): Promise<T>;
  async patch<T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: MergePatch,
    options: WriteOptions & Partial<MetadataOnly> & { readonly planned?: T | undefined } = {},
  ): Promise<KubeObject> {
    if (!needsJsonPatch(patch)) {
      return this.mergePatch<T>(type, key, patch, options);
    }
    const planned = options.planned ?? (await this.get(type, key, options.signal));
    const body = jsonPatchOf(planned ?? {}, patch);
    const path = objectPath(type, key, options.subresource);
    try {
      const request = { method: 'PATCH', path, contentType: 'application/json-patch+json', body } as const;
      return await this.#write(type, request, options);
    } catch (error) {
      if (!isInvalid(error)) {
        throw error;
      }
      // The API server answers alike what does not apply and what it refuses.
      const now = await this.get(type, key, options.signal);
      throw now?.metadata.resourceVersion === planned?.metadata.resourceVersion
        ? error
        : errorOfStalePatch(path, error);
    }
  }

  /** Deletes an object; it being gone already is success. Finalizers may keep it for a while after. */
  async delete(type: ResourceType, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds, signal } = options;
    const preconditions = uid || resourceVersion ? { uid, resourceVersion } : undefined;
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions, propagationPolicy, gracePeriodSeconds };
    const path = objectPath(type, key);
    try {
      const request = { method: 'DELETE', path, body, signal, idempotent: uid !== undefined } as const;
      this.answers.answered(type, key, await this.#json<KubeObject>(request));
    } catch (error) {
      this.answers.refused(type, key, error);
      if (!isNotFound(error)) {
        throw error;
      }
    }
  }

  /**
   * Any request, with the body as it arrives (logs, proxied services). Responses of 400 and above throw ApiError. The
   * caller reads or discards the body.
   */
  async request(path: string, init: RawRequest = {}): Promise<HttpResponse> {
    const isRaw = typeof init.body === 'string' || init.body instanceof Uint8Array || init.body === undefined;
    return this.#sendWithRetries({
      method: init.method ?? 'GET',
      path,
      headers: { ...(isRaw ? {} : { 'content-type': jsonType }), ...init.headers },
      body: isRaw ? (init.body as string | Uint8Array | undefined) : JSON.stringify(init.body),
      signal: init.signal,
      timeoutMs: init.timeoutMs ?? this.#timeoutMs,
    });
  }

  /**
   * Opens a WebSocket, for subresources that stream both ways (`pods/exec`, `pods/portforward`). It is paused; its user resumes it when it listens, and
   * closes it. The first of the protocols that the server speaks is spoken.
   */
  async webSocket(path: string, options: RequestOptions & { protocols: readonly string[] }): Promise<WebSocket> {
    const { protocols, signal } = options;
    await this.#bucket?.take(1, signal);
    return openWebSocket(this.#credentials, {
      path: this.#basePath + path,
      protocols,
      signal,
      timeoutMs: this.#timeoutMs,
      headers: { 'user-agent': this.#userAgent },
    });
  }

  /**
   * The resource type of an apiVersion and kind, as the server serves it now; undefined when it does not. Results are
   * cached; a kind that was not found is looked up again, at most once a second.
   */
  async resolve(apiVersion: string, kind: string, signal?: AbortSignal): Promise<ResourceType | undefined> {
    return this.#discovery.resolve(apiVersion, kind, signal);
  }

  /**
   * Waits for a server that could not be reached: true as soon as it answers whatever request of this client, false after `ms` or
   * when aborted. Of many that wait for their next attempt, the first that succeeds wakes all.
   */
  answersAgain(ms: number, signal: AbortSignal): Promise<boolean> {
    return this.#reachability.returns(ms, signal);
  }

  /** Closes all connections; open requests and watches fail. */
  async close(): Promise<void> {
    this.#watches.close();
    await this.#pool.close();
  }

  async #sendWatch(request: HttpRequest): Promise<HttpResponse> {
    const response = await this.#watches.send(request);
    // HTTP/1.1 has no ping. Servers send a bookmark about every minute: longer silence means
    // that the connection is dead.
    return response ?? this.#pool.send({ ...request, timeoutMs: silentWatchMs });
  }

  async #write<T extends KubeObject>(
    type: ResourceType,
    request: Omit<JsonRequest, 'signal'>,
    options: WriteOptions & Partial<MetadataOnly>,
    parameters: Record<string, boolean | undefined> = {},
  ): Promise<T> {
    const path = withQuery(request.path, {
      fieldManager: options.fieldManager,
      // By default the server also searches for unknown fields to warn about them, which parses each body twice. This
      // client ignores warnings, and the server drops such fields either way.
      fieldValidation: 'Ignore',
      dryRun: options.dryRun ? 'All' : undefined,
      ...parameters,
    });
    const object = await this.#json<T>({
      ...request,
      path,
      signal: options.signal,
      idempotent: request.idempotent || options.repeatable === true,
      ...(options.metadataOnly ? { accept: metadataType } : {}),
    });
    if (!options.dryRun && object?.metadata) {
      this.answers.answered(type, object.metadata, object);
    }
    return object;
  }

  async #json<T>(request: JsonRequest): Promise<T> {
    const response = await this.#sendWithRetries({
      method: request.method,
      path: request.path,
      headers: {
        ...(request.accept === undefined ? {} : { accept: request.accept }),
        ...(request.body === undefined ? {} : { 'content-type': request.contentType ?? jsonType }),
      },
      body: request.body === undefined ? undefined : JSON.stringify(request.body),
      signal: request.signal,
      timeoutMs: this.#timeoutMs,
      idempotent: request.idempotent,
    });
    return parseJson(await response.body.text()) as T;
  }

  async #sendWithRetries(request: RepeatableRequest, send: Send = (r) => this.#pool.send(r)): Promise<HttpResponse> {
    const headers = { accept: jsonType, 'user-agent': this.#userAgent, ...request.headers };
    const path = this.#basePath + request.path;
    return sendWithRetries(
      { ...request, path, headers },
      (attempt) => this.#attempt(attempt, send),
      () => this.#credentials.invalidate(),
    );
  }

  /** Sends once, when the rate allows it, and calls the observer. */
  async #attempt(request: HttpRequest, send: Send): Promise<HttpResponse> {
    const waitedSeconds = ((await this.#bucket?.take(1, request.signal)) ?? 0) / 1_000;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      this.#beforeWrite?.();
    }
    const began = performance.now();
    let status = 0;
    try {
      const response = await send(request);
      status = response.status;
      this.#reachability.answered();
      return response;
    } catch (error) {
      this.#reachability.failed(error);
      throw error;
    } finally {
      const seconds = (performance.now() - began) / 1_000;
      const { method, path } = request;
      this.#observe?.({ method, path: path.split('?', 1)[0] ?? '', status, seconds, waitedSeconds });
    }
  }
}

interface JsonRequest {
  method: HttpRequest['method'];
  path: string;
  contentType?: string;
  accept?: string;
  body?: unknown;
  signal?: AbortSignal | undefined;
  idempotent?: boolean;
}

function withKind<T extends KubeObject>(type: ResourceType<T>, object: object): object {
  return { ...object, apiVersion: apiVersionOf(type), kind: type.kind };
}

function requiredNamespace(type: ResourceType, object: KubeObject): string {
  const { namespace, name, generateName } = object.metadata;
  if (!namespace) {
    throw new TypeError(`${type.kind} "${name || generateName}" needs a namespace`);
  }
  return namespace;
}
