import type { Store } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { repositoryUrls } from '../../repository-use.ts';

/** How {@link SourceUses} know the Applications. */
export interface SourceUsesOptions {
  readonly applications: Pick<Store<Application>, 'subscribe'>;
  /** The agent that has an Application. The answer depends on the object alone. */
  readonly agentOf: (application: Application) => string | undefined;
}

/** That an agent has Applications of one AppProject and namespace with a source in a repository. */
export interface SourceUse {
  readonly project: string;
  /** Namespace of the Applications on the hub. */
  readonly namespace: string;
  readonly url: string;
}

interface Counted extends SourceUse {
  count: number;
}

/** The repositories in which the hub's Applications of each agent have their sources. */
export class SourceUses {
  readonly #options: SourceUsesOptions;
  readonly #changed: (agent: string, url: string) => void;
  /** Agent → use → number of Applications. */
  readonly #uses = new Map<string, Map<string, Counted>>();

  /** @param changed called when an agent began or ceased to use a repository */
  constructor(options: SourceUsesOptions, changed: (agent: string, url: string) => void) {
    this.#options = options;
    this.#changed = changed;
  }

  /** Follows the Applications until the returned function is called. */
  follow(): () => void {
    const { applications, agentOf } = this.#options;
    const usesOf = (application: Application | undefined) => {
      const agent = application && agentOf(application);
      return agent === undefined ? [] : sourceUsesOf(application as Application).map((use) => ({ agent, use }));
    };
    return applications.subscribe(({ old, now }) => {
      // In this order: a use that stays is never taken back in between.
      for (const { agent, use } of usesOf(now)) {
        this.#count(agent, use, 1);
      }
      for (const { agent, use } of usesOf(old)) {
        this.#count(agent, use, -1);
      }
    });
  }

  /** What the Applications of an agent use. */
  of(agent: string): Iterable<SourceUse> {
    return this.#uses.get(agent)?.values() ?? [];
  }

  #count(agent: string, use: SourceUse, by: 1 | -1): void {
    const key = JSON.stringify([use.project, use.namespace, use.url]);
    const uses = this.#uses.get(agent) ?? new Map<string, Counted>();
    const counted = uses.get(key) ?? { ...use, count: 0 };
    counted.count += by;
    if (counted.count > 0) {
      uses.set(key, counted);
      this.#uses.set(agent, uses);
    } else {
      uses.delete(key);
    }
    if (uses.size === 0) {
      this.#uses.delete(agent);
    }
    if (counted.count === 0 || (counted.count === 1 && by === 1)) {
      this.#changed(agent, use.url);
    }
  }
}

function sourceUsesOf({ metadata, spec }: Application): SourceUse[] {
  const common = { project: spec.project || 'default', namespace: metadata.namespace ?? '' };
  return repositoryUrls(spec).map((url) => ({ ...common, url }));
}
