import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2';
import { trusting } from '../base/index.ts';
import { encodeExport, type FinishedSpan } from './otlp.ts';

const path = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
const scope = 'argocd-agent';
const maxQueued = 2_048;
const batchSize = 512;
const delayMs = 1_000;
const timeoutMs = 10_000;

/** How spans reach a collector. */
export interface ExporterOptions {
  /** `host:port` of the collector's OTLP/gRPC endpoint. */
  readonly address: string;
  /** Without TLS. */
  readonly insecure: boolean;
  readonly service: string;
  readonly logger: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** CA of the collector's certificate, PEM. Default: the system's. */
  readonly ca?: string;
}

/**
 * Sends spans to a collector by OTLP over gRPC, in batches and in the background. A collector that is away costs spans, never
 * work: the oldest are given up when too many wait.
 */
export class SpanExporter {
  readonly #options: ExporterOptions;
  #queue: FinishedSpan[] = [];
  #session: ClientHttp2Session | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #dropped = 0;
  #problem: string | undefined;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  /** Spans that were given up. */
  get dropped(): number {
    return this.#dropped;
  }

  add(span: FinishedSpan): void {
    this.#queue.push(span);
    if (this.#queue.length > maxQueued) {
      this.#queue.shift();
      this.#dropped++;
    }
    if (this.#queue.length >= batchSize) {
      void this.#flush();
    } else {
      this.#timer ??= setTimeout(() => void this.#flush(), delayMs).unref();
    }
  }

  /** Sends what is left, if the collector is there, and ends. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#sending;
    if (this.#problem === undefined) {
      await this.#flush();
    }
    clearTimeout(this.#timer);
    this.#session?.destroy();
  }

  #flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
      if (this.#queue.length > 0) {
        this.#timer ??= setTimeout(() => void this.#flush(), delayMs).unref();
      }
    });
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, batchSize);
      try {
        await this.#send(encodeExport(this.#options.service, scope, batch));
        this.#recovered();
      } catch (error) {
        this.#queue = [...batch, ...this.#queue];
        const excess = Math.max(0, this.#queue.length - maxQueued);
        this.#queue.splice(0, excess);
        this.#dropped += excess;
        this.#failed((error as Error).message);
        return;
      }
    }
  }

  #recovered(): void {
    if (this.#problem === undefined) {
      return;
    }
    this.#problem = undefined;
    this.#options.logger.info({ collector: this.#options.address, dropped: this.#dropped }, 'traces are sent again');
  }

  #failed(problem: string): void {
    if (this.#problem === problem) {
      return;
    }
    this.#problem = problem;
    this.#options.logger.warn({ collector: this.#options.address, reason: problem }, 'traces cannot be sent; retried');
  }

  #connected(): ClientHttp2Session {
    const { address, insecure, ca } = this.#options;
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed) {
      return this.#session;
    }
    const session = connect(`${insecure ? 'http' : 'https'}://${address}`, trusting(ca));
    // Each request hears of it as well.
    session.on('error', () => undefined);
    session.unref();
    this.#session = session;
    return session;
  }

  #send(body: Uint8Array): Promise<void> {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length, 1);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const session = this.#connected();
    // Only a request on its way keeps the process alive.
    session.ref();
    const request = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    let answer: IncomingHttpHeaders = {};
    const take = (headers: IncomingHttpHeaders) => {
      answer = { ...answer, ...headers };
    };
    request.on('response', take).on('trailers', take).on('error', reject).resume();
    request.on('close', () => {
      session.unref();
      const code = answer['grpc-status'];
      const words = answer['grpc-message'] ?? `HTTP status ${answer[':status'] ?? 'none'}`;
      if (code === '0') {
        resolve();
      } else {
        reject(new Error(code === undefined ? `no answer of OTLP (${words})` : `the collector refuses: ${words}`));
      }
    });
    request.setTimeout(timeoutMs, () => request.destroy(new Error('the collector does not answer')));
    request.end(Buffer.concat([head, body]));
    return promise;
  }
}
