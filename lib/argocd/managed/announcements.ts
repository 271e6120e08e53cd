import { type ObjectRef, refOf, type View } from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { resourceListChecksum, specChecksum } from '../checksums.ts';
import { annotations } from '../names.ts';
import { placeOf } from './agent-work.ts';
import { managedCopyDigest } from './copy.ts';
import type { Errands } from './errands.ts';

/** What {@link Announcements} need to know. */
export interface AnnouncementsOptions {
  readonly view: View<Application>;
  readonly errands: Errands;
  /** The hub's namespace of what is in a namespace here, as the principal calls it. */
  readonly hubNamespaceOf: (local: string) => string;
  /** Whether something is about to be written that the principal said before. */
  readonly isUnderWay: (ref: ObjectRef) => boolean;
}

/** Tells the principal which copies are here and what they look like, so that it says what should be different. */
export class Announcements {
  readonly #options: AnnouncementsOptions;

  constructor(options: AnnouncementsOptions) {
    this.#options = options;
  }

  /** Tells about every copy. */
  postAll(): void {
    for (const copy of this.#copies()) {
      this.post(refOf(copy));
    }
  }

  /** Tells that everything was told that is here at the start of the program. */
  postList(): void {
    this.#options.errands.post('list', () => ({
      target: 'resourceResync',
      type: 'request-synced-resource-list',
      payload: { checksum: this.#listChecksum() },
    }));
  }

  /** Tells about one copy, or that there is none, as it is when the message goes out. */
  post(ref: ObjectRef): void {
    const { view, errands, hubNamespaceOf, isUnderWay } = this.#options;
    errands.post(`update-${placeOf(ref)}`, () => {
      const copy = copyOf(view.get(ref));
      const settled = copy?.metadata.deletionTimestamp === undefined && !isUnderWay(ref);
      return {
        target: 'resourceResync',
        type: 'request-update',
        payload: {
          kind: 'Application',
          name: ref.name,
          namespace: hubNamespaceOf(ref.namespace),
          uid: sourceUid(copy),
          checksum: copy === undefined ? null : specChecksum(copy.spec),
          // Empty, which is no digest of anything, lets the principal say what it wants.
          digest: copy !== undefined && settled ? managedCopyDigest(copy) : '',
        },
      };
    });
  }

  #listChecksum(): string | null {
    return resourceListChecksum(
      this.#copies().map((copy) => ({ kind: 'Application', name: copy.metadata.name, uid: sourceUid(copy) })),
    );
  }

  #copies(): Application[] {
    return Array.from(this.#options.view.values()).filter((local) => copyOf(local) !== undefined);
  }
}

function copyOf(local: Application | undefined): Application | undefined {
  return sourceUid(local) === '' ? undefined : local;
}

function sourceUid(local: Application | undefined): string {
  return local?.metadata.annotations?.[annotations.sourceUid] ?? '';
}
