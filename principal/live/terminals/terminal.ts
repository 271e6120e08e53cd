import { randomUUID } from 'node:crypto';
import type { WebSocket } from 'ws';
import type { Logger } from '../../../lib/base/index.ts';
import { type IdleTimer, whenIdle } from '../../../lib/base/index.ts';
import {
  channel,
  channelMessage,
  hasStatus,
  type ResourcePath,
  readInput,
  statusOfWords,
  statusText,
  successStatus,
  wordsOfStatus,
} from '../../../lib/live/index.ts';
import { formatDuration } from '../../../lib/ops/index.ts';
import {
  eventTypes,
  messageEvent,
  principalSource,
  type ServerLiveStream,
  TerminalStreamData,
  targets,
  type WireEvent,
} from '../../../lib/wire/index.ts';
import type { TerminalSessions, TerminalUser } from './terminal-sessions.ts';

/** What {@link runTerminal} works with. */
export interface TerminalContext {
  readonly terminals: TerminalSessions;
  /** Puts an event on an agent's stream; false when it has none. */
  send(agent: string, event: WireEvent): boolean;
  /** A terminal without input and output for this time is closed; 0 for never. */
  readonly terminalIdleMs: number;
  readonly logger: Logger;
}

/** How long an agent may take to open its stream. */
const openMs = 30_000;
/** How often a viewer has to show that it lives. */
const pingMs = 30_000;
/** Agents of the original read input into a buffer of this size and lose the rest. */
const inputBytes = 16 * 1024;
/** What may wait for a viewer that reads slowly; the agent waits while there is more. */
const mostWaitingBytes = 256 * 1024;
const mostStatusBytes = 64 * 1024;

/**
 * Joins a viewer's WebSocket, on which Kubernetes' streams are spoken, with the terminal that an agent opens in a container, until
 * either is over. Each side waits for the other one: at most some hundred KiB of a session are kept here.
 * @throws NoAnswerError when too many terminals are open
 */
export function runTerminal(
  context: TerminalContext,
  agent: string,
  path: ResourcePath,
  query: URLSearchParams,
  webSocket: WebSocket,
): void {
  const terminal = new Terminal(context, agent, path, webSocket);
  terminal.start(requestOf(path, query));
}

class Terminal implements TerminalUser {
  readonly #context: TerminalContext;
  readonly #agent: string;
  readonly #about: object;
  readonly #uuid = randomUUID();
  readonly #webSocket: WebSocket;
  readonly #began = performance.now();
  #timers: NodeJS.Timeout[] = [];
  #idle: IdleTimer | undefined;
  #forget: () => void = () => undefined;
  #stream: ServerLiveStream<TerminalStreamData> | undefined;
  /** The outcome, which an agent of ours sends before the end. */
  #status: string | undefined;
  #isInputClosed = false;
  #isPaused = false;
  #isOver = false;
  #isCommandOver = false;
  #isAlive = true;

  constructor(context: TerminalContext, agent: string, { namespace, name }: ResourcePath, webSocket: WebSocket) {
    this.#context = context;
    this.#agent = agent;
    this.#about = { agent, namespace, pod: name, session: this.#uuid };
    this.#webSocket = webSocket;
  }

  start(request: object): void {
    const { terminals, terminalIdleMs, send, logger } = this.#context;
    this.#forget = terminals.open(this.#agent, this.#uuid, this);
    logger.info(this.#about, 'a terminal is asked for');
    const webSocket = this.#webSocket;
    webSocket.on('message', (data: Buffer) => this.#input(data));
    webSocket.on('pong', () => {
      this.#isAlive = true;
    });
    webSocket.on('close', () => this.#over('the viewer has left'));
    // What breaks the rules of WebSocket ends it.
    webSocket.on('error', () => undefined);
    // Input waits until the agent's stream is open.
    this.#pause();
    this.#timers = [setInterval(() => this.#ping(), pingMs)];
    if (terminalIdleMs > 0) {
      this.#idle = whenIdle(terminalIdleMs, () => {
        const idle = formatDuration(terminalIdleMs);
        this.#fail(504, `the terminal was closed: nothing happened for ${idle}`, 'nothing happened');
      });
    }
    const opening = setTimeout(() => {
      if (this.#stream !== undefined) {
        return;
      }
      this.#fail(504, `agent ${this.#agent} did not open the terminal in time`, 'the agent is late');
    }, openMs);
    this.#timers.push(opening);
    const ids = { resourceId: this.#uuid, eventId: this.#uuid };
    const payload = { uuid: this.#uuid, ...request };
    const event = messageEvent(targets.terminal, eventTypes.terminalRequest, payload, { source: principalSource }, ids);
    if (!send(this.#agent, event)) {
      this.lost();
    }
  }

  opened(stream: ServerLiveStream<TerminalStreamData>): void {
    this.#stream = stream;
    stream.onDrain(() => this.#resume());
    this.#resume();
  }

  message({ data, streamType, eof, error }: TerminalStreamData): void {
    this.#idle?.refresh();
    if (data.length > 0) {
      this.#output(data, streamType);
    }
    this.#isCommandOver = eof || error !== '';
    if (error !== '') {
      this.#end(statusOfWords(error), 'the command failed');
    } else if (eof) {
      this.#end(this.#status ?? successStatus, 'the command has ended');
    }
  }

  lost(): void {
    this.#fail(502, `the connection to agent ${this.#agent} ended`, 'the agent has gone');
  }

  stopped(): void {
    this.#fail(503, 'the principal stops', 'the principal stops');
  }

  /** From the agent. */
  #output(data: Buffer, streamType: string): void {
    if (streamType === 'error') {
      if (data.length <= mostStatusBytes) {
        this.#status = data.toString('utf8');
      }
      return;
    }
    const webSocket = this.#webSocket;
    const to = streamType === 'stderr' ? channel.stderr : channel.stdout;
    webSocket.send(channelMessage(to, data), () => {
      if (webSocket.bufferedAmount <= mostWaitingBytes / 2) {
        this.#stream?.resume();
      }
    });
    if (webSocket.bufferedAmount > mostWaitingBytes) {
      this.#stream?.pause();
    }
  }

  /** From the viewer. */
  #input(message: Buffer): void {
    const stream = this.#stream;
    if (this.#isOver || stream === undefined) {
      return;
    }
    this.#isAlive = true;
    const input = readInput(message);
    if (input === undefined) {
      this.#fail(400, 'the message is none of the streaming protocol of Kubernetes', 'the viewer is not understood');
      return;
    }
    if (input.kind === 'nothing') {
      return;
    }
    this.#idle?.refresh();
    const requestUuid = this.#uuid;
    const say = (fields: Partial<TerminalStreamData>) => {
      if (!stream.send(TerminalStreamData.fromPartial({ requestUuid, ...fields })) && !stream.ended) {
        this.#pause();
      }
    };
    if (input.kind === 'resize') {
      say({ resize: true, ...input.size });
    }
    if (this.#isInputClosed) {
      return;
    }
    if (input.kind === 'closed') {
      this.#isInputClosed = true;
      say({ eof: true });
    } else if (input.kind === 'stdin') {
      for (let at = 0; at < input.data.length; at += inputBytes) {
        say({ data: input.data.subarray(at, at + inputBytes), streamType: 'stdin' });
      }
    }
  }

  #pause(): void {
    this.#isPaused = true;
    this.#webSocket.pause();
  }

  #resume(): void {
    this.#isPaused = false;
    this.#webSocket.resume();
  }

  #ping(): void {
    // A viewer that is not read cannot show that it lives.
    if (!this.#isAlive && !this.#isPaused) {
      this.#webSocket.terminate();
      return;
    }
    this.#isAlive = false;
    this.#webSocket.ping();
  }

  #fail(code: number, message: string, why: string): void {
    this.#end(statusText(code, message), why);
  }

  /** Reports the end to the viewer. */
  #end(status: string, why: string): void {
    if (this.#isOver) {
      return;
    }
    const webSocket = this.#webSocket;
    const text = hasStatus(webSocket.protocol) ? status : wordsOfStatus(status);
    if (text !== '') {
      webSocket.send(channelMessage(channel.error, text));
    }
    this.#over(why);
  }

  #over(why: string): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    this.#idle?.cancel();
    for (const timer of this.#timers) {
      clearTimeout(timer);
    }
    this.#forget();
    const stream = this.#stream;
    // Agents of the original end the command only after an error.
    if (!this.#isCommandOver) {
      stream?.send(TerminalStreamData.fromPartial({ requestUuid: this.#uuid, error: why }));
    }
    stream?.finish();
    stream?.resume();
    this.#webSocket.resume();
    this.#webSocket.close(1000);
    const seconds = Math.round((performance.now() - this.#began) / 1_000);
    this.#context.logger.info({ ...this.#about, seconds, why }, 'a terminal is closed');
  }
}

/** The request to the agent. A viewer that names no stream gets all of them, as in the original. */
function requestOf({ namespace, name }: ResourcePath, query: URLSearchParams): object {
  const isTrue = (key: string) => /^(1|t|true)$/i.test(query.get(key) ?? '');
  const streams = { stdin: isTrue('stdin'), stdout: isTrue('stdout'), stderr: isTrue('stderr'), tty: isTrue('tty') };
  const isNone = !streams.stdin && !streams.stdout && !streams.stderr && !streams.tty;
  return {
    namespace,
    podName: name,
    containerName: query.get('container') ?? '',
    command: query.getAll('command'),
    ...(isNone ? { stdin: true, stdout: true, stderr: true, tty: true } : streams),
  };
}
