import { newContext, type SpanContext } from './context.ts';
import type { AttributeValue, FinishedSpan } from './otlp.ts';

/** A piece of work while it goes on. */
export interface Span {
  readonly context: SpanContext;
  /** It is over; with an error when it failed. A second call does nothing. */
  end(error?: string): void;
}

/** Makes spans and hands them on when they end. */
export class Tracer {
  readonly #finished: (span: FinishedSpan) => void;
  readonly #common: Readonly<Record<string, AttributeValue>>;

  /** `common`: attributes of every span. */
  constructor(options: {
    finished: (span: FinishedSpan) => void;
    common?: Readonly<Record<string, AttributeValue>>;
  }) {
    this.#finished = options.finished;
    this.#common = options.common ?? {};
  }

  start(
    name: string,
    options: {
      kind: FinishedSpan['kind'];
      parent?: SpanContext | undefined;
      attributes?: Readonly<Record<string, AttributeValue>>;
    },
  ): Span {
    const { kind, parent } = options;
    const context = newContext(parent);
    const start = nanoseconds();
    const attributes = { ...this.#common, ...options.attributes };
    let hasEnded = false;
    return {
      context,
      end: (error) => {
        if (hasEnded) {
          return;
        }
        hasEnded = true;
        const end = nanoseconds();
        this.#finished({ context, parentId: parent?.spanId, name, kind, start, end, attributes, error });
      },
    };
  }
}

/** Wall-clock time as OTLP wants it, with the resolution of the monotonic clock. */
function nanoseconds(): bigint {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1_000)) * 1_000n;
}
