/** A peer violates Redis' protocol or exceeds a limit. */
export class RespError extends Error {
  override readonly name = 'RespError';
}

/** Limits of one command. */
interface CommandLimits {
  readonly words: number;
  /** Bytes of one word. */
  readonly wordBytes: number;
  /** Bytes of all words. */
  readonly bytes: number;
}

/** Words and their sizes: Redis' own limits for a client that has not authenticated (`authRequired` in its networking.c). */
const strangerLimits: CommandLimits = { words: 10, wordBytes: 16 * 1024, bytes: 64 * 1024 };
/** Argo CD stores manifests and trees of some megabytes. */
const clientLimits: CommandLimits = { words: 10_000, wordBytes: 64 * 1024 * 1024, bytes: 64 * 1024 * 1024 };
/** Longest first line of a command or of a word: a mark, a number of ten digits and the line end need 13 bytes. */
const longestHeader = 32;
/** Longest line of a reply: errors and statuses. */
const longestLine = 64 * 1024;
/** Longest first element of a reply that is reported: `punsubscribe` has 12 bytes. */
const longestKind = 16;
const newline = 10;
const carriageReturn = 13;
const nothing = Buffer.alloc(0);

/**
 * Reads commands of a Redis client: arrays of bulk strings, cut anywhere. Inline commands, which only people type, are
 * refused. Until {@link accept} is called, the limits are Redis' own for clients that have not authenticated.
 */
export class CommandReader {
  #limits = strangerLimits;
  /** Received bytes are in `#buffer` from `#start` to `#end`. Bytes in it never change: words are parts of it. */
  #buffer: Buffer = nothing;
  #start = 0;
  #end = 0;
  /** Bytes without which the next step is impossible. */
  #needed = 0;
  #missing = 0;
  #words: Buffer[] = [];
  #bytes = 0;

  /** Bytes that were received and not yet read as commands. */
  get size(): number {
    return this.#end - this.#start;
  }

  /** Redis has accepted the client: the limits of an authenticated client apply from now on. */
  accept(): void {
    this.#limits = clientLimits;
  }

  /** Takes received bytes. */
  push(chunk: Buffer): void {
    if (this.size === 0) {
      this.#buffer = chunk;
      this.#start = 0;
      this.#end = chunk.length;
      return;
    }
    const size = this.size + chunk.length;
    if (this.#end + chunk.length > this.#buffer.length) {
      // Twice the size, so that each byte is copied a constant number of times on average, however small the chunks are.
      const larger = Buffer.allocUnsafeSlow(2 * size);
      this.#buffer.copy(larger, 0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.#end);
    this.#end += chunk.length;
  }

  /** The next command, as the list of its words; undefined when it is incomplete. @throws RespError */
  next(): Buffer[] | undefined {
    while (this.size > 0 && this.size >= this.#needed) {
      const command = this.#step();
      if (command !== undefined) {
        return command;
      }
    }
    return undefined;
  }

  /** Reads the header of a command, or one word; sets `#needed` when it is incomplete. Returns a command that is complete. */
  #step(): Buffer[] | undefined {
    const header = this.#header();
    if (header === undefined) {
      this.#needed = this.size + 1;
      return undefined;
    }
    const { text, length: headerLength } = header;
    if (this.#missing === 0) {
      const count = numberAfter('*', text);
      if (count > this.#limits.words) {
        throw new RespError(`a command of ${count} words: at most ${this.#limits.words} are allowed`);
      }
      this.#missing = Math.max(0, count);
      this.#consume(headerLength);
      return undefined;
    }
    const length = numberAfter('$', text);
    if (length < 0 || length > this.#limits.wordBytes || this.#bytes + length > this.#limits.bytes) {
      throw new RespError(`a word of ${length} bytes: at most ${this.#limits.wordBytes} are allowed`);
    }
    const end = headerLength + length;
    if (this.size < end + 2) {
      this.#needed = end + 2;
      return undefined;
    }
    this.#words.push(this.#buffer.subarray(this.#start + headerLength, this.#start + end));
    this.#bytes += length;
    this.#missing--;
    this.#consume(end + 2);
    if (this.#missing > 0) {
      return undefined;
    }
    const words = this.#words;
    this.#words = [];
    this.#bytes = 0;
    return words;
  }

  /** The line at the start, without its end; undefined when it is incomplete. */
  #header(): { readonly text: string; readonly length: number } | undefined {
    const most = Math.min(this.#end, this.#start + longestHeader);
    const at = this.#buffer.subarray(this.#start, most).indexOf(newline);
    if (at < 0) {
      if (this.size >= longestHeader) {
        throw new RespError('a line is too long');
      }
      return undefined;
    }
    if (at === 0 || this.#buffer[this.#start + at - 1] !== carriageReturn) {
      throw new RespError('a line has no proper end');
    }
    return { text: this.#buffer.toString('latin1', this.#start, this.#start + at - 1), length: at + 1 };
  }

  #consume(bytes: number): void {
    this.#start += bytes;
    this.#needed = 0;
    if (this.size === 0) {
      this.#buffer = nothing;
      this.#start = 0;
      this.#end = 0;
    }
  }
}

/** A part of a server's output. */
export interface ReplyPiece {
  readonly bytes: Buffer;
  /** Whether a reply or push ends with it. */
  readonly isEnd: boolean;
  /** The first byte of that reply: `-` and `!` are errors, `>` is a push, which answers no command. */
  readonly type: string;
  /**
   * The first element of an array or push if it is a short string, as in messages of channels; the code of an error, which is in
   * capitals (`EXECABORT`); otherwise empty.
   */
  readonly kind: string;
}

/**
 * Cuts a server's output into replies, of RESP2 and RESP3, without keeping or looking into their values. The first piece of a
 * reply comes when its type and kind are known.
 */
export class ReplySplitter {
  #line: Buffer = nothing;
  #type = '';
  #kind: string | undefined;
  /** The first element of an array or push, which becomes its kind; undefined when no such element is being read. */
  #first: Buffer[] | undefined;
  /** Bytes of a reply whose kind is not known yet. */
  #held: Buffer[] = [];
  /** Values that are still to come, at every level of nesting. */
  #open: number[] = [];
  /** Bytes of a string that are still to come, with its line end. */
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
      const before = at;
      let hasEnded: boolean;
      if (this.#body > 0) {
        at += Math.min(this.#body, chunk.length - at);
        hasEnded = this.#bodyPart(chunk.subarray(before, at));
      } else {
        const end = chunk.indexOf(newline, at);
        at = end < 0 ? chunk.length : end + 1;
        hasEnded = this.#linePart(chunk.subarray(before, at), end >= 0);
      }
      if (hasEnded) {
        pieces.push(this.#piece(chunk.subarray(start, at), true));
        this.#type = '';
        this.#kind = undefined;
        start = at;
      }
    }
    if (start < chunk.length) {
      const rest = chunk.subarray(start);
      if (this.#kind === undefined) {
        this.#held.push(rest);
      } else {
        pieces.push(this.#piece(rest, false));
      }
    }
    return pieces;
  }

  #piece(bytes: Buffer, isEnd: boolean): ReplyPiece {
    const held = this.#held;
    this.#held = [];
    return {
      bytes: held.length === 0 ? bytes : Buffer.concat([...held, bytes]),
      isEnd,
      type: this.#type,
      kind: this.#kind ?? '',
    };
  }

  /** Takes bytes of a string; whether the whole reply ends with them. */
  #bodyPart(bytes: Buffer): boolean {
    this.#body -= bytes.length;
    this.#first?.push(bytes);
    if (this.#body > 0) {
      return false;
    }
    if (this.#first !== undefined) {
      this.#kind = Buffer.concat(this.#first).toString('latin1').slice(0, -2);
      this.#first = undefined;
    }
    return this.#valueEnded();
  }

  /** Takes bytes of a line; whether the whole reply ends with them. */
  #linePart(bytes: Buffer, isComplete: boolean): boolean {
    const line = this.#line.length === 0 ? bytes : Buffer.concat([this.#line, bytes]);
    if (line.length > longestLine) {
      throw new RespError('a line is too long');
    }
    this.#line = isComplete ? nothing : line;
    return isComplete && this.#header(line.toString('latin1', 0, line.length - 2));
  }

  /** Takes the first line of a value; whether the whole reply ends with it. */
  #header(line: string): boolean {
    const [mark = ''] = line;
    const isFirstElement = this.#type !== '' && this.#kind === undefined;
    if (this.#type === '') {
      this.#type = mark;
      this.#kind = mark === '*' || mark === '>' ? undefined : (/^-([A-Z]+)/.exec(line)?.[1] ?? '');
    }
    switch (mark) {
      case '+':
      case '-':
      case ':':
      case '_':
      case '#':
      case ',':
      case '(':
        if (isFirstElement) {
          this.#kind = '';
        }
        return this.#valueEnded();
      case '$':
      case '!':
      case '=': {
        const length = Number(line.slice(1));
        if (!Number.isInteger(length)) {
          throw new RespError('a length is no number');
        }
        if (isFirstElement && mark === '$' && length >= 0 && length <= longestKind) {
          this.#first = [];
        } else if (isFirstElement) {
          this.#kind = '';
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
        if (isFirstElement || count <= 0) {
          this.#kind ??= '';
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
}

/** A command as clients send it. */
export function encodeCommand(words: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat([Buffer.from(`*${words.length}\r\n`), ...words.map(bulk)]);
}

/** A string of any bytes. */
export function bulk(value: string | Buffer): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** The reply for a value that does not exist, in RESP2. Clients of RESP3 read it as well. */
export const noValue = Buffer.from('$-1\r\n');

/** A push of RESP3, or the array that RESP2 has in its place. */
export function pushOf(protocol: 2 | 3, values: readonly string[]): Buffer {
  return Buffer.concat([Buffer.from(`${protocol === 3 ? '>' : '*'}${values.length}\r\n`), ...values.map(bulk)]);
}

/** An error that a client shows. */
export function errorReply(message: string): Buffer {
  return Buffer.from(`-ERR ${message.replaceAll(/[\r\n]/g, ' ')}\r\n`);
}

function numberAfter(mark: string, text: string): number {
  if (!text.startsWith(mark) || !/^-?\d{1,10}$/.test(text.slice(1))) {
    throw new RespError(`${JSON.stringify(mark)} and a number expected`);
  }
  return Number(text.slice(1));
}
