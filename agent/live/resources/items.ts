import { parseJson } from '../../../lib/base/index.ts';
import type { KubeObject } from '../../../lib/kube/index.ts';
import { type ListItem, ListSplitter, noList } from './list-splitter.ts';
import { readObject, readRow } from './object-digest.ts';

/** Decides whether an object may be shown, at once if it can; `isLast` for one that was just deleted. */
export type Shows = (object: KubeObject, isLast: boolean) => boolean | Promise<boolean>;

/** What rows of a Table carry: the query's `includeObject`. */
export type RowObjects = 'None' | 'Metadata' | 'Object';

interface Row {
  object?: KubeObject | null;
}

interface Table {
  kind?: string;
  rows?: Row[] | null;
}

/** Of what surrounds the items, this is passed on. */
const frameFields: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'metadata', 'columnDefinitions']);

/**
 * The visible part of a list response: a list of any kind, or a Table, whose rows must include their objects. It is streamed
 * like the response; items are passed on unchanged. The number of items on later pages is removed: it would count
 * invisible items.
 * @throws RangeError for a response that is not a list
 */
export async function* shownList(
  body: AsyncIterable<Uint8Array>,
  shows: Shows,
  rowObjects: RowObjects,
): AsyncGenerator<Buffer> {
  const splitter = new ListSplitter((scan, block, start, name) =>
    (name === 'items' ? readObject : readRow)(scan, block, start),
  );
  const shown = new ShownItems(splitter, shows, rowObjects);
  let hasBegun = false;
  for await (const chunk of body) {
    const items = splitter.push(chunk);
    if (!hasBegun && splitter.head !== undefined) {
      hasBegun = true;
      yield shown.begin(splitter.head);
    }
    const piece = await shown.of(items);
    if (piece !== undefined) {
      yield piece;
    }
  }
  const items = splitter.end();
  const { head, rest } = splitter;
  if (head === undefined) {
    yield Buffer.from(JSON.stringify(emptyList(rest)));
    return;
  }
  if (!hasBegun) {
    yield shown.begin(head);
  }
  const piece = await shown.of(items);
  if (piece !== undefined) {
    yield piece;
  }
  const frame = JSON.stringify(frameOf(`{"${splitter.name}":[${rest}`)).slice(1);
  yield Buffer.from(frame === '}' ? ']}' : `],${frame}`);
}

/** The items of a list that may be shown. */
class ShownItems {
  readonly #list: Pick<ListSplitter, 'name'>;
  readonly #shows: Shows;
  readonly #rowObjects: RowObjects;
  /** Items of a list do not repeat what they are. */
  #own: { apiVersion?: string; kind?: string } = {};
  #isFirst = true;

  constructor(list: Pick<ListSplitter, 'name'>, shows: Shows, rowObjects: RowObjects) {
    this.#list = list;
    this.#shows = shows;
    this.#rowObjects = rowObjects;
  }

  /** The text before the items. */
  begin(head: string): Buffer {
    const frame = frameOf(`${head}[]}`);
    const { apiVersion, kind } = frame as { apiVersion?: string; kind?: string };
    this.#own = { ...(apiVersion ? { apiVersion } : {}), ...(kind ? { kind: kind.replace(/List$/, '') } : {}) };
    const text = JSON.stringify(frame).slice(0, -1);
    return Buffer.from(`${text}${text === '{' ? '' : ','}"${this.#list.name}":[`);
  }

  /** Of items that follow each other in the same bytes those that may be shown; undefined when these are none. */
  async of(items: readonly ListItem[]): Promise<Buffer | undefined> {
    const verdicts = items.map((item) => this.#verdictOn(item));
    const areShown = verdicts.every((verdict) => typeof verdict === 'boolean') ? verdicts : await Promise.all(verdicts);
    const isWhole = this.#list.name === 'items' || this.#rowObjects === 'Object';
    const parts: Buffer[] = [];
    // Neighbours are passed on together, with what stands between them.
    let run: { readonly block: Buffer; readonly start: number; end: number } | undefined;
    for (const [index, item] of items.entries()) {
      const { block, from, start, end } = item;
      if (areShown[index] !== true) {
        if (run !== undefined) {
          parts.push(run.block.subarray(run.start, run.end));
        }
        run = undefined;
        continue;
      }
      if (!isWhole) {
        parts.push(Buffer.from(`${this.#isFirst ? '' : ','}${withoutObject(item, this.#rowObjects)}`));
      } else if (run === undefined) {
        run = { block, start: this.#isFirst ? start : from, end };
      } else {
        run.end = end;
      }
      this.#isFirst = false;
    }
    if (run !== undefined) {
      parts.push(run.block.subarray(run.start, run.end));
    }
    return parts.length > 1 ? Buffer.concat(parts) : parts[0];
  }

  /** Never throws at once: who waits for the verdicts on others would leave these alone. */
  #verdictOn({ digest }: ListItem): boolean | Promise<boolean> {
    try {
      const known = JSON.parse(digest) as KubeObject & Row;
      if (this.#list.name === 'items') {
        return this.#shows({ ...this.#own, ...known }, false);
      }
      return known.object ? this.#shows(known.object, false) : false;
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

/** What may be shown of a line of a watch; undefined when that is nothing. */
export async function shownLine(line: string, shows: Shows, rowObjects: RowObjects): Promise<string | undefined> {
  const event = parseJson(line) as { type?: string; object?: KubeObject & Table };
  const { type = '', object } = event;
  // Bookmarks and errors contain no objects.
  if (type === 'BOOKMARK' || type === 'ERROR') {
    return line;
  }
  if (!['ADDED', 'MODIFIED', 'DELETED'].includes(type) || object === undefined) {
    return undefined;
  }
  const isLast = type === 'DELETED';
  if (object.kind !== 'Table') {
    return (await shows(object, isLast)) ? line : undefined;
  }
  const rows: Row[] = [];
  for (const row of object.rows ?? []) {
    if (row.object && (await shows(row.object, isLast))) {
      rows.push(rowObjects === 'Object' ? row : rowWithoutObject(row, rowObjects));
    }
  }
  return rows.length === 0 ? undefined : JSON.stringify({ ...event, object: { ...object, rows } });
}

/** The fields around the items that are passed on. */
function frameOf(text: string): object {
  const { metadata, ...rest } = JSON.parse(text) as { metadata?: object };
  const fields = Object.entries(rest).filter(([name]) => frameFields.has(name));
  if (metadata === undefined) {
    return Object.fromEntries(fields);
  }
  const { remainingItemCount: _, ...shown } = metadata as { remainingItemCount?: unknown };
  return { ...Object.fromEntries(fields), metadata: shown };
}

/** A list without items, which may say so in several ways. */
function emptyList(text: string): object {
  const document = JSON.parse(text) as Record<string, unknown> | unknown[] | string | null;
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw noList();
  }
  const frame = frameOf(text);
  for (const name of ['items', 'rows']) {
    if (!(name in document)) {
      continue;
    }
    if (document[name] !== null) {
      throw noList();
    }
    return { ...frame, [name]: null };
  }
  return frame;
}

function withoutObject({ block, start, end }: ListItem, rowObjects: RowObjects): string {
  return JSON.stringify(rowWithoutObject(parseJson(block.toString('utf8', start, end)) as Row, rowObjects));
}

function rowWithoutObject(row: Row, rowObjects: RowObjects): object {
  if (rowObjects === 'None') {
    return { ...row, object: null };
  }
  const metadata = row.object?.metadata;
  return { ...row, object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata } };
}

/** Longest line of a watch: an object of etcd's largest size, and what surrounds it. */
const longestLine = 16 * 1024 * 1024;

/** The lines of a body as they come. @throws RangeError for one that no object needs */
export async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      parts.push(chunk.subarray(start, end));
      yield Buffer.concat(parts).toString('utf8');
      parts = [];
      length = 0;
      start = end + 1;
    }
    parts.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > longestLine) {
      throw new RangeError('a line of the answer is longer than any object can be');
    }
  }
  if (length > 0) {
    yield Buffer.concat(parts).toString('utf8');
  }
}
