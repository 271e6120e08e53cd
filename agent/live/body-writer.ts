import { EventEmitter, once } from 'node:events';
import { type ClientLiveStream, type LiveCalls, LogStreamData } from '../../lib/wire/index.ts';

/** Frames are no longer than this, so that other streams of the connection get their turn. */
const frameBytes = 64 * 1024;

/** Nobody reads the stream any more. */
export class ReaderGoneError extends Error {
  override readonly name = 'ReaderGoneError';
}

/** Sends bytes to the principal over a live stream of logs, as fast as they are read there. */
export class BodyWriter {
  readonly #uuid: string;
  readonly #events = new EventEmitter<{ moved: [] }>();
  #stream: ClientLiveStream<LogStreamData> | undefined;
  #isOver = false;

  private constructor(uuid: string) {
    this.#uuid = uuid;
  }

  /** Opens the stream. @throws GrpcError when the connection is gone */
  static async open(live: LiveCalls, uuid: string, signal: AbortSignal, gone: () => void): Promise<BodyWriter> {
    const writer = new BodyWriter(uuid);
    const stream = await live.logs({
      message: () => undefined,
      closed: () => {
        writer.#isOver = true;
        writer.#events.emit('moved');
        gone();
      },
    });
    writer.#stream = stream;
    stream.onDrain(() => writer.#events.emit('moved'));
    const cancel = () => stream.cancel();
    if (signal.aborted) cancel();
    signal.addEventListener('abort', cancel, { once: true });
    // Tells the principal what the stream is about, before there is anything to send.
    stream.send(LogStreamData.fromPartial({ requestUuid: uuid }));
    return writer;
  }

  /** Sends bytes; resolves when more can be taken. @throws ReaderGoneError */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += frameBytes) {
      const data = Buffer.from(bytes.buffer, bytes.byteOffset + at, Math.min(frameBytes, bytes.length - at));
      if (this.#isOver) throw new ReaderGoneError('nobody reads the answer any more');
      const hasRoom = this.#stream?.send(LogStreamData.fromPartial({ requestUuid: this.#uuid, data }));
      if (!hasRoom && !this.#isOver) await once(this.#events, 'moved');
    }
  }

  /** Says that all has been sent, or why there is no more. */
  end(error = ''): void {
    this.#stream?.send(LogStreamData.fromPartial({ requestUuid: this.#uuid, eof: true, error }));
    this.#stream?.halfClose();
  }
}
