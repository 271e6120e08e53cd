import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import { Backoff } from '../../lib/base/index.ts';
import { notWritable, ToolError } from './error.ts';
import { type HttpAnswer, httpGet, networkReason } from './http.ts';

/** A file that a project has published, and how to know it. */
export interface PublishedFile {
  readonly url: string;
  /** In hexadecimal digits. */
  readonly sha256: string;
  /** Its size, where that is known. */
  readonly bytes?: number | undefined;
}

/** What a download says meanwhile, and when it gives up. */
export interface DownloadOptions {
  /** Begins the lines of the log. */
  readonly name: string;
  readonly signal?: AbortSignal | undefined;
  /** Gets a line at the beginning and every few seconds. */
  readonly log: (line: string) => void;
  /** The longest time without a byte, in milliseconds; the pauses between tries begin with a fortieth of it. Default 20,000. */
  readonly silenceMs?: number | undefined;
}

/** No file is larger. The largest today is Argo CD's with 250 MB. */
export const mostProgramBytes = 1_000_000_000;
/** A download ends with as many failures in a row, when the later ones brought no byte, and with as many in all. */
const mostFailures = { inARow: 4, inAll: 20 };

/**
 * Brings a published file to a path, where it appears only when its checksum is right. What came before a connection broke
 * or a process ended stays in a file beside it, `<path>.part`, and the next try goes on from there. If the pieces of several
 * tries make a wrong file, it is loaded once more from its beginning.
 * @returns how many bytes came
 * @throws ToolError that says why there is no file: wrong bytes, an answer that is no file, no network, a full disk
 */
export async function download(file: PublishedFile, path: string, options: DownloadOptions): Promise<number> {
  const { name, log } = options;
  const transfer = new Transfer(file, `${path}.part`, options);
  log(`${name}: downloading ${file.url}`);
  const progress = setInterval(() => log(`${name}: downloading, ${transfer.progress()}`), 5000);
  const copy = `${path}.${randomUUID()}`;
  try {
    await transfer.complete();
    let isRight = await transfer.copyTo(copy);
    if (!isRight && transfer.hasPieces) {
      log(`${name}: the pieces of several tries make a wrong file; it is loaded again from its beginning`);
      await transfer.discard();
      await transfer.complete();
      isRight = await transfer.copyTo(copy);
    }
    await transfer.discard();
    if (!isRight) {
      throw failed(file, `what came has not the published SHA-256 ${file.sha256}, and was thrown away`);
    }
    await rename(copy, path);
  } finally {
    clearInterval(progress);
    await rm(copy, { force: true });
  }
  return transfer.received;
}

/** A file on its way. */
class Transfer {
  readonly part: string;
  /** Bytes that came from the network. */
  received = 0;
  /** Whether what is there came in more than one piece. */
  hasPieces = false;
  readonly #file: PublishedFile;
  readonly #options: DownloadOptions;
  #size = 0;
  #total: number | undefined;
  #last = { received: 0, at: performance.now() };

  constructor(file: PublishedFile, part: string, options: DownloadOptions) {
    this.#file = file;
    this.#options = options;
    this.part = part;
  }

  /** Loads what is missing, in as many pieces as it takes. */
  async complete(): Promise<void> {
    const { signal, silenceMs = 20_000 } = this.#options;
    const backoff = new Backoff({ initialMs: silenceMs / 40 });
    for (let failures = 1; ; failures++) {
      const before = this.received;
      try {
        await this.#load();
        return;
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof ToolError) {
          throw error;
        }
        if (this.received > before) {
          backoff.reset();
        }
        const delay = backoff.next();
        if (backoff.failures === mostFailures.inARow || failures === mostFailures.inAll) {
          const rest = this.#size > 0 ? `, after ${this.progress()}; the next download goes on from there` : '';
          throw failed(this.#file, `${networkReason(error)}${rest}`);
        }
        await setTimeout(delay, undefined, { signal });
      }
    }
  }

  /**
   * Copies what is there; whether the copy is the published file. What was copied is what was checked: another process that has
   * the part open may still write to it.
   */
  async copyTo(path: string): Promise<boolean> {
    const hash = createHash('sha256');
    const checked = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    };
    await pipeline(createReadStream(this.part), checked, createWriteStream(path), this.#signal());
    return hash.digest('hex') === this.#file.sha256;
  }

  /** Throws away what is there. */
  async discard(): Promise<void> {
    await rm(this.part, { force: true });
    this.#size = 0;
  }

  /** How far it is, for people: `1.2 of 2.4 MB (50 %), 1.0 MB/s`. */
  progress(): string {
    const now = performance.now();
    const rate = (this.received - this.#last.received) / (now - this.#last.at) / 1000;
    this.#last = { received: this.received, at: now };
    const of = this.#total
      ? ` of ${inMegabytes(this.#total)} MB (${Math.floor((100 * this.#size) / this.#total)} %)`
      : ' MB';
    return `${inMegabytes(this.#size)}${of}, ${rate.toFixed(1)} MB/s`;
  }

  async #load(): Promise<void> {
    this.#size = await sizeOf(this.part);
    const headers = this.#size > 0 ? { range: `bytes=${this.#size}-` } : {};
    const { silenceMs } = this.#options;
    await httpGet(this.#file.url, { headers, silenceMs, ...this.#signal() }, async (answer) => {
      if (answer.status === 416 && answer.headers['content-range'] === `bytes */${this.#size}`) {
        // There is nothing after what is there already.
        this.hasPieces = true;
      } else if (answer.status === 416) {
        await this.discard();
        throw new Error('the file is shorter than what came before');
      } else {
        refuseOthers(this.#file, answer);
        await this.#save(answer);
      }
    });
  }

  async #save({ status, headers, body }: HttpAnswer): Promise<void> {
    this.hasPieces = status === 206;
    if (!this.hasPieces) {
      this.#size = 0;
    } else if (!headers['content-range']?.startsWith(`bytes ${this.#size}-`)) {
      throw failed(this.#file, `it sent another part than it was asked for: ${headers['content-range']}`);
    }
    const length = headers['content-length'];
    this.#total = length === undefined ? this.#file.bytes : this.#size + Number(length);
    const most = this.#file.bytes ?? mostProgramBytes;
    const tooLarge = () =>
      failed(
        this.#file,
        `it has more than the ${most} bytes that ${this.#file.bytes ? 'were published' : 'a program may have'}`,
      );
    if (this.#total !== undefined && this.#total > most) {
      throw tooLarge();
    }
    const target = await open(this.part, this.hasPieces ? 'r+' : 'w');
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        if (this.#size + chunk.length > most) {
          throw tooLarge();
        }
        await target.write(chunk, 0, chunk.length, this.#size).catch((error) => {
          throw notWritable(this.part, error);
        });
        this.#size += chunk.length;
        this.received += chunk.length;
      }
    } finally {
      await target.close();
    }
  }

  #signal(): { signal?: AbortSignal } {
    return this.#options.signal ? { signal: this.#options.signal } : {};
  }
}

/** @throws ToolError for what another try does not change, Error for what it may */
function refuseOthers(file: PublishedFile, { status, headers }: HttpAnswer): void {
  if (status >= 500 || status === 408 || status === 429) {
    throw new Error(`it answered ${status}`);
  }
  if (status !== 200 && status !== 206) {
    throw failed(file, `it answered ${status}`);
  }
  if (headers['content-type']?.startsWith('text/html')) {
    throw failed(file, 'the answer is a web page and not the file, as of a proxy that wants a login');
  }
}

const failed = (file: PublishedFile, why: string) => new ToolError('DownloadFailed', `${file.url}: ${why}`);

/** The size of a file in bytes; 0 when there is none. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return 0;
    }
    throw error;
  }
}

/** A number of bytes in MB, for people. */
export const inMegabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1);
