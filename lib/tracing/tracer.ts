import { AsyncLocalStorage } from 'node:async_hooks';
import { newContext, type SpanContext, traceparentOf } from './context.ts';
import type { AttributeValue, FinishedSpan } from './otlp.ts';

/** A piece of work while it goes on. */
export interface Span {
  readonly context: SpanContext;
  /** It is over; with an error when it failed, and with what is known only now. A second call does nothing. */
  end(error?: string, attributes?: Readonly<Record<string, AttributeValue>>): void;
}

/** Makes spans and hands them on when they end. */
export class Tracer {
  readonly #finished: (span: FinishedSpan) => void;
  readonly #common: Readonly<Record<string, AttributeValue>>;
  readonly #active = new AsyncLocalStorage<SpanContext>();

  /** `common`: attributes of every span. */
  constructor(options: {
    finished: (span: FinishedSpan) => void;
    common?: Readonly<Record<string, AttributeValue>>;
  }) {
    this.#finished = options.finished;
    this.#common = options.common ?? {};
  }

  /** The span that the running code works for, if it does for one: see {@link within}. */
  get active(): SpanContext | undefined {
    return this.#active.getStore();
  }

  /** The header that tells a peer of {@link active}; without one, none. */
  get headers(): Record<string, string> {
    const { active } = this;
    return active === undefined ? {} : { traceparent: traceparentOf(active) };
  }

  /** Does work for a span: whatever it calls, also later, finds it as {@link active}. */
  within<T>({ context }: Pick<Span, 'context'>, work: () => T): T {
    return this.#active.run(context, work);
  }

  /** Keeps {@link active}, and does later work for it. */
  keep(): <R>(work: () => R) => R {
    const { active } = this;
    return (work) => (active === undefined ? work() : this.#active.run(active, work));
  }

  /** `secondsAgo`: the work has gone on for so long already. */
  start(
    name: string,
    options: {
      kind: FinishedSpan['kind'];
      parent?: SpanContext | undefined;
      attributes?: Readonly<Record<string, AttributeValue>>;
      secondsAgo?: number;
    },
  ): Span {
    const { kind, parent, secondsAgo = 0 } = options;
    const context = newContext(parent);
    const start = nanoseconds(secondsAgo);
    const attributes = { ...this.#common, ...options.attributes };
    let hasEnded = false;
    return {
      context,
      end: (error, more) => {
        if (hasEnded) {
          return;
        }
        hasEnded = true;
        const end = nanoseconds(0);
        const known = more === undefined ? attributes : { ...attributes, ...more };
        this.#finished({ context, parentId: parent?.spanId, name, kind, start, end, attributes: known, error });
      },
    };
  }
}

/** Wall-clock time, so many seconds ago, as OTLP wants it, with the resolution of the monotonic clock. */
function nanoseconds(secondsAgo: number): bigint {
  return BigInt(Math.round((performance.timeOrigin + performance.now() - secondsAgo * 1_000) * 1_000)) * 1_000n;
}
