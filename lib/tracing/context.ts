import { randomBytes } from 'node:crypto';

/** Names a span wherever it is spoken of: W3C Trace Context. */
export interface SpanContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Vendors' own, passed on as it came; mostly empty. */
  readonly traceState: string;
}

/** Longest `tracestate` that is passed on (the most that W3C asks for). */
const maxStateLength = 512;

/** The value of `traceparent`; every span of ours is sampled. */
export function traceparentOf({ traceId, spanId }: SpanContext): string {
  return `00-${traceId}-${spanId}-01`;
}

/** Reads `traceparent` and `tracestate` of a peer; undefined for what is none or says that nothing is to be recorded. */
export function parseTraceparent(parent: string | undefined, state = ''): SpanContext | undefined {
  const [, version, traceId = '', spanId = ''] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/.exec(parent ?? '') ?? [];
  if (version === undefined || version === 'ff' || /^0+$/.test(traceId) || /^0+$/.test(spanId)) {
    return undefined;
  }
  return { traceId, spanId, traceState: state.length <= maxStateLength ? state : '' };
}

/** A context for a new span, in the trace of its parent if it has one. */
export function newContext(parent: SpanContext | undefined): SpanContext {
  return {
    traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    traceState: parent?.traceState ?? '',
  };
}
