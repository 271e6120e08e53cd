import { type Clock, type ObjectRef, type Runtime, type Store, type Tuning, View } from '../../../sync/index.ts';
import type { AppProject } from '../../application.ts';
import type { MirrorFailure } from '../../autonomous/hub/mirror-failure.ts';
import { specChecksum } from '../../checksums.ts';
import { annotations } from '../../names.ts';
import type { CopySync, HubKind } from '../../peer/kind-sync.ts';
import { isSkipped } from '../../routing.ts';
import { appProjectKind } from '../kinds.ts';
import {
  longestName,
  mirroredProjectName,
  ownerOfMirror,
  projectForHub,
  projectMirrorName,
} from '../project-mirror.ts';
import { Replica } from '../replica.ts';
import { type ReplicaRules, skipped, Unacceptable } from '../replica-rules.ts';

/** How {@link ProjectMirrors} work. */
export interface ProjectMirrorsOptions {
  readonly store: Store<AppProject>;
  /** The principal's namespace, the only one that counts. */
  readonly namespace: string;
  /** Hears what cannot be mirrored and why, once per reason, for people to see. */
  readonly onFailure?: (trouble: MirrorFailure) => void;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

interface Mirror {
  readonly replica: Replica<AppProject>;
  readonly stop: AbortController;
}

/**
 * Mirrors of the AppProjects of autonomous agents on the hub, `<agent>-<project>` in the principal's namespace. An agent can
 * make, change and remove nothing but its own mirrors, whatever names come together: who else has the name keeps it, and
 * the refusal is said in the log until the name is free.
 */
export class ProjectMirrors implements HubKind<CopySync> {
  readonly #options: ProjectMirrorsOptions;
  readonly #clock: Clock;
  readonly #view: View<AppProject>;
  readonly #mirrors = new Map<string, Mirror>();
  #signal: AbortSignal | undefined;

  constructor(options: ProjectMirrorsOptions) {
    this.#options = options;
    this.#clock = options.runtime.clock;
    this.#view = new View({
      clock: this.#clock,
      changed: (ref, change) => {
        for (const replica of this.#concerned(ref)) {
          replica.localChange(ref, change);
        }
      },
      doubted: (ref) => {
        for (const replica of this.#concerned(ref)) {
          replica.reconcile(ref.name, true);
        }
      },
    });
  }

  start(signal: AbortSignal): void {
    this.#signal = signal;
    const unfollow = this.#view.follow(this.#options.store);
    signal.addEventListener('abort', unfollow);
  }

  syncFor(agent: string): CopySync {
    let mirror = this.#mirrors.get(agent);
    if (mirror === undefined) {
      mirror = this.#newMirror(agent);
      this.#mirrors.set(agent, mirror);
    }
    return mirror.replica;
  }

  forgetAgent(agent: string): void {
    this.#mirrors.get(agent)?.stop.abort();
    this.#mirrors.delete(agent);
  }

  #newMirror(agent: string): Mirror {
    if (this.#signal === undefined) {
      throw new TypeError('used before it was started');
    }
    const stop = new AbortController();
    const { store, namespace, onFailure } = this.#options;
    const replica = new Replica<AppProject>(
      {
        kind: appProjectKind,
        rules: this.#rules(agent),
        store,
        view: this.#view,
        namespace,
        peer: { agent },
        runtime: this.#options.runtime,
        tuning: this.#options.tuning,
        onFailure: (local, message) =>
          onFailure?.({ agent, kind: 'AppProject', name: mirroredProjectName(agent, local), message }),
      },
      AbortSignal.any([this.#signal, stop.signal]),
    );
    replica.adoptFound();
    return { replica, stop };
  }

  #rules(agent: string): ReplicaRules<AppProject> {
    const { today } = this.#options.runtime;
    return {
      localName: (name) => projectMirrorName(agent, name),
      sourceName: (local) => mirroredProjectName(agent, local),
      toLocal: (project) => {
        const name = projectMirrorName(agent, project.metadata.name);
        if (name.length > longestName) {
          throw new Unacceptable(
            `on the hub it would be called ${name}, which has more than ${longestName} characters`,
          );
        }
        return projectForHub(project, agent);
      },
      marks: (source, desired) => ({
        [annotations.mirrorOf]: agent,
        [annotations.mirrorChecksums]: `${specChecksum(source.spec)} ${specChecksum(desired.spec)}`,
      }),
      stamp: () => ({
        [annotations.lastUpdated]: today()
          .toISOString()
          .replace(/\.\d+Z$/, 'Z'),
      }),
      isCopy: (local) => ownerOfMirror(local) === agent && !isSkipped(local),
      objection: (local) => {
        if (isSkipped(local)) {
          return skipped;
        }
        const owner = ownerOfMirror(local);
        if (owner === agent) {
          return undefined;
        }
        return owner === undefined
          ? 'the hub has a project of its own of that name'
          : `the project of that name on the hub is the mirror of agent ${owner}'s`;
      },
      checksum: (local) => {
        // The agent knows its own project, not the mirror. Go agents would send a mutilated one to repair a difference.
        const [source, mirror] = local.metadata.annotations?.[annotations.mirrorChecksums]?.split(' ') ?? [];
        const own = specChecksum(local.spec);
        return mirror === own && source !== undefined ? source : own;
      },
      dropsFinalizers: true,
    };
  }

  /** The agents whose mirror could have this name. */
  *#concerned({ name }: ObjectRef): Iterable<Replica<AppProject>> {
    for (let dash = name.indexOf('-'); dash !== -1; dash = name.indexOf('-', dash + 1)) {
      const mirror = this.#mirrors.get(name.slice(0, dash));
      if (mirror !== undefined) {
        yield mirror.replica;
      }
    }
  }
}
