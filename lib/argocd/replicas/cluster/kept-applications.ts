import { refOf, type Store } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { copiedFrom } from '../../copied-from.ts';
import { annotations } from '../../names.ts';
import { placeOf } from '../../place.ts';
import { projectOfRepository, type RepositorySecret } from '../../repository.ts';
import { isForRepository, repositoryUrls } from '../../repository-use.ts';

interface Use {
  readonly principalUid: string;
  readonly project: string;
  readonly urls: readonly string[];
}

/**
 * The Applications of a managed cluster, as far as they need AppProjects and credentials. A principal keeps Applications that
 * another one made, as after the loss of a hub: what they need stays with them, though the principal does not have it.
 */
export class KeptApplications {
  readonly #applications: Pick<Store<Application>, 'subscribe'>;
  readonly #uses = new Map<string, Use>();
  readonly #listeners = new Set<() => void>();
  #isFollowing = false;

  constructor(applications: Pick<Store<Application>, 'subscribe'>) {
    this.#applications = applications;
  }

  /** Follows the Applications until aborted. Call it before anything is asked; each kind that asks does. */
  start(signal: AbortSignal): void {
    if (this.#isFollowing) {
      return;
    }
    this.#isFollowing = true;
    const unfollow = this.#applications.subscribe(({ old, now }) => {
      const object = now ?? old;
      if (object !== undefined) {
        this.#set(placeOf(refOf(object)), now && useOf(now));
      }
    });
    signal.addEventListener('abort', unfollow);
  }

  /** Has a function called when something may be needed no longer. */
  onRelease(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Whether an Application of another principal is in this AppProject. */
  needProject(name: string, principalUid: string): boolean {
    return this.#some(principalUid, ({ project }) => project === name);
  }

  /** Whether an Application of another principal uses these credentials. */
  needRepository(secret: RepositorySecret, principalUid: string): boolean {
    const its = projectOfRepository(secret);
    return this.#some(principalUid, ({ project, urls }) =>
      its === undefined ? urls.some((url) => isForRepository(secret, url)) : project === its,
    );
  }

  #some(principalUid: string, isNeed: (use: Use) => boolean): boolean {
    for (const use of this.#uses.values()) {
      if (use.principalUid !== principalUid && isNeed(use)) {
        return true;
      }
    }
    return false;
  }

  #set(place: string, use: Use | undefined): void {
    const before = this.#uses.get(place);
    if (use === undefined) {
      this.#uses.delete(place);
    } else {
      this.#uses.set(place, use);
    }
    const isSame =
      use !== undefined &&
      before?.principalUid === use.principalUid &&
      before.project === use.project &&
      before.urls.join() === use.urls.join();
    if (before !== undefined && !isSame) {
      for (const listener of this.#listeners) {
        listener();
      }
    }
  }
}

/** What a copy needs; undefined for an Application of the cluster alone. */
function useOf(application: Application): Use | undefined {
  const principalUid = application.metadata.annotations?.[annotations.principalUid];
  return principalUid === undefined || copiedFrom(application) === ''
    ? undefined
    : { principalUid, project: application.spec.project || 'default', urls: repositoryUrls(application.spec) };
}
