/** What stands around the items of a list: kind, version, columns. More than this is no list of Kubernetes. */
const longestFrame = 1024 * 1024;
/** An object of etcd's largest size, and what surrounds it. */
const longestItem = 16 * 1024 * 1024;

const [quote, backslash, openObject, closeObject, openArray, closeArray, comma] = [34, 92, 123, 125, 91, 93, 44];
/** The end of a frame after which the items follow. */
const beforeItems = /[{,\s]"(items|rows)"\s*:\s*$/;

/**
 * Cuts the JSON of a list, or of a Table, into its items as the bytes come, so that nobody needs the whole of it: neither the memory
 * nor the time at a stretch.
 */
export class ListSplitter {
  #frame: Buffer[] = [];
  #frameLength = 0;
  #item: Buffer[] = [];
  #itemLength = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #place: 'before' | 'items' | 'after' = 'before';
  #name: 'items' | 'rows' = 'items';
  #head: string | undefined;

  /** The text before the items, up to `"items":`, as soon as they have begun. */
  get head(): string | undefined {
    return this.#head;
  }

  /** What the field of the items is called. */
  get name(): 'items' | 'rows' {
    return this.#name;
  }

  /** The items that are complete with these bytes, in their order. @throws RangeError for what is no list */
  push(bytes: Uint8Array): Buffer[] {
    const chunk = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const items: Buffer[] = [];
    // Where in this chunk that begins which is not put anywhere yet.
    let start = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === backslash) this.#isEscaped = true;
        else if (byte === quote) this.#isInString = false;
        continue;
      }
      switch (byte) {
        case quote:
          if (this.#place === 'items' && this.#depth === 2) throw noList();
          this.#isInString = true;
          break;
        case openObject:
          if (this.#place === 'items' && this.#depth === 2) start = at;
          this.#depth++;
          break;
        case openArray:
          if (this.#place === 'items' && this.#depth === 2) throw noList();
          this.#depth++;
          if (this.#place === 'before' && this.#depth === 2) {
            this.#keepFrame(chunk.subarray(start, at));
            if (this.#isBeforeItems()) start = at + 1;
            else start = at;
          }
          break;
        case closeObject:
          this.#depth--;
          if (this.#place === 'items' && this.#depth === 2) {
            this.#keepItem(chunk.subarray(start, at + 1));
            items.push(this.#item.length === 1 ? (this.#item[0] as Buffer) : Buffer.concat(this.#item));
            this.#item = [];
            this.#itemLength = 0;
          }
          break;
        case closeArray:
          this.#depth--;
          if (this.#place === 'items' && this.#depth === 1) {
            this.#place = 'after';
            start = at;
          }
          break;
        default:
          if (this.#place === 'items' && this.#depth === 2 && byte !== comma && !isSpace(byte)) throw noList();
      }
    }
    if (this.#place !== 'items') this.#keepFrame(chunk.subarray(start));
    else if (this.#depth > 2) this.#keepItem(chunk.subarray(start));
    return items;
  }

  /** The text after the items, from `]` on; the whole text when there were none. @throws RangeError when it has broken off */
  end(): string {
    if (this.#depth !== 0 || this.#isInString || this.#place === 'items') throw new RangeError('the list breaks off');
    return this.#takeFrame();
  }

  #isBeforeItems(): boolean {
    const found = beforeItems.exec(Buffer.concat(this.#frame).toString('utf8'));
    if (found === null) return false;
    this.#place = 'items';
    this.#name = found[1] as 'items' | 'rows';
    this.#head = this.#takeFrame();
    return true;
  }

  #takeFrame(): string {
    const text = Buffer.concat(this.#frame).toString('utf8');
    this.#frame = [];
    this.#frameLength = 0;
    return text;
  }

  #keepFrame(bytes: Buffer): void {
    this.#frame.push(bytes);
    this.#frameLength += bytes.length;
    if (this.#frameLength > longestFrame) throw noList();
  }

  #keepItem(bytes: Buffer): void {
    this.#item.push(bytes);
    this.#itemLength += bytes.length;
    if (this.#itemLength > longestItem) throw new RangeError('an item of the list is larger than any object can be');
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}

/** What the API server answers with is something else than was asked for. */
export function noList(): RangeError {
  return new RangeError('the answer of the API server is no list');
}
