import { afterSpace, incomplete, type JsonMember, JsonScan } from './json-scan.ts';

/** Longest text around the items of a list: kind, version, columns. Kubernetes needs less. */
const longestFrame = 1024 * 1024;
/** An object of etcd's largest size, and what surrounds it. */
const longestItem = 16 * 1024 * 1024;
/** Bytes that are scanned at a time: few items are cut in two, and each step is short. */
const usualBlockBytes = 64 * 1024;

const [openObject, openArray, closeArray, comma] = [123, 91, 93, 44];

/** An item of a list, where it stands in what came. */
export interface ListItem {
  readonly block: Buffer;
  /** Where the comma before it stands; of the first item, where it begins. */
  readonly from: number;
  readonly start: number;
  readonly end: number;
  /** The relevant fields of the item, as JSON. */
  readonly digest: string;
}

/** Reads an item: finds its end and its digest. */
export type ReadItem = (
  scan: JsonScan,
  block: Buffer,
  start: number,
  name: 'items' | 'rows',
) => { readonly end: number; readonly digest: string };

/**
 * Splits the JSON of a list, or of a Table, into its items as the bytes arrive. This saves the memory of the whole text
 * and long blocking steps. Items are consecutive parts of the received bytes.
 */
export class ListSplitter {
  readonly #scan = new JsonScan();
  readonly #read: ReadItem;
  /** Received bytes that are not assigned yet. */
  #pieces: Buffer[] = [];
  #held = 0;
  /** Bytes at which scanning restarts: an incomplete item is not scanned again for every few bytes. */
  #wanted: number;
  readonly #blockBytes: number;
  #place: 'before' | 'items' | 'after' = 'before';
  #isFirst = true;
  #name: 'items' | 'rows' = 'items';
  #head: string | undefined;

  constructor(read: ReadItem, blockBytes = usualBlockBytes) {
    this.#read = read;
    this.#blockBytes = blockBytes;
    this.#wanted = blockBytes;
  }

  /** The text before the items, up to `"items":`, as soon as they have begun. */
  get head(): string | undefined {
    return this.#head;
  }

  /** The name of the field with the items. */
  get name(): 'items' | 'rows' {
    return this.#name;
  }

  /** The items that these bytes complete, in order. @throws RangeError for a text that is not a list */
  push(bytes: Uint8Array): ListItem[] {
    this.#pieces.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    this.#held += bytes.length;
    if (this.#place === 'after' && this.#held > longestFrame) {
      throw noList();
    }
    return this.#place === 'after' || this.#held < this.#wanted ? [] : this.#split();
  }

  /** The end of the text: the remaining items. @throws RangeError for a text that is not a complete list */
  end(): ListItem[] {
    const items = this.#place === 'after' ? [] : this.#split();
    if (this.#place === 'items') {
      throw new RangeError('the list breaks off');
    }
    return items;
  }

  /** The text after the items, from `]` on; the whole text when there were none. To be asked for at the end. */
  get rest(): string {
    return Buffer.concat(this.#pieces).toString('utf8');
  }

  #split(): ListItem[] {
    const [first] = this.#pieces;
    const block = this.#pieces.length === 1 && first !== undefined ? first : Buffer.concat(this.#pieces, this.#held);
    const items: ListItem[] = [];
    let at = this.#place === 'before' ? this.#begin(block) : 0;
    if (this.#place === 'items') {
      at = this.#take(block, at, items);
    }
    const rest = block.subarray(at);
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#held = rest.length;
    this.#wanted = Math.min(Math.max(this.#blockBytes, 2 * rest.length), longestItem + this.#blockBytes);
    if (this.#place !== 'items' && rest.length > longestFrame) {
      throw noList();
    }
    if (rest.length > longestItem) {
      throw tooLong();
    }
    return items;
  }

  /** Where the items begin, if they do: what is in the first field of such a name that holds an array. */
  #begin(block: Buffer): number {
    const start = afterSpace(block, 0);
    if (start === block.length) {
      return 0;
    }
    if (block[start] !== openObject) {
      throw noList();
    }
    let begin = 0;
    const member: JsonMember = (keyStart, keyEnd, valueStart) => {
      const key = keyEnd - keyStart <= 5 ? block.toString('latin1', keyStart, keyEnd) : '';
      if ((key !== 'items' && key !== 'rows') || block[valueStart] !== openArray) {
        return this.#scan.value(block, valueStart);
      }
      if (valueStart > longestFrame) {
        throw noList();
      }
      this.#place = 'items';
      this.#name = key;
      this.#head = block.toString('utf8', 0, valueStart);
      begin = valueStart + 1;
      return incomplete;
    };
    this.#scan.object(block, start, member);
    return begin;
  }

  /** Finds the items from here on; where the first stands, with its comma, that is not all there. */
  #take(block: Buffer, begin: number, items: ListItem[]): number {
    let from = begin;
    for (;;) {
      let start = afterSpace(block, from);
      if (start === block.length) {
        return from;
      }
      if (block[start] === closeArray) {
        this.#place = 'after';
        return start;
      }
      if (!this.#isFirst) {
        if (block[start] !== comma) {
          throw noList();
        }
        from = start;
        start = afterSpace(block, start + 1);
        if (start === block.length) {
          return from;
        }
      } else {
        from = start;
      }
      if (block[start] !== openObject) {
        throw noList();
      }
      const { end, digest } = this.#read(this.#scan, block, start, this.#name);
      if (end === incomplete) {
        return from;
      }
      if (end - start > longestItem) {
        throw tooLong();
      }
      items.push({ block, from, start, end, digest });
      this.#isFirst = false;
      from = end;
    }
  }
}

function tooLong(): RangeError {
  return new RangeError('an item of the list is larger than any object can be');
}

/** What the API server answers with is something else than was asked for. */
export function noList(): RangeError {
  return new RangeError('the answer of the API server is no list');
}
