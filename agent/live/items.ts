import type { KubeObject } from '../../lib/kube/index.ts';

/** Decides whether an object may be shown. */
export type Shows = (object: KubeObject) => Promise<boolean>;

/** A list of any kind, or a Table. */
export interface ListDocument {
  apiVersion?: string;
  kind?: string;
  items?: KubeObject[];
  rows?: { object?: KubeObject }[];
  metadata?: { remainingItemCount?: number };
}

/** One line of a watch. */
export interface WatchLine {
  type?: string;
  object?: Partial<KubeObject> & Pick<ListDocument, 'rows'>;
}

/**
 * What may be shown of an answer to a list: a list of any kind, or a Table, whose rows must come with their objects. The number of
 * items that are left for later pages is taken out: it would tell of others.
 */
export async function shownItems(document: ListDocument, shows: Shows): Promise<ListDocument> {
  if (document.metadata !== undefined) delete document.metadata.remainingItemCount;
  if (document.items !== undefined) {
    const { apiVersion = '', kind = '' } = document;
    // Items of a list do not repeat what they are.
    const own = { apiVersion, kind: kind.replace(/List$/, '') };
    const shown = await Promise.all(document.items.map((item) => shows({ ...own, ...item })));
    document.items = document.items.filter((_, index) => shown[index]);
  }
  if (document.rows !== undefined) {
    const shown = await Promise.all(document.rows.map(({ object }) => object !== undefined && shows(object)));
    document.rows = document.rows.filter((_, index) => shown[index]);
  }
  return document;
}

/** What may be shown of an event of a watch; undefined when that is nothing. */
export async function shownEvent(event: WatchLine, shows: Shows): Promise<object | undefined> {
  const { type, object } = event;
  // Bookmarks and errors are about nobody's object.
  if (type === 'BOOKMARK' || type === 'ERROR' || object === undefined) return event;
  if (object.kind === 'Table') {
    const table = await shownItems(object as ListDocument, shows);
    return table.rows?.length === 0 ? undefined : event;
  }
  return (await shows(object as KubeObject)) ? event : undefined;
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
    if (length > longestLine) throw new RangeError('a line of the answer is longer than any object can be');
  }
  if (length > 0) yield Buffer.concat(parts).toString('utf8');
}
