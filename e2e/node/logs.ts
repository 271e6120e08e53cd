import { createReadStream, createWriteStream, mkdirSync, type WriteStream } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

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
      if (this.#open === 0) this.end();
    });
  }

  /** Ends the log; followers get what there is and end too. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#file.end();
    for (const follower of this.#followers) follower(undefined);
  }

  /** The lines asked for, each with its line end. */
  async *read(query: LogQuery, signal: AbortSignal): AsyncGenerator<string> {
    let left = query.limitBytes ?? Number.POSITIVE_INFINITY;
    const shown = (line: string): string | undefined => {
      const [time = '', , , ...rest] = line.split(' ');
      if (query.since !== undefined && Date.parse(time) < query.since) return undefined;
      const text = `${query.timestamps ? `${time} ` : ''}${rest.join(' ')}\n`.slice(0, left);
      left -= text.length;
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
      const old = await this.#tail(query.tailLines);
      // A line that came while the file was read is in both.
      const last = old.at(-1);
      const seen = last === undefined ? -1 : news.lastIndexOf(last);
      news.splice(0, seen + 1);
      for (const line of old) {
        const text = shown(line);
        if (text) yield text;
        if (left <= 0) return;
      }
      while (query.follow && !signal.aborted) {
        if (news.length === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        const line = news.shift();
        if (line === undefined) return;
        const text = shown(line);
        if (text) yield text;
        if (left <= 0) return;
      }
    } finally {
      this.#followers.delete(follower);
      signal.removeEventListener('abort', aborted);
    }
  }

  /** The last lines as plain text, for a termination message. */
  async tail(lines: number): Promise<string> {
    return (await this.#tail(lines)).map((line) => line.split(' ').slice(3).join(' ')).join('\n');
  }

  #write(line: string): void {
    if (this.#ended) return;
    this.#file.write(`${line}\n`);
    for (const follower of this.#followers) follower(line);
  }

  async #tail(count: number | undefined): Promise<string[]> {
    if (count === 0) return [];
    if (!this.#file.closed)
      await new Promise<void>((resolve) =>
        this.#ended ? this.#file.once('close', resolve) : this.#file.write('', () => resolve()),
      );
    const lines: string[] = [];
    for await (const line of createInterface({ input: createReadStream(this.path) })) {
      lines.push(line);
      if (count !== undefined && lines.length > count) lines.shift();
    }
    return lines;
  }
}
