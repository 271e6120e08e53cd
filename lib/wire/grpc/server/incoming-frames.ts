/** What a frame, or a piece of one, counts at least, in bytes: the library keeps each as an object. */
const leastPieceBytes = 256;
/** Two bytes, eight of a length, four of a mask. */
const maxHeaderBytes = 14;
const lastFrame = 0x80;
const controlFrame = 0x08;

/**
 * Follows the frames that a client sends over a WebSocket (RFC 6455), to know how much of a message has arrived: the library gathers it
 * without telling. Pings, pongs and closes are no part of a message. They may come amid one, and neither add to it nor end it.
 */
export class IncomingFrames {
  readonly #header = Buffer.alloc(maxHeaderBytes);
  #headerFilled = 0;
  /** Bytes of the current frame that are still to come; undefined amid its header. */
  #left: number | undefined;
  #incomplete = 0;

  /** The bytes of a message that has begun and is not complete, at least 256 for each frame and piece; otherwise 0. */
  get incompleteBytes(): number {
    return this.#incomplete;
  }

  /** Takes what has arrived, cut anywhere. */
  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      at = this.#left === undefined ? this.#takeHeader(chunk, at) : this.#takePayload(chunk, at, this.#left);
      if (this.#left === 0) {
        this.#endFrame();
      }
    }
  }

  get #isData(): boolean {
    return (this.#header.readUInt8(0) & controlFrame) === 0;
  }

  #takeHeader(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#headerBytes - this.#headerFilled);
    const isNew = this.#headerFilled === 0;
    this.#headerFilled += chunk.copy(this.#header, this.#headerFilled, at, end);
    if (isNew && this.#isData) {
      this.#incomplete += leastPieceBytes;
    }
    if (this.#headerFilled === this.#headerBytes) {
      this.#left = this.#payloadBytes;
    }
    return end;
  }

  #takePayload(chunk: Buffer, at: number, left: number): number {
    const length = Math.min(left, chunk.length - at);
    this.#left = left - length;
    if (this.#isData) {
      this.#incomplete += Math.max(length, leastPieceBytes);
    }
    return at + length;
  }

  #endFrame(): void {
    this.#left = undefined;
    this.#headerFilled = 0;
    if (this.#isData && (this.#header.readUInt8(0) & lastFrame) !== 0) {
      this.#incomplete = 0;
    }
  }

  /** How long the header is, as far as that is known. */
  get #headerBytes(): number {
    if (this.#headerFilled < 2) {
      return 2;
    }
    const maskBytes = (this.#header.readUInt8(1) & 0x80) === 0 ? 0 : 4;
    return 2 + this.#lengthBytes + maskBytes;
  }

  /** The bytes of the length that follow the first two. */
  get #lengthBytes(): 0 | 2 | 8 {
    const length = this.#header.readUInt8(1) & 0x7f;
    return length < 126 ? 0 : length === 126 ? 2 : 8;
  }

  get #payloadBytes(): number {
    switch (this.#lengthBytes) {
      case 0:
        return this.#header.readUInt8(1) & 0x7f;
      case 2:
        return this.#header.readUInt16BE(2);
      default:
        return Number(this.#header.readBigUInt64BE(2));
    }
  }
}
