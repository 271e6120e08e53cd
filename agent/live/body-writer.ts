import { EventEmitter, once } from 'node:events';
import { onAbort } from '../../lib/base/index.ts';
import type { BufferSweep } from '../../lib/live/index.ts';
import { type ClientLiveStream, LogStreamData } from '../../lib/wire/index.ts';
import type { RequestContext } from './requests.ts';

/** Frames are no longer than this, so that other streams of the connection get their turn. */
const frameBytes = 128 * 1024;

/** The reader of the stream has gone. */
export class ReaderGoneError extends Error {
  override readonly name = 'ReaderGoneError';
}

/** Sends bytes to the principal over a live stream of logs, as fast as they are read there. */
export class BodyWriter {
  readonly #uuid: string;
  readonly #sweep: BufferSweep;
  readonly #events = new EventEmitter<{ moved: [] }>();
  #stream: ClientLiveStream<LogStreamData> | undefined;
  #isOver = false;

  private constructor(uuid: string, sweep: BufferSweep) {
    this.#uuid = uuid;
    this.#sweep = sweep;
  }

  /** Opens the stream. @throws GrpcError when the connection is gone */
  static async open(
    uuid: string,
    { live, signal, abandon }: Pick<RequestContext, 'live' | 'signal' | 'abandon'>,
    sweep: BufferSweep,
  ): Promise<BodyWriter> {
    const writer = new BodyWriter(uuid, sweep);
    const stream = await live.logs({
      message: () => undefined,
      closed: () => {
        writer.#isOver = true;
        writer.#events.emit('moved');
        abandon();
      },
    });
    writer.#stream = stream;
    stream.onDrain(() => writer.#events.emit('moved'));
    onAbort(signal, () => stream.cancel());
    // The first message identifies the stream to the principal, before any data exists.
    stream.send(LogStreamData.fromPartial({ requestUuid: uuid }));
    return writer;
  }

  /** Sends bytes; resolves when more can be taken. @throws ReaderGoneError */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += frameBytes) {
      const data = Buffer.from(bytes.buffer, bytes.byteOffset + at, Math.min(frameBytes, bytes.length - at));
      if (this.#isOver) {
        throw new ReaderGoneError('nobody reads the answer any more');
      }
      const hasRoom = this.#stream?.send(LogStreamData.fromPartial({ requestUuid: this.#uuid, data }));
      this.#sweep.passed(data.length);
      if (!hasRoom && !this.#isOver) {
        await once(this.#events, 'moved');
      }
    }
  }

  /** Ends the stream, complete or with an error. */
  end(error = ''): void {
    this.#stream?.send(LogStreamData.fromPartial({ requestUuid: this.#uuid, eof: true, error }));
    this.#stream?.halfClose();
  }
}
