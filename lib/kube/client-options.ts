import type { RateLimit } from '../base/index.ts';
import type { HttpRequest } from './transport/connection.ts';

/** Selects the objects of a list or watch. */
export interface ListOptions {
  /** All namespaces when left out. */
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
}

/** One page of a list. */
export interface ListPage<T> {
  items: T[];
  /** The version of the whole list. A watch may start from it after the last page. */
  resourceVersion: string;
  /** Token of the next page; undefined on the last one. */
  continue: string | undefined;
}

/** Options that every request takes. */
export interface RequestOptions {
  signal?: AbortSignal | undefined;
}

/** Options of every write. */
export interface WriteOptions extends RequestOptions {
  fieldManager?: string | undefined;
  subresource?: 'status' | 'scale' | 'approval' | undefined;
  /** Validate and admit, but store nothing. */
  dryRun?: boolean | undefined;
  /** Whether the request may be repeated when the connection breaks: a second execution is harmless or is detected. */
  repeatable?: boolean | undefined;
}

/** For writes of large objects that the caller already has: the response contains only the metadata. */
export interface MetadataOnly {
  metadataOnly: true;
}

/** Options of a deletion. `uid` and `resourceVersion` are preconditions: a mismatch is a Conflict. */
export interface DeleteOptions extends RequestOptions {
  uid?: string | undefined;
  resourceVersion?: string | undefined;
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan' | undefined;
  gracePeriodSeconds?: number | undefined;
}

/** A raw request, for endpoints that the typed methods do not cover. */
export interface RawRequest {
  method?: HttpRequest['method'];
  headers?: Record<string, string>;
  /** An object is sent as JSON. */
  body?: string | Uint8Array | object;
  signal?: AbortSignal | undefined;
  /** Default: the client's; 0 waits without limit (streams). */
  timeoutMs?: number;
}

/** How a client behaves; the defaults suit a controller. */
export interface ClientOptions {
  /** Longest silence before an answer's head or between parts of its body. Default 35 s: webhooks may take 30 s. */
  requestTimeoutMs?: number;
  /** Default 64. */
  maxConnections?: number;
  /** Default `argocd-fleet`. */
  userAgent?: string;
  /** Rate limit of requests; a watch counts once, at its start. Default: none. */
  rate?: RateLimit | undefined;
  /** Called with each request after its response; `status` is 0 without one. For metrics and traces. */
  observe?: ((request: ObservedRequest) => void) | undefined;
  /** Called before each write; an error that it throws is passed on. Stops the writes of a former leader. */
  beforeWrite?: (() => void) | undefined;
  /** Replaces the API server's address in the kubeconfig; certificates are verified as usual. */
  server?: string;
  /** Interval of the pings on a watch's connection. Default 3 s. */
  pingIntervalMs?: number;
  /** The connection is closed when the response to a ping takes longer. Default 5 s. */
  pingTimeoutMs?: number;
}

/** A request that was made, for {@link ClientOptions.observe}. */
export interface ObservedRequest {
  method: string;
  /** Without the query. */
  path: string;
  status: number;
  /** From sending to the head of the answer. */
  seconds: number;
  /** Spent waiting for {@link ClientOptions.rate}. */
  waitedSeconds: number;
}
