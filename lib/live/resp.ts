/** A peer violates Redis' protocol or exceeds a limit. */
export class RespError extends Error {
  override readonly name = 'RespError';
}

/** Limits of one command: Argo CD stores manifests and trees of some megabytes. */
const mostArguments = 10_000;
const mostBytes = 64 * 1024 * 1024;
const longestLine = 64 * 1024;
const carriageReturn = 13;

/**
 * Reads commands of a Redis client: arrays of bulk strings, cut anywhere. Inline commands, which only people type, are
 * refused.
 */
export class CommandReader {
  #buffer: Buffer = Buffer.alloc(0);
  #wanted: number | undefined;
  #parts: Buffer[] = [];
  #bytes = 0;

  /** The commands that these bytes complete, each as the list of its arguments. @throws RespError */
  push(chunk: Buffer): Buffer[][] {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
    const commands: Buffer[][] = [];
    let at = 0;
    for (;;) {
      const next = this.#step(at, commands);
      if (next === undefined) {
        break;
      }
      at = next;
    }
    this.#buffer = this.#buffer.subarray(at);
    return commands;
  }

  /** Reads a header or an argument; returns its end, or undefined when it is incomplete. */
  #step(at: number, commands: Buffer[][]): number | undefined {
    const line = lineAt(this.#buffer, at);
    if (line === undefined) {
      return undefined;
    }
    const { text, end } = line;
    if (this.#wanted === undefined) {
      const count = numberAfter('*', text);
      if (count > mostArguments) {
        throw new RespError(`a command of ${count} words`);
      }
      if (count > 0) {
        this.#wanted = count;
      }
      return end;
    }
    const length = numberAfter('$', text);
    this.#bytes += length;
    if (length < 0 || this.#bytes > mostBytes) {
      throw new RespError('a command is too large');
    }
    if (this.#buffer.length < end + length + 2) {
      // Read again, when there is more.
      this.#bytes -= length;
      return undefined;
    }
    this.#parts.push(this.#buffer.subarray(end, end + length));
    if (this.#parts.length === this.#wanted) {
      commands.push(this.#parts);
      this.#wanted = undefined;
      this.#parts = [];
      this.#bytes = 0;
    }
    return end + length + 2;
  }
}

/** The kind of a part of a server's output. */
export interface ReplyPiece {
  readonly bytes: Buffer;
  /** Whether a reply or push ends with it. */
  readonly isEnd: boolean;
  /** The first byte of that reply: `-` and `!` are errors, `>` is a push, which answers no command. */
  readonly type: string;
}

/** Cuts a server's output into replies, of RESP2 and RESP3, without keeping or looking into what they hold. */
export class ReplySplitter {
  #line: Buffer = Buffer.alloc(0);
  #type = '';
  /** Values that are still to come, at every level of nesting. */
  #open: number[] = [];
  /** Bytes of a text that are still to come, with its line end. */
  #body = 0;

  /** Whether a reply has begun and not ended. */
  get isAmid(): boolean {
    return this.#type !== '';
  }

  /** @throws RespError */
  push(chunk: Buffer): ReplyPiece[] {
    const pieces: ReplyPiece[] = [];
    let start = 0;
    let at = 0;
    while (at < chunk.length) {
      if (this.#body > 0) {
        const taken = Math.min(this.#body, chunk.length - at);
        this.#body -= taken;
        at += taken;
        if (this.#body === 0 && this.#valueEnded()) {
          pieces.push(this.#ended(chunk.subarray(start, at)));
          start = at;
        }
        continue;
      }
      const newline = chunk.indexOf('\n', at);
      const upTo = newline < 0 ? chunk.length : newline + 1;
      this.#line = Buffer.concat([this.#line, chunk.subarray(at, upTo)]);
      if (this.#line.length > longestLine) {
        throw new RespError('a line is too long');
      }
      at = upTo;
      if (newline < 0) {
        break;
      }
      const line = this.#line;
      this.#line = Buffer.alloc(0);
      if (this.#header(line.toString('latin1', 0, line.length - 2))) {
        pieces.push(this.#ended(chunk.subarray(start, at)));
        start = at;
      }
    }
    if (start < chunk.length) {
      pieces.push({ bytes: chunk.subarray(start), isEnd: false, type: this.#type });
    }
    return pieces;
  }

  /** Takes the first line of a value; whether the whole reply ends with it. */
  #header(line: string): boolean {
    const [mark = ''] = line;
    if (this.#type === '') {
      this.#type = mark;
    }
    switch (mark) {
      case '+':
      case '-':
      case ':':
      case '_':
      case '#':
      case ',':
      case '(':
        return this.#valueEnded();
      case '$':
      case '!':
      case '=': {
        const length = Number(line.slice(1));
        if (!Number.isInteger(length)) {
          throw new RespError('a length is no number');
        }
        if (length < 0) {
          return this.#valueEnded();
        }
        this.#body = length + 2;
        return false;
      }
      case '*':
      case '~':
      case '>':
      case '%':
      case '|': {
        const count = Number(line.slice(1));
        if (!Number.isInteger(count)) {
          throw new RespError('a count is no number');
        }
        const values = mark === '%' || mark === '|' ? count * 2 : count;
        // A `|` holds attributes of the value that follows it: both form one value.
        if (mark === '|') {
          this.#open.push(2);
        }
        if (values <= 0) {
          return this.#valueEnded();
        }
        this.#open.push(values);
        if (this.#open.length > 100) {
          throw new RespError('a reply is nested too deeply');
        }
        return false;
      }
      default:
        throw new RespError(`a value begins with ${JSON.stringify(mark)}`);
    }
  }

  /** One value is complete; whether the whole reply is. */
  #valueEnded(): boolean {
    while (this.#open.length > 0) {
      const left = (this.#open.pop() ?? 1) - 1;
      if (left > 0) {
        this.#open.push(left);
        return false;
      }
    }
    return true;
  }

  #ended(bytes: Buffer): ReplyPiece {
    const type = this.#type;
    this.#type = '';
    return { bytes, isEnd: true, type };
  }
}

/** A command as clients send it. */
export function encodeCommand(words: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat([Buffer.from(`*${words.length}\r\n`), ...words.map(bulk)]);
}

/** A text of any bytes. */
export function bulk(value: string | Buffer): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** What stands for a value that does not exist, in RESP2, which clients of RESP3 read as well. */
export const noValue = Buffer.from('$-1\r\n');

/** A push of RESP3, or what stands for it in RESP2; numbers are counts. */
export function pushOf(protocol: 2 | 3, values: readonly (string | number)[]): Buffer {
  const parts = values.map((value) => (typeof value === 'number' ? Buffer.from(`:${value}\r\n`) : bulk(value)));
  return Buffer.concat([Buffer.from(`${protocol === 3 ? '>' : '*'}${values.length}\r\n`), ...parts]);
}

/** An error that a client shows. */
export function errorReply(message: string): Buffer {
  return Buffer.from(`-ERR ${message.replaceAll(/[\r\n]/g, ' ')}\r\n`);
}

function lineAt(buffer: Buffer, start: number): { text: string; end: number } | undefined {
  const newline = buffer.indexOf('\n', start);
  if (newline < 0) {
    if (buffer.length - start > longestLine) {
      throw new RespError('a line is too long');
    }
    return undefined;
  }
  if (newline === start || buffer[newline - 1] !== carriageReturn) {
    throw new RespError('a line has no proper end');
  }
  return { text: buffer.toString('latin1', start, newline - 1), end: newline + 1 };
}

function numberAfter(mark: string, text: string): number {
  if (!text.startsWith(mark) || !/^-?\d{1,10}$/.test(text.slice(1))) {
    throw new RespError(`${JSON.stringify(mark)} and a number expected`);
  }
  return Number(text.slice(1));
}
