/** GrpcMetadata as gRPC has it: several values for one name, in order. */
export type GrpcMetadata = Readonly<Record<string, readonly string[]>>;

/** How a call ended; `code` is the status's name as Go writes it (`OK`, `Unavailable`). */
export interface GoStatus {
  readonly code: string;
  readonly message: string;
  readonly trailer: GrpcMetadata;
}

/** The answer of a unary call. */
export interface GoAnswer extends GoStatus {
  readonly bytes: Buffer;
  readonly metadata: GrpcMetadata;
}

/** What hears of a stream's messages, in order. */
export interface GoCallListener {
  message(bytes: Buffer): void;
  /** The client sends no more; only servers are told. */
  halfClose?(): void;
}

/** A line of what the process says. */
export interface GoReport {
  readonly event: string;
  readonly id: string;
  readonly address?: string;
  readonly state?: string;
  readonly server?: string;
  readonly method?: string;
  readonly metadata?: GrpcMetadata;
  readonly compression?: string;
  readonly subject?: string;
  readonly peer?: string;
  readonly bytes?: string;
  readonly code?: string;
  readonly message?: string;
  readonly trailer?: GrpcMetadata;
}

/** The lines to and from the process. */
export interface Lines {
  write(line: object): void;
  listen(id: string, listener: (report: GoReport) => void): void;
  forget(id: string): void;
  name(what: string): string;
}

/** A connection to a server. */
export class GoConnection {
  readonly #id: string;
  readonly #lines: Lines;
  readonly #states: string[] = [];

  constructor(id: string, lines: Lines) {
    this.#id = id;
    this.#lines = lines;
    lines.listen(id, ({ state }) => state !== undefined && this.#states.push(state));
  }

  /** Every state that the connection has been in (`IDLE`, `CONNECTING`, `READY`, `TRANSIENT_FAILURE`, `SHUTDOWN`). */
  get states(): readonly string[] {
    return this.#states;
  }

  /** One request, one answer. Never rejects: how it ended is in the answer. */
  unary(method: string, bytes: Uint8Array, metadata: Readonly<Record<string, string>> = {}): Promise<GoAnswer> {
    const id = this.#lines.name('call');
    const { promise, resolve } = Promise.withResolvers<GoAnswer>();
    followCall(id, this.#lines, { message: () => undefined }, resolve);
    this.#lines.write({ op: 'unary', id, connection: this.#id, method, metadata, bytes: base64(bytes) });
    return promise;
  }

  /** Opens a stream. */
  open(method: string, metadata: Readonly<Record<string, string>>, listener: GoCallListener): GoCall {
    const call = new GoCall({ id: this.#lines.name('call'), method }, this.#lines);
    call.follow(listener);
    this.#lines.write({ op: 'call', id: call.id, connection: this.#id, method, metadata });
    return call;
  }

  /** Closes the connection as a process does that ends: without a word on the streams. */
  close(): void {
    this.#lines.write({ op: 'close', id: this.#id });
  }
}

/** A call, on either side. A server answers a unary one by `send` and then `finish`. */
export class GoCall {
  readonly id: string;
  /** Resolves with how it ended. */
  readonly ended: Promise<GoStatus>;
  /** The method's path. */
  readonly method: string;
  /** What the client sent ahead, as the server's transport saw it, names in lower case. Servers only. */
  readonly metadata: GrpcMetadata;
  /** The client's compression, empty without. Servers only. */
  readonly compression: string;
  /** Subject of the client's verified certificate, empty without. Servers only. */
  readonly subject: string;
  readonly #lines: Lines;
  readonly #settle: (status: GoStatus) => void;

  constructor(report: Pick<GoReport, 'id' | 'method' | 'metadata' | 'compression' | 'subject'>, lines: Lines) {
    this.id = report.id;
    this.method = report.method ?? '';
    this.metadata = report.metadata ?? {};
    this.compression = report.compression ?? '';
    this.subject = report.subject ?? '';
    this.#lines = lines;
    const { promise, resolve } = Promise.withResolvers<GoStatus>();
    this.ended = promise;
    this.#settle = resolve;
  }

  /** Names who hears of it. */
  follow(listener: GoCallListener): void {
    followCall(this.id, this.#lines, listener, this.#settle);
  }

  /** Sends one message. */
  send(bytes: Uint8Array): void {
    this.#lines.write({ op: 'send', id: this.id, bytes: base64(bytes) });
  }

  /** A client says that it will send no more. */
  closeSend(): void {
    this.#lines.write({ op: 'closeSend', id: this.id });
  }

  /** A server ends the call. */
  finish(code = 'OK', message = ''): void {
    this.#lines.write({ op: 'finish', id: this.id, code, message });
  }

  /** Gives the call up. */
  cancel(): void {
    this.#lines.write({ op: 'cancel', id: this.id });
  }
}

function followCall(id: string, lines: Lines, listener: GoCallListener, settle: (answer: GoAnswer) => void): void {
  lines.listen(id, ({ event, bytes = '', code = '', message = '', trailer = {}, metadata = {} }) => {
    if (event === 'message') {
      listener.message(Buffer.from(bytes, 'base64'));
    } else if (event === 'halfClose') {
      listener.halfClose?.();
    } else if (event === 'end') {
      lines.forget(id);
      settle({ code, message, trailer, metadata, bytes: Buffer.from(bytes, 'base64') });
    } else if (event === 'failed') {
      lines.forget(id);
      settle({ code: 'Unknown', message: `gopeer: ${message}`, trailer, metadata, bytes: Buffer.alloc(0) });
    }
  });
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
