/** A position in a log: the time of the last line that was passed on, and how many lines of just that time there were. */
export interface LogPosition {
  /** Nanoseconds since the epoch. */
  readonly time: bigint;
  readonly lines: number;
}

/** Longest part of a line that is buffered; longer lines are passed on in pieces. */
const longestLine = 1024 * 1024;
const newline = 10;
const none: Buffer = Buffer.alloc(0);

/**
 * Lines of a log that begin with their time, as Kubernetes writes them with `timestamps=true`, on their way to a reader: without
 * times for one who did not ask for them, and without those that the reader has already when a log is taken up again after a break.
 */
export class LogLines {
  readonly #withTimes: boolean;
  readonly #time = new LineTime();
  #rest: Buffer = none;
  #isInLongLine = false;
  #position: LogPosition | undefined;
  /** The reader's position when the log was resumed; lines up to it are left out. */
  #known: LogPosition | undefined;
  #skippedAtKnown = 0;

  /** @param withTimes whether the reader asked for the times */
  constructor(withTimes: boolean) {
    this.#withTimes = withTimes;
  }

  /** Where the reader is; undefined before the first line. It is another object whenever the reader has got on. */
  get position(): LogPosition | undefined {
    return this.#position;
  }

  /** The log was resumed at or before the reader's position. An interrupted line is sent again in full. */
  resumed(): void {
    this.#rest = none;
    this.#isInLongLine = false;
    this.#known = this.#position;
    this.#skippedAtKnown = 0;
  }

  /** Takes bytes as they come; what of them is for the reader, in whole lines. */
  push(bytes: Buffer): Buffer {
    const text = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const end = text.lastIndexOf(newline) + 1;
    this.#rest = text.subarray(end);
    const lines = this.#lines(text.subarray(0, end));
    if (this.#rest.length <= longestLine) {
      return lines;
    }
    const begun = this.#lines(this.#rest);
    this.#isInLongLine = true;
    this.#rest = none;
    return Buffer.concat([lines, begun]);
  }

  /** The rest of a log that ends without an end of line. */
  end(): Buffer {
    const rest = this.#rest;
    this.#rest = none;
    return this.#lines(rest);
  }

  /** What of these lines is for the reader; the last may have no end. */
  #lines(text: Buffer): Buffer {
    if (text.length === 0) {
      return none;
    }
    // Mostly all of it, as it is.
    if (this.#withTimes && this.#known === undefined && !this.#isInLongLine) {
      this.#lookBack(text);
      return text;
    }
    const out = Buffer.allocUnsafe(text.length);
    let length = 0;
    for (let start = 0; start < text.length; ) {
      const end = text.indexOf(newline, start) + 1 || text.length;
      const from = this.#shownFrom(text, start, end);
      if (from !== undefined) {
        length += text.copy(out, length, from, end);
      }
      start = end;
    }
    return out.subarray(0, length);
  }

  /** From where on a line is for the reader; undefined when nothing of it is. */
  #shownFrom(text: Buffer, start: number, end: number): number | undefined {
    if (this.#isInLongLine) {
      this.#isInLongLine = text[end - 1] !== newline;
      return start;
    }
    const time = this.#time;
    // A line without a time is not part of the log, such as a message of the kubelet. Its repetition cannot be detected.
    if (!time.read(text, start, end)) {
      return this.#known === undefined ? start : undefined;
    }
    if (this.#isKnown()) {
      return undefined;
    }
    if (this.#position !== undefined && time.is(this.#position.time)) {
      this.#position = { time: this.#position.time, lines: this.#position.lines + 1 };
    } else {
      this.#position = { time: time.value, lines: 1 };
    }
    return this.#withTimes ? start : time.end + 1;
  }

  /** Finds out where the reader is after these lines, from the last ones. */
  #lookBack(text: Buffer): void {
    let last: bigint | undefined;
    let lines = 0;
    for (let end = text.length; end > 0; ) {
      const start = end < 2 ? 0 : text.lastIndexOf(newline, end - 2) + 1;
      if (this.#time.read(text, start, end)) {
        last ??= this.#time.value;
        if (!this.#time.is(last)) {
          this.#position = { time: last, lines };
          return;
        }
        lines++;
      }
      end = start;
    }
    if (last === undefined) {
      return;
    }
    const before = this.#position?.time === last ? this.#position.lines : 0;
    this.#position = { time: last, lines: before + lines };
  }

  #isKnown(): boolean {
    const known = this.#known;
    if (known === undefined) {
      return false;
    }
    const { value } = this.#time;
    if (value === known.time && this.#skippedAtKnown < known.lines) {
      this.#skippedAtKnown++;
      return true;
    }
    // Lines are not always in the order of their times. What comes behind the reader's last line is new.
    return value < known.time && this.#skippedAtKnown < known.lines;
  }
}

/** The time from which a log has to be asked for to take it up again at a position: Kubernetes knows whole seconds. */
export function sinceTimeOf({ time }: LogPosition): string {
  return new Date(Number(time / 1_000_000_000n) * 1_000).toISOString().replace('.000Z', 'Z');
}

const [space, zulu, point, zero, nine] = [32, 90, 46, 48, 57];
/** `2026-11-21T10:00:00` */
const secondBytes = 19;
/** No time is longer. */
const longestTime = 64;
/** How much each of nine decimals counts. */
const decimals = Array.from({ length: 9 }, (_, place) => 10 ** (8 - place));

/** Reads the times at the start of lines. Most have the second of the line before; then only the fraction is parsed. */
class LineTime {
  readonly #second = Buffer.alloc(secondBytes);
  /** Nanoseconds since the epoch of that second, in UTC; undefined before the first. */
  #base: bigint | undefined;
  #nanoseconds = 0;
  #value: bigint | undefined;
  #end = 0;

  /** Nanoseconds since the epoch of the time that was read last. */
  get value(): bigint {
    this.#value ??= (this.#base ?? 0n) + BigInt(this.#nanoseconds);
    return this.#value;
  }

  /** Where it ended: at the space behind it. */
  get end(): number {
    return this.#end;
  }

  /** Whether it is this one. */
  is(time: bigint): boolean {
    return this.value === time;
  }

  /** Whether the line begins with a time: an RFC 3339 one with up to nine decimals, and a space. */
  read(text: Buffer, start: number, end: number): boolean {
    if (this.#base !== undefined && this.#hasSameSecond(text, start, end)) {
      let at = start + secondBytes;
      let nanoseconds = 0;
      if (text[at] === point) {
        at++;
        let place = 0;
        for (let digit = text[at] ?? 0; place < 9 && digit >= zero && digit <= nine; digit = text[at] ?? 0) {
          nanoseconds += (digit - zero) * (decimals[place++] as number);
          at++;
        }
        if (place === 0) {
          return this.#readSlowly(text, start, end);
        }
      }
      if (at + 1 < end && text[at] === zulu && text[at + 1] === space) {
        this.#nanoseconds = nanoseconds;
        this.#value = undefined;
        this.#end = at + 1;
        return true;
      }
    }
    return this.#readSlowly(text, start, end);
  }

  #hasSameSecond(text: Buffer, start: number, end: number): boolean {
    if (end - start < secondBytes) {
      return false;
    }
    // The last digits differ first.
    for (let at = secondBytes - 1; at >= 0; at--) {
      if (text[start + at] !== this.#second[at]) {
        return false;
      }
    }
    return true;
  }

  #readSlowly(text: Buffer, start: number, end: number): boolean {
    const head = text.toString('latin1', start, Math.min(end, start + longestTime + 1));
    const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) /.exec(head);
    if (match === null) {
      return false;
    }
    const [whole, second = '', fraction = '', zone = ''] = match;
    const milliseconds = Date.parse(second + zone);
    if (Number.isNaN(milliseconds)) {
      return false;
    }
    const base = BigInt(milliseconds) * 1_000_000n;
    this.#nanoseconds = Number(fraction.padEnd(9, '0'));
    this.#value = base + BigInt(this.#nanoseconds);
    this.#end = start + whole.length - 1;
    // With an offset from UTC the text of the second does not determine the time.
    this.#base = zone === 'Z' ? base : undefined;
    if (zone === 'Z') {
      this.#second.write(second, 'latin1');
    }
    return true;
  }
}
