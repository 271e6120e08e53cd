import { BinaryWriter } from '@bufbuild/protobuf/wire';
import type { SpanContext } from './context.ts';

/** What a span's attribute may be. */
export type AttributeValue = string | number | boolean;

/** A span that has ended. Times are nanoseconds since 1970. */
export interface FinishedSpan {
  readonly context: SpanContext;
  /** Span id of the parent, undefined for the first span of a trace. */
  readonly parentId: string | undefined;
  readonly name: string;
  /** Who the span is to its peer: it serves a request, makes one, made a message, took one, or nothing of these. */
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  /** Why it failed; undefined when it did not. */
  readonly error: string | undefined;
}

const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const;
const status = { ok: 1, error: 2 } as const;
/** Flags of a sampled span. */
const sampled = 1;

/** OTLP's `ExportTraceServiceRequest` with spans of one service. */
export function encodeExport(service: string, scope: string, spans: readonly FinishedSpan[]): Uint8Array {
  const out = new BinaryWriter();
  message(out, 1, (resourceSpans) => {
    message(resourceSpans, 1, (resource) => attribute(resource, 1, 'service.name', service));
    message(resourceSpans, 2, (scopeSpans) => {
      message(scopeSpans, 1, (instrumentation) => instrumentation.uint32(tag(1, 2)).string(scope));
      for (const span of spans) {
        message(scopeSpans, 2, (into) => encodeSpan(into, span));
      }
    });
  });
  return out.finish();
}

function encodeSpan(out: BinaryWriter, span: FinishedSpan): void {
  const { context, parentId } = span;
  out.uint32(tag(1, 2)).bytes(Buffer.from(context.traceId, 'hex'));
  out.uint32(tag(2, 2)).bytes(Buffer.from(context.spanId, 'hex'));
  if (context.traceState !== '') {
    out.uint32(tag(3, 2)).string(context.traceState);
  }
  if (parentId !== undefined) {
    out.uint32(tag(4, 2)).bytes(Buffer.from(parentId, 'hex'));
  }
  out.uint32(tag(5, 2)).string(span.name);
  out.uint32(tag(6, 0)).int32(kinds[span.kind]);
  out.uint32(tag(7, 1)).fixed64(span.start);
  out.uint32(tag(8, 1)).fixed64(span.end);
  for (const [key, value] of Object.entries(span.attributes)) {
    attribute(out, 9, key, value);
  }
  message(out, 15, (into) => {
    if (span.error !== undefined) {
      into.uint32(tag(2, 2)).string(span.error);
    }
    into.uint32(tag(3, 0)).int32(span.error === undefined ? status.ok : status.error);
  });
  out.uint32(tag(16, 5)).fixed32(sampled);
}

function attribute(out: BinaryWriter, field: number, key: string, value: AttributeValue): void {
  message(out, field, (pair) => {
    pair.uint32(tag(1, 2)).string(key);
    message(pair, 2, (any) => {
      if (typeof value === 'string') {
        any.uint32(tag(1, 2)).string(value);
      } else if (typeof value === 'boolean') {
        any.uint32(tag(2, 0)).bool(value);
      } else {
        any.uint32(tag(3, 0)).int64(BigInt(Math.round(value)));
      }
    });
  });
}

function message(out: BinaryWriter, field: number, write: (into: BinaryWriter) => void): void {
  out.uint32(tag(field, 2)).fork();
  write(out);
  out.join();
}

function tag(field: number, wireType: number): number {
  return ((field << 3) | wireType) >>> 0;
}
