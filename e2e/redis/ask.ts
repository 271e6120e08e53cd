import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { until } from '../../lib/base/testing.ts';
import { encodeCommand } from '../../lib/live/index.ts';

/** A command, as words with blanks between them or as a list of words; or bytes as they are. Empty: nothing is sent. */
export type Sent = string | readonly string[] | Buffer;

/** The bytes that come next on the connection. In a string, `\n` stands for the line end of the protocol, CRLF. */
export type Expected = string | Buffer | RegExp | ExpectedSince;

/** An answer that has changed between versions of Redis. */
export interface ExpectedSince {
  readonly since: string;
  readonly answer: Expected;
  readonly before: Expected;
}

/** One step: what is sent, and what comes next. With a name in front, on the connection of that name. */
export type Exchange = readonly [Sent, Expected] | readonly [on: string, Sent, Expected];

/** A conversation with an empty Redis. */
export interface Question {
  readonly name: string;
  readonly steps: readonly Exchange[];
}

/** A question, for a table. */
export function question(name: string, ...steps: readonly Exchange[]): Question {
  return { name, steps };
}

/** The answer of a version of Redis and all later ones, and that of earlier ones. */
export function since(version: string, answer: Expected, before: Expected): ExpectedSince {
  return { since: version, answer, before };
}

/** At the end of an answer: Redis closes the connection. */
export const closed = '<closed>';

/** The answer to HELLO. Version, connection and modules, which Redis has since 8.0, are not compared. */
export function helloAnswer(protocol: 2 | 3): RegExp {
  const map = (size: number) => (protocol === 3 ? `%${size}` : `\\*${size * 2}`);
  const modules = `\\*0|\\*1 ${map(4)} \\$4 name \\$9 vectorset \\$3 ver :\\d+ \\$4 path \\$0  \\$4 args \\*0`;
  const lines =
    `${map(7)} \\$6 server \\$5 redis \\$7 version \\$\\d+ [\\d.]+ \\$5 proto :${protocol} \\$2 id :\\d+ ` +
    `\\$4 mode \\$10 standalone \\$4 role \\$6 master \\$7 modules (?:${modules}) `;
  return new RegExp(lines.replaceAll(' ', '\r\n'));
}

/** A Redis that is asked. */
export interface AskedServer {
  readonly port: number;
  readonly password?: string;
}

/** Asks a Redis that nobody else uses. Returns what is not as expected; undefined when everything is. */
export async function ask(server: AskedServer, { steps }: Question): Promise<string | undefined> {
  const admin = await RawConnection.open(server.port);
  const connections = new Map<string, RawConnection>();
  try {
    const version = await prepare(admin, server);
    for (const [index, step] of steps.entries()) {
      const [on, sent, answer] = step.length === 3 ? step : ['', ...step];
      const connection = connections.get(on) ?? (await RawConnection.open(server.port));
      connections.set(on, connection);
      connection.send(sent);
      const wrong = await connection.take(chosen(answer, version));
      if (wrong !== undefined) {
        return `step ${index + 1}, ${shown(sent)}: ${wrong}`;
      }
    }
    for (const connection of connections.values()) {
      const wrong = await connection.hasNothingMore();
      if (wrong !== undefined) {
        return `after the last step: ${wrong}`;
      }
    }
    return undefined;
  } finally {
    for (const connection of [admin, ...connections.values()]) {
      connection.close();
    }
  }
}

/** Empties the Redis. Returns its version. */
async function prepare(admin: RawConnection, { password }: AskedServer): Promise<string> {
  if (password !== undefined) {
    admin.send(['AUTH', password]);
    await until(() => admin.unread === '+OK\r\n');
    admin.skip();
  }
  admin.send('HELLO 2');
  const version = await until(
    'the version',
    () => /\r\nversion\r\n\$\d+\r\n([\d.]+)\r\n[\s\S]*modules\r\n/.exec(admin.unread)?.[1],
  );
  admin.send('FLUSHALL');
  await until(() => admin.unread.endsWith('+OK\r\n'));
  return version;
}

function chosen(answer: Expected, version: string): string | RegExp {
  if (typeof answer === 'string') {
    return answer.replaceAll('\n', '\r\n');
  }
  if (Buffer.isBuffer(answer)) {
    return answer.toString('latin1');
  }
  if (answer instanceof RegExp) {
    return answer;
  }
  return chosen(isAtLeast(version, answer.since) ? answer.answer : answer.before, version);
}

function isAtLeast(version: string, least: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = least.split('.').map(Number);
  return major === leastMajor ? minor >= leastMinor : major > leastMajor;
}

/** A connection without a Redis client, which keeps all that it receives. */
export class RawConnection {
  readonly socket: Socket;
  #received = '';
  #isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#received += text;
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#isClosed = true;
    });
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  /** What was received since the last step; the end of the connection is {@link closed}. */
  get unread(): string {
    return this.#received + (this.#isClosed ? closed : '');
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  skip(): void {
    this.#received = '';
  }

  send(sent: Sent): void {
    if (sent.length > 0) {
      this.socket.write(Buffer.isBuffer(sent) ? sent : encodeCommand(wordsOf(sent)));
    }
  }

  /** Waits for an answer and takes it; returns what is wrong with it. */
  async take(expected: string | RegExp): Promise<string | undefined> {
    const length = () => {
      if (typeof expected === 'string') {
        return this.unread.startsWith(expected) ? expected.length : undefined;
      }
      const match = expected.exec(this.unread);
      return match?.index === 0 ? match[0].length : undefined;
    };
    const isImpossible = () => this.#isClosed || (typeof expected === 'string' && !expected.startsWith(this.unread));
    try {
      await until(() => length() !== undefined || isImpossible(), { timeoutMs: answerTimeoutMs });
    } catch {
      // The difference is shown below.
    }
    const taken = length();
    if (taken === undefined) {
      return `${shown(this.unread)} instead of ${shown(expected)}`;
    }
    this.#received = this.#received.slice(taken);
    return undefined;
  }

  /** Whether everything that came was expected; returns what was not. */
  async hasNothingMore(): Promise<string | undefined> {
    if (this.#isClosed) {
      return undefined;
    }
    // Redis knows no such command before it looks at anything else.
    this.send('NOSUCH-END');
    return this.take("-ERR unknown command 'NOSUCH-END', with args beginning with: \r\n");
  }

  close(): void {
    this.socket.destroy();
  }
}

/** A Redis answers at once; this much is for a busy machine. */
const answerTimeoutMs = 10_000;

function wordsOf(sent: string | readonly string[]): Buffer[] {
  const words = typeof sent === 'string' ? sent.split(' ') : sent;
  return words.map((word) => Buffer.from(word, 'latin1'));
}

function shown(what: Sent | RegExp): string {
  const text = Buffer.isBuffer(what) ? what.toString('latin1') : typeof what === 'string' ? what : String(what);
  return text.length > 400 ? `${JSON.stringify(text.slice(0, 400))} ...` : JSON.stringify(text);
}
