import type { View } from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { resourceListChecksum, specChecksum } from '../checksums.ts';
import { annotations } from '../names.ts';
import { managedCopyDigest } from './copy.ts';
import type { Errands } from './errands.ts';

/** Tells the principal which copies are here and what they look like, so that it says what should be different. */
export class Announcements {
  readonly #view: View<Application>;
  readonly #errands: Errands;
  readonly #namespace: string;
  readonly #isUnderWay: (name: string) => boolean;

  /** @param isUnderWay whether something is about to be written that the principal said before */
  constructor(view: View<Application>, errands: Errands, namespace: string, isUnderWay: (name: string) => boolean) {
    this.#view = view;
    this.#errands = errands;
    this.#namespace = namespace;
    this.#isUnderWay = isUnderWay;
  }

  /** Tells about every copy. */
  postAll(): void {
    for (const { metadata } of this.#copies()) {
      this.post(metadata.name);
    }
  }

  /** Tells that everything was told that is here at the start of the program. */
  postList(): void {
    this.#errands.post('list', () => ({
      target: 'resourceResync',
      type: 'request-synced-resource-list',
      payload: { checksum: this.#listChecksum() },
    }));
  }

  /** Tells about one copy, or that there is none, as it is when the message goes out. */
  post(name: string): void {
    this.#errands.post(`update-${name}`, () => {
      const copy = copyOf(this.#view.get({ namespace: this.#namespace, name }));
      const settled = copy?.metadata.deletionTimestamp === undefined && !this.#isUnderWay(name);
      return {
        target: 'resourceResync',
        type: 'request-update',
        payload: {
          kind: 'Application',
          name,
          namespace: this.#namespace,
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
    return Array.from(this.#view.values()).filter(
      (local) => local.metadata.namespace === this.#namespace && copyOf(local) !== undefined,
    );
  }
}

function copyOf(local: Application | undefined): Application | undefined {
  return sourceUid(local) === '' ? undefined : local;
}

function sourceUid(local: Application | undefined): string {
  return local?.metadata.annotations?.[annotations.sourceUid] ?? '';
}
