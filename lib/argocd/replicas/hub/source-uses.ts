import type { Store } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { ApplicationsByUrl } from '../../applications-by-url.ts';
import { repositoryUrls } from '../../repository-use.ts';

/** How {@link SourceUses} know the Applications. */
export interface SourceUsesOptions {
  readonly applications: Pick<Store<Application>, 'subscribe'>;
  /** The agent that has an Application. The answer depends on the object alone, and on what its URL means. */
  readonly agentOf: (application: Application) => string | undefined;
  /** The URL that decides about an Application. What it means changes only as {@link SourceUses.reroute} says. Default: none does. */
  readonly urlOf?: ((application: Application) => string | undefined) | undefined;
}

/** That an agent has Applications of one AppProject and namespace with a source in a repository. */
export interface SourceUse {
  readonly project: string;
  /** Namespace of the Applications on the hub. */
  readonly namespace: string;
  readonly url: string;
}

interface AgentUse {
  readonly agent: string;
  readonly use: SourceUse;
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
  readonly #byUrl: ApplicationsByUrl | undefined;

  /** @param changed called when an agent began or ceased to use a repository */
  constructor(options: SourceUsesOptions, changed: (agent: string, url: string) => void) {
    this.#options = options;
    this.#changed = changed;
    this.#byUrl = options.urlOf && new ApplicationsByUrl(options.urlOf);
  }

  /** Follows the Applications until the returned function is called. */
  follow(): () => void {
    return this.#options.applications.subscribe(({ old, now }) => {
      // In this order: a use that stays is never taken back in between.
      this.#countAll(this.#usesOf(now), 1);
      this.#countAll(this.#usesOf(old), -1);
      this.#byUrl?.move(old, now);
    });
  }

  /** What a URL means is about to change. Call the returned function when it has changed, before anything else happens. */
  reroute(url: string): () => void {
    const concerned = this.#byUrl?.of(url) ?? [];
    const before = concerned.flatMap((one) => this.#usesOf(one));
    return () => {
      const after = concerned.flatMap((one) => this.#usesOf(one));
      this.#countAll(after, 1);
      this.#countAll(before, -1);
    };
  }

  /** What the Applications of an agent use. */
  of(agent: string): Iterable<SourceUse> {
    return this.#uses.get(agent)?.values() ?? [];
  }

  #usesOf(application: Application | undefined): AgentUse[] {
    const agent = application && this.#options.agentOf(application);
    return agent === undefined ? [] : sourceUsesOf(application as Application).map((use) => ({ agent, use }));
  }

  #countAll(uses: readonly AgentUse[], by: 1 | -1): void {
    for (const { agent, use } of uses) {
      this.#count(agent, use, by);
    }
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
