import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  cancelType,
  impersonatedType,
  isDiscoveryPath,
  isServiceAccount,
  parseResourcePath,
  type ResourcePath,
  resourcePathOf,
} from '../../../lib/live/index.ts';
import { messageEvent, principalSource, targets, type WireEvent } from '../../../lib/wire/index.ts';

/** API servers take no larger objects. */
const mostBodyBytes = 4 * 1024 * 1024;
const methods: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);
/** Headers that change an answer and are passed on. */
const passedHeaders = ['accept', 'content-type'] as const;

/** A request that is answered with a Status by the principal itself. */
export class ProxyRefusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The target of a request. */
export interface RequestTarget {
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Undefined for discovery. */
  readonly resource: ResourcePath | undefined;
  /** The service account to execute the request as (`system:serviceaccount:…`); undefined for the agent itself. */
  readonly user: string | undefined;
}

/** Parses the target of a request. @throws ProxyRefusal when it is not served: 403 for a method, as in the original */
export function requestTarget({ method = '', url = '', headers, httpVersion }: IncomingMessage): RequestTarget {
  if (httpVersion === '1.1' && headers.host === undefined) {
    throw new ProxyRefusal(400, 'the request has no Host header');
  }
  const question = url.indexOf('?');
  const path = requestPath({ url });
  const query = question < 0 ? '' : url.slice(question + 1);
  if (!methods.has(method)) {
    throw new ProxyRefusal(403, `${method} is not served by the resource proxy`);
  }
  const user = impersonatedUser(headers);
  const resource = parseResourcePath(path);
  if (resource === undefined && !isDiscoveryPath(path)) {
    throw new ProxyRefusal(404, `${path.slice(0, 200)} is not served by the resource proxy`);
  }
  return { path, query, resource, user };
}

/** The autonomous agents, whose Applications the hub has in the namespace that is named after the agent. */
export interface MirroredAgents {
  isAutonomous(agent: string): boolean;
  /** The namespace of Argo CD on an agent's cluster; undefined when the agent has not said. */
  namespaceOf(agent: string): string | undefined;
}

/**
 * The target on the agent's cluster. The hub's Argo CD asks for a child Application of an autonomous agent where its mirror is: there the
 * resource trees have it (`withMirroredChildren`).
 */
export function targetOnCluster(
  target: RequestTarget,
  agent: string,
  mirrored: MirroredAgents | undefined,
): RequestTarget {
  const { group, resource, namespace } = target.resource ?? {};
  if (group !== 'argoproj.io' || resource !== 'applications' || namespace !== agent || !mirrored?.isAutonomous(agent)) {
    return target;
  }
  const there = { ...(target.resource as ResourcePath), namespace: mirrored.namespaceOf(agent) || agent };
  return { ...target, path: resourcePathOf(there), resource: there };
}

/**
 * The user that the request is to be executed as. Argo CD with impersonation names service accounts only, and no groups: the
 * API server knows those of a service account.
 */
function impersonatedUser(headers: IncomingMessage['headers']): string | undefined {
  const { 'impersonate-user': user, ...others } = headers;
  // An impersonated request must not be executed with the agent's larger rights.
  if (
    Object.keys(others).some((name) => name.startsWith('impersonate-')) ||
    (user !== undefined && !isServiceAccount(String(user)))
  ) {
    throw new ProxyRefusal(
      403,
      'impersonation is not served by the resource proxy, except of service accounts (Impersonate-User alone)',
    );
  }
  return user as string | undefined;
}

/** The path of a request without its query. */
export function requestPath({ url = '' }: Pick<IncomingMessage, 'url'>): string {
  const question = url.indexOf('?');
  return question < 0 ? url : url.slice(0, question);
}

/** Whether a request is for a terminal. */
export function isTerminal(resource: ResourcePath | undefined): resource is ResourcePath {
  return resource?.group === '' && resource.resource === 'pods' && resource.subresource === 'exec';
}

/** The event that carries a request to the agent, and its UUID. @throws ProxyRefusal for a body that is too large */
export async function requestEvent(
  request: IncomingMessage,
  { method, path, query, resource, user }: RequestTarget & { readonly method: string },
): Promise<{ readonly uuid: string; readonly event: WireEvent }> {
  const body = await bodyOf(request);
  const headers = Object.fromEntries(
    passedHeaders.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, request.headers[name]]])),
  );
  const uuid = randomUUID();
  const payload = {
    uuid,
    ...(resource?.namespace ? { namespace: resource.namespace } : {}),
    name: resource?.name ?? '',
    ...(resource?.subresource ? { subresource: resource.subresource } : {}),
    ...(user === undefined ? { method } : { method: '', impersonated: { method, user } }),
    ...(body.length === 0 ? {} : { body: body.toString('base64') }),
    params: firstValues(query, headers['content-type']),
    group: resource?.group ?? '',
    version: resource?.version ?? '',
    resource: resource?.resource ?? '',
    ...(resource === undefined ? discoveryOf(path) : {}),
    query,
    headers,
    streams: true,
  };
  const event = messageEvent(
    targets.resource,
    user === undefined ? method : impersonatedType,
    payload,
    { source: principalSource },
    { resourceId: uuid, eventId: uuid },
  );
  return { uuid, event };
}

/** The event that cancels a request. Only agents of this project know it. */
export function cancellationOf(uuid: string): WireEvent {
  return messageEvent(targets.resource, cancelType, { uuid }, { source: principalSource });
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > mostBodyBytes) {
      throw new ProxyRefusal(413, `the body is larger than ${mostBodyBytes} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/**
 * The query as agents of the original take it: of a repeated key the first value, and the kind of a patch under a key of its own.
 */
function firstValues(query: string, contentType: string | undefined): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [key, value] of new URLSearchParams(query)) {
    values[key] ??= value;
  }
  if (contentType?.includes('patch+json')) {
    values['content-type'] = contentType;
  }
  return values;
}

/** What agents of the original understand of a discovery path, and the path for those of ours. */
function discoveryOf(path: string): { document: string; group?: string; version?: string } {
  const [, root, first = '', second = ''] = path.split('/');
  if (root === 'api' && first !== '') {
    return { document: path, version: first };
  }
  if (root === 'apis' && second !== '') {
    return { document: path, group: first, version: second };
  }
  return { document: path };
}

/** Whether agents of the original would answer the request wrongly. */
export function isBeyondOriginal(path: string, query: string): boolean {
  const isWatch = /(^|&)watch=(1|t|true)(&|$)/i.test(query);
  return isWatch || path.startsWith('/openapi/') || /^\/apis\/[^/]+\/?$/.test(path);
}
