import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { asksToWatch, parseResourcePath } from '../../lib/live/index.ts';

/** Who did what in which cluster through live access: one request, when it has ended. Nothing secret is in it. */
export interface AuditRecord {
  /** RFC 3339, when the request came. */
  readonly time: string;
  readonly auditID: string;
  /** The cluster's agent; empty for a caller who was refused. */
  readonly agent: string;
  /** Common name and serial number of the caller's certificate, and what it showed who it is with. */
  readonly caller: {
    readonly certificate: string;
    readonly serialNumber: string;
    readonly credential: 'certificate' | 'token';
  };
  /** The service account that the request is executed as, if it is not the agent's. */
  readonly user?: string;
  readonly sourceIP: string;
  readonly userAgent: string;
  /** As Kubernetes names them; `connect` for a terminal. */
  readonly verb: string;
  /** Without the query. */
  readonly path: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** The HTTP status of the answer: 101 for a terminal, 499 if the caller left before the answer. */
  readonly code: number;
  readonly durationMs: number;
}

/** What a caller may write into a record. */
const longest = 512;

/** A request that is to be audited. */
export interface AuditedRequest {
  /** The agent that the caller speaks for, once it is known. */
  agent: string;
  /** The request has ended with this status. */
  end(code: number): void;
}

/** Prepares the record of a request; `end` gives it to the audit, once. */
export function auditOf(
  { audit }: { readonly audit?: ((record: AuditRecord) => void) | undefined },
  request: IncomingMessage,
): AuditedRequest {
  const began = performance.now();
  const time = new Date().toISOString();
  // The socket knows nothing of these once it is closed.
  const about = audit && descriptionOf(request);
  let isOver = false;
  return {
    agent: '',
    end(code) {
      if (!isOver && about !== undefined) {
        const durationMs = Math.round(performance.now() - began);
        audit?.({ time, auditID: randomUUID(), agent: this.agent, ...about, code, durationMs });
      }
      isOver = true;
    },
  };
}

function descriptionOf(
  request: IncomingMessage,
): Omit<AuditRecord, 'time' | 'auditID' | 'agent' | 'code' | 'durationMs'> {
  const { method = '', url = '', headers, socket } = request;
  const question = url.indexOf('?');
  const [path, query] = question < 0 ? [url, ''] : [url.slice(0, question), url.slice(question + 1)];
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  const { namespace = '', resource = '', name = '', subresource = '' } = parseResourcePath(path) ?? {};
  const user = headers['impersonate-user'];
  const optional = { resource, subresource, namespace, name, user: typeof user === 'string' ? user : '' };
  const given = Object.entries(optional).flatMap(([key, value]) => (value === '' ? [] : [[key, cut(value)]]));
  return {
    caller: {
      certificate: cut(/^CN=(.*)$/m.exec(certificate?.subject ?? '')?.[1] ?? ''),
      serialNumber: certificate?.serialNumber ?? '',
      credential: headers.authorization === undefined ? 'certificate' : 'token',
    },
    sourceIP: socket.remoteAddress ?? '',
    userAgent: cut(headers['user-agent'] ?? ''),
    verb: verbOf(method, { name, subresource, isWatch: asksToWatch(new URLSearchParams(query)) }),
    path: cut(path),
    ...Object.fromEntries(given),
  };
}

function verbOf(method: string, to: { name: string; subresource: string; isWatch: boolean }): string {
  if (['exec', 'attach', 'portforward'].includes(to.subresource)) {
    return 'connect';
  }
  switch (method) {
    case 'GET':
      // The API server does not watch a single object.
      return to.name !== '' ? 'get' : to.isWatch ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'DELETE':
      return to.name === '' ? 'deletecollection' : 'delete';
    default:
      return cut(method.toLowerCase());
  }
}

function cut(text: string): string {
  return text.slice(0, longest);
}
