import { createReadStream, createWriteStream, mkdirSync, type WriteStream } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** So much of a file is read at a time. */
const pieceBytes = 64 * 1024;

/** Which part of a log is wanted; the query parameters of a kubelet's `containerLogs`. */
export interface LogQuery {
  follow: boolean;
  timestamps: boolean;
  /** Only the last so many lines. */
  tailLines?: number | undefined;
  /** Only lines from this moment on, in milliseconds since the epoch. */
  since?: number | undefined;
  limitBytes?: number | undefined;
}

/**
 * The output of one run of a container, in a file whose lines are `time stream F text` as container runtimes write
 * them.
 */
export class ContainerLog {
  readonly path: string;
  readonly #file: WriteStream;
  readonly #followers = new Set<(line: string | undefined) => void>();
  #open = 0;
  #ended = false;

  constructor(path: string) {
    mkdirSync(dirname(path), { recursive: true });
    this.path = path;
    this.#file = createWriteStream(path, { flags: 'a' });
  }

  /** Records all lines of both streams, and ends with them. */
  record(stdout: Readable, stderr: Readable): void {
    this.#record(stdout, 'stdout');
    this.#record(stderr, 'stderr');
  }

  #record(stream: Readable, name: string): void {
    this.#open++;
    const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
    lines.on('line', (text) => this.#write(`${new Date().toISOString()} ${name} F ${text}`));
    lines.on('close', () => {
      this.#open--;
      if (this.#open === 0) {
        this.end();
      }
    });
  }

  /** Ends the log; followers get what there is and end too. */
  end(): void {
    if (this.#ended) {
      return;
    }
    this.#ended = true;
    this.#file.end();
    for (const follower of this.#followers) {
      follower(undefined);
    }
  }

  /** The lines asked for, each with its line end; several at a time where there are several. */
  async *read(query: LogQuery, signal: AbortSignal): AsyncGenerator<string> {
    let left = query.limitBytes ?? Number.POSITIVE_INFINITY;
    const shown = (lines: readonly string[]): string => {
      let text = '';
      for (const line of lines) {
        const gap = line.indexOf(' ');
        const time = line.slice(0, gap);
        if (query.since !== undefined && Date.parse(time) < query.since) {
          continue;
        }
        const one = `${query.timestamps ? `${time} ` : ''}${textOf(line)}\n`.slice(0, left);
        left -= one.length;
        text += one;
        if (left <= 0) {
          break;
        }
      }
      return text;
    };
    // Following starts before the file is read, so that no line falls between the two.
    const news: (string | undefined)[] = this.#ended ? [undefined] : [];
    let wake: () => void = () => undefined;
    const follower = (line: string | undefined) => {
      news.push(line);
      wake();
    };
    const aborted = () => follower(undefined);
    this.#followers.add(follower);
    signal.addEventListener('abort', aborted, { once: true });
    try {
      let last: string | undefined;
      for await (const lines of this.#old(query.tailLines)) {
        last = lines.at(-1) ?? last;
        const text = shown(lines);
        if (text) {
          yield text;
        }
        if (left <= 0) {
          return;
        }
      }
      // A line that came while the file was read is in both.
      const seen = last === undefined ? -1 : news.lastIndexOf(last);
      news.splice(0, seen + 1);
      while (query.follow && !signal.aborted) {
        if (news.length === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        const end = news.indexOf(undefined);
        const text = shown((end < 0 ? news.splice(0) : news.slice(0, end)) as string[]);
        if (text) {
          yield text;
        }
        if (end >= 0 || left <= 0) {
          return;
        }
      }
    } finally {
      this.#followers.delete(follower);
      signal.removeEventListener('abort', aborted);
    }
  }

  /** The last lines as plain text, for a termination message. */
  async tail(lines: number): Promise<string> {
    return (await this.#tail(lines)).map(textOf).join('\n');
  }

  #write(line: string): void {
    if (this.#ended) {
      return;
    }
    this.#file.write(`${line}\n`);
    for (const follower of this.#followers) {
      follower(line);
    }
  }

  /** The lines that are in the file, all or the last ones, in pieces of the file. */
  async *#old(count: number | undefined): AsyncGenerator<readonly string[]> {
    if (count !== undefined) {
      yield await this.#tail(count);
      return;
    }
    await this.#written();
    let rest = '';
    for await (const text of createReadStream(this.path, { encoding: 'utf8', highWaterMark: pieceBytes })) {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      yield lines;
    }
    if (rest !== '') {
      yield [rest];
    }
  }

  async #tail(count: number): Promise<string[]> {
    if (count === 0) {
      return [];
    }
    await this.#written();
    const lines: string[] = [];
    for await (const line of createInterface({ input: createReadStream(this.path) })) {
      lines.push(line);
      if (lines.length > count) {
        lines.shift();
      }
    }
    return lines;
  }

  /** Resolves when all that was recorded so far is in the file. */
  async #written(): Promise<void> {
    if (this.#file.closed) {
      return;
    }
    await new Promise<void>((resolve) =>
      this.#ended ? this.#file.once('close', resolve) : this.#file.write('', () => resolve()),
    );
  }
}

/** What the container wrote. */
function textOf(line: string): string {
  // time stream F text
  const stream = line.indexOf(' ') + 1;
  const mark = line.indexOf(' ', stream) + 1;
  return line.slice(line.indexOf(' ', mark) + 1);
}
