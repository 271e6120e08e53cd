import { isEqual, type MergePatch, mergePatchBetween } from '../base/index.ts';
import { annotations } from './names.ts';
import type { Metadata } from './object.ts';

/** An object as it was before it became a copy. */
interface Former {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  /** The top-level fields that a copy takes from its source. */
  readonly content: Readonly<Record<string, unknown>>;
}

interface Recorded {
  readonly metadata: Metadata;
}

/** In characters. All annotations of an object may have 256 KiB together. */
const longestRecord = 96 * 1024;

/** Annotations that programs of the cluster keep up to date while it is a copy, and the marks of a copy. */
const notRecorded: ReadonlySet<string> = new Set([
  annotations.lastApplied,
  annotations.notified,
  annotations.adoptionPolicy,
  annotations.deletionApproved,
]);

/**
 * What an object is that becomes a copy, as text for {@link giveBack}; empty when it is too large to be recorded.
 * @param content the fields that will be its source's
 */
export function recordOf({ metadata }: Recorded, content: Readonly<Record<string, unknown>>): string {
  const { labels, finalizers } = metadata;
  const shared = Object.entries(metadata.annotations ?? {}).filter(([key]) => !notRecorded.has(key));
  const former: Former = {
    ...(labels && { labels }),
    ...(shared.length > 0 && { annotations: Object.fromEntries(shared) }),
    ...(finalizers && { finalizers }),
    content,
  };
  const text = JSON.stringify(former);
  return text.length <= longestRecord ? text : '';
}

/**
 * The patch that gives a copy back: without marks, and as it was before where that was recorded. Where it was not, it stays as it
 * is.
 * @param content the fields that its source decided until now
 * @param marks the annotations that made it a copy
 */
export function giveBack(
  { metadata }: Recorded,
  content: Readonly<Record<string, unknown>>,
  record: string,
  marks: readonly string[],
): MergePatch {
  const { uid, labels = {}, annotations: present = {}, finalizers = [] } = metadata;
  const unmarked = Object.fromEntries(Object.entries(present).filter(([key]) => !marks.includes(key)));
  const former = parsed(record) ?? { labels, annotations: unmarked, finalizers, content };
  const kept = Object.entries(unmarked).filter(([key]) => notRecorded.has(key));
  const before = mergePatchBetween(
    { labels, annotations: present },
    {
      labels: former.labels ?? {},
      annotations: { ...former.annotations, ...Object.fromEntries(kept) },
    },
  );
  return {
    ...mergePatchBetween(content, former.content),
    metadata: {
      ...before,
      ...(isEqual(finalizers, former.finalizers ?? []) ? {} : { finalizers: former.finalizers ?? null }),
      uid,
    },
  };
}

/** Anybody who may write the object may have changed the record. */
function parsed(record: string): Former | undefined {
  try {
    const { labels, annotations: shared, finalizers, content } = JSON.parse(record) as Former;
    const areFields = [labels ?? {}, shared ?? {}, content].every((one) => one !== null && typeof one === 'object');
    return areFields && Array.isArray(finalizers ?? [])
      ? {
          ...(labels && { labels }),
          ...(shared && { annotations: shared }),
          ...(finalizers && { finalizers }),
          content,
        }
      : undefined;
  } catch {
    return undefined;
  }
}
