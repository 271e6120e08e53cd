import { type Clock, type ObjectRef, type Runtime, type Store, type Tuning, View } from '../../../sync/index.ts';
import type { AppProject } from '../../application.ts';
import type { MirrorFailure } from '../../autonomous/hub/mirror-failure.ts';
import { specChecksum } from '../../checksums.ts';
import { annotations } from '../../names.ts';
import type { CopySync, HubKind } from '../../peer/kind-sync.ts';
import type { ArgoCluster } from '../../project-clusters.ts';
import { isSkipped } from '../../routing.ts';
import { DepartedMirrors } from '../../writing/departed-mirrors.ts';
import { PlanWriter } from '../../writing/plan-writer.ts';
import { replicaDigest } from '../copy.ts';
import { appProjectKind } from '../kinds.ts';
import {
  longestName,
  mirroredProjectName,
  ownerOfMirror,
  type ProjectMirrorPlace,
  projectForHub,
  projectMirrorName,
  renewedMirror,
} from '../project-mirror.ts';
import { referenceMirror } from '../reference-mirror.ts';
import { Replica } from '../replica.ts';
import { type ReplicaRules, skipped, Unacceptable } from '../replica-rules.ts';

/** How {@link ProjectMirrors} work. */
export interface ProjectMirrorsOptions {
  readonly store: Store<AppProject>;
  /** The principal's namespace; mirrors exist only there. */
  readonly namespace: string;
  /**
   * The agent's cluster in the hub's Argo CD; undefined while it has none. Report a change to
   * {@link ProjectMirrors.clusterChanged}. Default: a cluster with the agent's name.
   */
  readonly clusterOf?: (agent: string) => ArgoCluster | undefined;
  /** Whether groups of users that a cluster's AppProjects name get the roles on the hub, too. Default: no. */
  readonly keepsGroups?: boolean;
  /**
   * Whether the agent of this name does not belong to the fleet: its mirrors are let go when somebody deletes them, whatever
   * finalizers they have. Default: none has left.
   */
  readonly hasLeft?: (agent: string) => boolean;
  /** Whether this principal, and no other one, does what is to be done for an agent. Default: yes. */
  readonly isResponsible?: ((agent: string) => boolean) | undefined;
  /** Receives projects that cannot be mirrored, with the reason, once per reason, to show them to users. */
  readonly onFailure?: (trouble: MirrorFailure) => void;
  /** Waits until the agent may write again; called before each of its messages is processed. Default: no wait. */
  readonly pace?: ((agent: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

interface Mirror {
  readonly replica: Replica<AppProject>;
  readonly stop: AbortController;
}

/**
 * Mirrors of the AppProjects of autonomous agents on the hub, `<agent>-<project>` in the principal's namespace. An agent can
 * make, change and remove nothing but its own mirrors. A name that the hub uses itself stays the hub's. When projects of two
 * agents come to the same name, as project `b-c` of agent `a` and project `c` of agent `a-b`, the agent with the longer name
 * has it: otherwise `a` could take the names of `a-b` before that has the projects. The other one's is refused, and mirrored
 * when the name is free again.
 */
export class ProjectMirrors implements HubKind<CopySync> {
  readonly #options: ProjectMirrorsOptions;
  readonly #clock: Clock;
  readonly #view: View<AppProject>;
  readonly #mirrors = new Map<string, Mirror>();
  #signal: AbortSignal | undefined;
  #departed: DepartedMirrors<AppProject> | undefined;

  constructor(options: ProjectMirrorsOptions) {
    this.#options = options;
    this.#clock = options.runtime.clock;
    this.#view = new View({
      clock: this.#clock,
      changed: (ref, change) => {
        for (const [, { replica }] of this.#concerned(ref)) {
          replica.localChange(ref, change);
        }
        this.#considerDeparted(change.now);
      },
      doubted: (ref) => {
        for (const [, { replica }] of this.#concerned(ref)) {
          replica.reconcile(ref.name, true);
        }
      },
    });
  }

  start(signal: AbortSignal): void {
    this.#signal = signal;
    const { store, runtime } = this.#options;
    const names = { noun: 'AppProject', logFields: ({ name }: ObjectRef) => ({ project: name }) };
    const writer = new PlanWriter<AppProject>({ names, store, view: this.#view, runtime });
    const agentOf = (one: AppProject) =>
      isSkipped(one) ? undefined : one.metadata.annotations?.[annotations.mirrorOf];
    this.#departed = new DepartedMirrors({ ...this.#options, names, writer, agentOf }, signal);
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
    for (const project of this.#view.values()) {
      this.#considerDeparted(project);
    }
  }

  /** The name or URL of the agent's cluster in the hub's Argo CD may have changed. */
  clusterChanged(agent: string): void {
    this.#mirrors.get(agent)?.replica.renew();
  }

  #considerDeparted(project: AppProject | undefined): void {
    if (project !== undefined) {
      this.#departed?.consider(project);
    }
  }

  #newMirror(agent: string): Mirror {
    if (this.#signal === undefined) {
      throw new TypeError('used before it was started');
    }
    const stop = new AbortController();
    const { store, namespace, onFailure, pace } = this.#options;
    const replica = new Replica<AppProject>(
      {
        kind: appProjectKind,
        rules: this.#rules(agent),
        store,
        view: this.#view,
        namespace,
        peer: { agent },
        pace: pace && ((signal) => pace(agent, signal)),
        runtime: this.#options.runtime,
        tuning: this.#options.tuning,
        onWithdrawn: (name) => {
          for (const [other, { replica: refused }] of this.#concerned({ name })) {
            if (other !== agent && refused.wants(name)) {
              refused.reconcile(name);
            }
          }
        },
        onFailure: (local, message) =>
          onFailure?.({ agent, kind: 'AppProject', name: mirroredProjectName(agent, local), message }),
      },
      AbortSignal.any([this.#signal, stop.signal]),
    );
    replica.adoptFound();
    return { replica, stop };
  }

  #rules(agent: string): ReplicaRules<AppProject> {
    const { clusterOf, keepsGroups = false } = this.#options;
    const { today } = this.#options.runtime;
    const place = (): ProjectMirrorPlace => ({
      agent,
      cluster: clusterOf === undefined ? { name: agent, server: '' } : clusterOf(agent),
      keepsGroups,
    });
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
        return projectForHub(project, place());
      },
      marks: (source, desired) => ({
        [annotations.mirrorOf]: agent,
        [annotations.mirrorChecksums]: `${specChecksum(source.spec)} ${specChecksum(desired.spec)}`,
        [annotations.mirrorDigests]: `${digestOf(referenceMirror(source, agent))} ${digestOf(desired)}`,
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
        if (owner === undefined) {
          return 'the hub has a project of its own of that name';
        }
        return owner.length < agent.length && local.metadata.name.startsWith(`${owner}-`)
          ? undefined
          : `the project of that name on the hub is a mirror of agent ${owner}`;
      },
      refusal: (name) => this.#refusal(agent, name),
      checksum: (local) => {
        // The agent knows its own project, not the mirror. Go agents would send a mutilated one to repair a difference.
        const [source, mirror] = local.metadata.annotations?.[annotations.mirrorChecksums]?.split(' ') ?? [];
        const own = specChecksum(local.spec);
        return mirror === own && source !== undefined ? source : own;
      },
      digest: (local, isAsSent) => {
        const [source = '', mirror] = local.metadata.annotations?.[annotations.mirrorDigests]?.split(' ') ?? [];
        return isAsSent || mirror === digestOf(local) ? source : '';
      },
      renew: (name, copy, marks) => {
        const { [annotations.mirrorChecksums]: checksums, [annotations.mirrorDigests]: digests, ...others } = marks;
        const [source, mirror] = digests?.split(' ') ?? [];
        const isOwn = mirror === digestOf(copy);
        const object = renewedMirror({ ...copy, metadata: { ...copy.metadata, name } }, place(), isOwn);
        const [checksum, mirrorChecksum] = checksums?.split(' ') ?? [];
        return {
          object,
          marks: {
            ...others,
            ...(mirrorChecksum === specChecksum(copy.spec)
              ? { [annotations.mirrorChecksums]: `${checksum} ${specChecksum(object.spec)}` }
              : {}),
            ...(isOwn ? { [annotations.mirrorDigests]: `${source} ${digestOf(object)}` } : {}),
          },
        };
      },
      dropsFinalizers: true,
    };
  }

  /** An agent with a longer name that wants a mirror of this name has it. */
  #refusal(agent: string, name: string): string | undefined {
    for (const [other, { replica }] of this.#concerned({ name })) {
      if (other.length > agent.length && replica.wants(name)) {
        return `the name ${name} on the hub belongs to project ${mirroredProjectName(other, name)} of agent ${other}`;
      }
    }
    return undefined;
  }

  /** The agents whose mirror could have this name. */
  *#concerned({ name }: Pick<ObjectRef, 'name'>): Iterable<[string, Mirror]> {
    for (let dash = name.indexOf('-'); dash !== -1; dash = name.indexOf('-', dash + 1)) {
      const agent = name.slice(0, dash);
      const mirror = this.#mirrors.get(agent);
      if (mirror !== undefined) {
        yield [agent, mirror];
      }
    }
  }
}

function digestOf(project: AppProject): string {
  return replicaDigest(appProjectKind, project);
}
