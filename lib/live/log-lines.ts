/** A position in a log: the time of the last line that was passed on, and how many lines of just that time there were. */
export interface LogPosition {
  /** Nanoseconds since the epoch. */
  readonly time: bigint;
  readonly lines: number;
}

/** Longest part of a line that is waited for; what is longer is passed on in pieces. */
const longestLine = 1024 * 1024;
const newline = 10;
const space = 32;

/**
 * Lines of a log that begin with their time, as Kubernetes writes them with `timestamps=true`, on their way to a reader: without
 * times for one who did not ask for them, and without those that the reader has already when a log is taken up again after a break.
 */
export class LogLines {
  readonly #withTimes: boolean;
  #rest: Buffer = Buffer.alloc(0);
  #isInLongLine = false;
  #position: LogPosition | undefined;
  /** What the reader had when the log was taken up again; lines up to there are left out. */
  #known: LogPosition | undefined;
  #skippedAtKnown = 0;

  /** @param withTimes whether the reader asked for the times */
  constructor(withTimes: boolean) {
    this.#withTimes = withTimes;
  }

  /** Where the reader is; undefined before the first line. */
  get position(): LogPosition | undefined {
    return this.#position;
  }

  /** The log begins anew, somewhere at or before where the reader is. A line that broke off comes again whole. */
  resumed(): void {
    this.#rest = Buffer.alloc(0);
    this.#isInLongLine = false;
    this.#known = this.#position;
    this.#skippedAtKnown = 0;
  }

  /** Takes bytes as they come; what of them is for the reader, in whole lines. */
  push(bytes: Buffer): Buffer {
    const text = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const out: Buffer[] = [];
    let start = 0;
    for (let end = text.indexOf(newline); end >= 0; end = text.indexOf(newline, start)) {
      this.#line(text.subarray(start, end + 1), out);
      start = end + 1;
    }
    this.#rest = text.subarray(start);
    if (this.#rest.length > longestLine) {
      this.#line(this.#rest, out);
      this.#isInLongLine = true;
      this.#rest = Buffer.alloc(0);
    }
    return Buffer.concat(out);
  }

  /** What is left when the log ends without an end of line. */
  end(): Buffer {
    const out: Buffer[] = [];
    if (this.#rest.length > 0) this.#line(this.#rest, out);
    this.#rest = Buffer.alloc(0);
    return Buffer.concat(out);
  }

  #line(line: Buffer, out: Buffer[]): void {
    if (this.#isInLongLine) {
      this.#isInLongLine = line.at(-1) !== newline;
      out.push(line);
      return;
    }
    const gap = line.indexOf(space);
    const time = gap < 0 ? undefined : nanoseconds(line.toString('latin1', 0, Math.min(gap, 64)));
    // A line without a time is none of the log's, such as a message of the kubelet: it cannot be told apart from its repetition.
    if (time === undefined) {
      if (this.#known === undefined) out.push(line);
      return;
    }
    if (this.#isKnown(time)) return;
    const isSameTime = this.#position?.time === time;
    this.#position = { time, lines: isSameTime ? (this.#position?.lines ?? 0) + 1 : 1 };
    out.push(this.#withTimes ? line : line.subarray(gap + 1));
  }

  #isKnown(time: bigint): boolean {
    const known = this.#known;
    if (known === undefined) return false;
    if (time < known.time) return true;
    if (time === known.time && this.#skippedAtKnown < known.lines) {
      this.#skippedAtKnown++;
      return true;
    }
    return false;
  }
}

/** The time from which a log has to be asked for to take it up again at a position: Kubernetes knows whole seconds. */
export function sinceTimeOf({ time }: LogPosition): string {
  return new Date(Number(time / 1_000_000_000n) * 1_000).toISOString().replace('.000Z', 'Z');
}

/** Nanoseconds since the epoch of an RFC 3339 time with up to nine decimals; undefined for anything else. */
function nanoseconds(text: string): bigint | undefined {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (match === null) return undefined;
  const [, seconds = '', fraction = '', zone = ''] = match;
  const milliseconds = Date.parse(seconds + zone);
  if (Number.isNaN(milliseconds)) return undefined;
  return BigInt(milliseconds) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}
