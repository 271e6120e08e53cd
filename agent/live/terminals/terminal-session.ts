import type { WebSocket } from 'ws';
import { type IdleTimer, onAbort, whenIdle } from '../../../lib/base/index.ts';
import {
  channel,
  channelMessage,
  resizeMessage,
  statusText,
  stdinClosed,
  successStatus,
  type TerminalSize,
} from '../../../lib/live/index.ts';
import { formatDuration } from '../../../lib/ops/index.ts';
import { type ClientLiveStream, type LiveCalls, TerminalStreamData } from '../../../lib/wire/index.ts';

/** Frames are no longer than this, so that other streams of the connection get their turn. */
const frameBytes = 64 * 1024;
/** Input that may wait for the container; the viewer waits while there is more. */
const mostWaitingBytes = 256 * 1024;
/** How long the principal may take to end a stream that we have ended. */
const partingMs = 5_000;
/** The size of a terminal before its viewer sends one, as in the original. */
const initialSize: TerminalSize = { rows: 24, cols: 80 };

/**
 * A terminal between its two ends: the stream to the principal, and the WebSocket to the API server on which the command is executed.
 * Each end waits for the other one; input before the start of the command is kept for it.
 */
export class TerminalSession {
  readonly #uuid: string;
  readonly #isTty: boolean;
  readonly #gone = new AbortController();
  readonly #closed = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  #stream: ClientLiveStream<TerminalStreamData> | undefined;
  #exec: WebSocket | undefined;
  #size = initialSize;
  #early: Buffer[] = [];
  #earlyBytes = 0;
  #isInputClosed = false;
  #status: string | undefined;
  #isOver = false;
  #idle: IdleTimer | undefined;

  private constructor(uuid: string, isTty: boolean) {
    this.#uuid = uuid;
    this.#isTty = isTty;
  }

  /** Opens the stream to the principal. @throws GrpcError when the connection is gone */
  static async open(
    live: LiveCalls,
    options: { uuid: string; isTty: boolean; idleMs: number; signal: AbortSignal },
  ): Promise<TerminalSession> {
    const { uuid, isTty, idleMs, signal } = options;
    const session = new TerminalSession(uuid, isTty);
    const stream = await live.terminal({
      message: (message) => session.#input(message),
      closed: () => session.#viewerGone(),
    });
    session.#stream = stream;
    stream.onDrain(() => session.#exec?.resume());
    void session.#closed.promise.then(onAbort(signal, () => session.#viewerGone()));
    if (idleMs > 0) {
      session.#idle = whenIdle(idleMs, () =>
        session.end(statusText(504, `the terminal was closed: nothing happened for ${formatDuration(idleMs)}`)),
      );
    }
    // The first message identifies the stream to the principal.
    session.#say({});
    return session;
  }

  /** Aborts when the terminal is no longer needed. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Joins the stream with the command that is executed on a WebSocket; resolves when either is over. */
  async run(exec: WebSocket): Promise<void> {
    this.#exec = exec;
    exec.on('message', (data: Buffer) => this.#output(data));
    exec.on('close', (code) => this.end(this.#status ?? statusOfClose(code)));
    if (this.#isOver) {
      exec.terminate();
      return;
    }
    if (this.#isTty) {
      exec.send(resizeMessage(this.#size));
    }
    for (const message of this.#early.splice(0)) {
      this.#write(message);
    }
    if (this.#isInputClosed) {
      this.#closeInput();
    }
    this.#stream?.resume();
    exec.resume();
    await this.#ended.promise;
  }

  /** Reports the end of the terminal to the viewer, as a `Status`, and ends both sides. */
  end(status: string): void {
    if (this.#isOver) {
      return;
    }
    this.#status = status;
    // In this form principals of the original pass it on too.
    this.#say({ data: Buffer.from(status), streamType: 'error' });
    this.#say({ eof: true });
    this.#stream?.halfClose();
    this.#stream?.resume();
    this.#over();
  }

  /** Resolves when the stream to the principal is over; one that the principal does not end is cut off. */
  async closed(): Promise<void> {
    const timer = setTimeout(() => this.#stream?.cancel(), partingMs);
    await this.#closed.promise;
    clearTimeout(timer);
  }

  #viewerGone(): void {
    this.#over();
    this.#stream?.cancel();
    this.#closed.resolve();
  }

  #over(): void {
    this.#isOver = true;
    this.#idle?.cancel();
    this.#early = [];
    this.#gone.abort(new Error('the terminal is over'));
    this.#ended.resolve();
    const exec = this.#exec;
    if (exec === undefined) {
      return;
    }
    // The API server ends the command when its connection ends.
    exec.resume();
    exec.close(1000);
  }

  /** From the viewer. */
  #input({ data, streamType, resize, rows, cols, eof, error }: TerminalStreamData): void {
    if (this.#isOver) {
      return;
    }
    this.#idle?.refresh();
    if (error !== '') {
      this.#viewerGone();
      return;
    }
    if (resize) {
      this.#size = { rows, cols };
      if (this.#isTty) {
        this.#exec?.send(resizeMessage(this.#size));
      }
    }
    if (data.length > 0 && streamType === 'stdin' && !this.#isInputClosed) {
      const message = channelMessage(channel.stdin, data);
      if (this.#exec !== undefined) {
        this.#write(message);
      } else {
        this.#early.push(message);
        this.#earlyBytes += message.length;
        if (this.#earlyBytes > mostWaitingBytes) {
          this.#stream?.pause();
        }
      }
    }
    if (eof && !this.#isInputClosed) {
      this.#isInputClosed = true;
      if (this.#exec !== undefined) {
        this.#closeInput();
      }
    }
  }

  #write(message: Buffer): void {
    const exec = this.#exec;
    exec?.send(message, () => {
      if (exec.bufferedAmount <= mostWaitingBytes / 2) {
        this.#stream?.resume();
      }
    });
    if (exec !== undefined && exec.bufferedAmount > mostWaitingBytes) {
      this.#stream?.pause();
    }
  }

  /** Kubelets before protocol v5 have no message for it. */
  #closeInput(): void {
    if (this.#exec?.protocol === 'v5.channel.k8s.io') {
      this.#exec.send(stdinClosed);
    }
  }

  /** From the container. */
  #output(message: Buffer): void {
    if (this.#isOver) {
      return;
    }
    const [from] = message;
    const data = message.subarray(1);
    if (data.length === 0) {
      return;
    }
    this.#idle?.refresh();
    if (from === channel.error) {
      this.#status = data.toString('utf8');
    } else if (from === channel.stdout || from === channel.stderr) {
      const streamType = from === channel.stderr ? 'stderr' : 'stdout';
      let hasRoom = true;
      for (let at = 0; at < data.length; at += frameBytes) {
        hasRoom = this.#say({ data: data.subarray(at, at + frameBytes), streamType });
      }
      if (!hasRoom) {
        this.#exec?.pause();
      }
    }
  }

  #say(fields: Partial<TerminalStreamData>): boolean {
    const stream = this.#stream;
    if (stream === undefined) {
      return false;
    }
    // A terminal that has ended accepts nothing.
    return stream.send(TerminalStreamData.fromPartial({ requestUuid: this.#uuid, ...fields })) || stream.ended;
  }
}

function statusOfClose(code: number): string {
  if (code === 1000) {
    return successStatus;
  }
  return statusText(502, "the connection to the cluster's API server ended before the command did");
}
