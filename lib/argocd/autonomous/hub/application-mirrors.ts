import {
  type Clock,
  type ObjectRef,
  type Runtime,
  type Store,
  type StoreChange,
  type Tuning,
  View,
} from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import type { CopySync, HubKind } from '../../peer/kind-sync.ts';
import { ApplicationWriter } from '../../writing/application-writer.ts';
import { AgentMirrors } from './agent-mirrors.ts';
import type { MirrorFailure } from './mirror-failure.ts';
import type { MirrorAdoptionPolicy } from './mirror-plan.ts';
import { namespaceMaker } from './missing-namespace.ts';

/** How {@link ApplicationMirrors} work. */
export interface ApplicationMirrorsOptions {
  /** The hub's Applications, of all namespaces. */
  readonly applications: Store<Application>;
  /** The principal's persistent identity. */
  readonly principalUid: string;
  /**
   * What the hub's Argo CD calls the agent's cluster; undefined while there is no such cluster, and then nothing is mirrored
   * (tell of the change with {@link ApplicationMirrors.clusterChanged}). Default: the agent's name.
   */
  readonly clusterOf?: (agent: string) => string | undefined;
  /** Makes a namespace that is missing. It rejects if that is not wanted: mirrors in it then wait until it is there. */
  readonly ensureNamespace?: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
  /** Whether an Application that is nobody's mirror is taken over by an agent's of the same name. Default: never. */
  readonly adoptionPolicy?: MirrorAdoptionPolicy;
  /** Hears what cannot be mirrored and why, once per reason, for people to see. */
  readonly onFailure?: (trouble: MirrorFailure) => void;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/**
 * The hub's side of autonomous mode, for all agents: shows every agent's Applications as mirrors in the namespace named
 * after it, keeps them as the agent says, whatever users do to them, and passes on what users ask of Argo CD. An agent
 * reaches nothing outside its namespace.
 */
export class ApplicationMirrors implements HubKind<CopySync> {
  readonly #options: ApplicationMirrorsOptions;
  readonly #clock: Clock;
  readonly #view: View<Application>;
  readonly #writer: ApplicationWriter;
  readonly #stop = new AbortController();
  readonly #peers = new Map<string, AgentMirrors>();
  /** Names of Applications by namespace. */
  readonly #names = new Map<string, Set<string>>();

  constructor(options: ApplicationMirrorsOptions) {
    this.#options = options;
    this.#clock = options.runtime.clock;
    this.#view = new View({
      clock: this.#clock,
      changed: (ref, change) => this.#hubChange(ref, change),
      doubted: (ref) => this.#peers.get(ref.namespace)?.doubt(ref),
    });
    this.#writer = new ApplicationWriter({
      store: options.applications,
      view: this.#view,
      objection: () => undefined,
      ensureNamespace: namespaceMaker(options.ensureNamespace),
      log: options.runtime.log,
    });
  }

  start(signal: AbortSignal): void {
    const unfollow = this.#view.follow(this.#options.applications);
    signal.addEventListener('abort', () => {
      unfollow();
      this.#stop.abort();
    });
  }

  syncFor(agent: string): CopySync {
    const options = this.#options;
    let peer = this.#peers.get(agent);
    if (peer === undefined) {
      peer = new AgentMirrors({
        agent,
        principalUid: options.principalUid,
        cluster: () => (options.clusterOf === undefined ? agent : options.clusterOf(agent)),
        adoptionPolicy: options.adoptionPolicy ?? 'never',
        view: this.#view,
        names: () => this.#names.get(agent) ?? [],
        writer: this.#writer,
        onFailure: options.onFailure ?? (() => undefined),
        runtime: this.#options.runtime,
        tuning: this.#options.tuning,
      });
      this.#peers.set(agent, peer);
      peer.begin();
    }
    return peer;
  }

  forgetAgent(agent: string): void {
    this.#peers.get(agent)?.close();
    this.#peers.delete(agent);
  }

  /** What the hub calls the agent's cluster may have changed. */
  clusterChanged(agent: string): void {
    this.#peers.get(agent)?.clusterChanged();
  }

  /** Whether a hub Application is known to be a mirror, also when somebody took away all that says so. */
  isMirror({ metadata }: Application): boolean {
    return this.#peers.get(metadata.namespace ?? '')?.isMirror(metadata.name, metadata.uid) ?? false;
  }

  /** What cannot be mirrored at present. */
  troubles(agent: string): MirrorFailure[] {
    return this.#peers.get(agent)?.troubles() ?? [];
  }

  #hubChange(ref: ObjectRef, { now }: StoreChange<Application>): void {
    const names = this.#names.get(ref.namespace);
    if (now === undefined) {
      names?.delete(ref.name);
      if (names?.size === 0) {
        this.#names.delete(ref.namespace);
      }
    } else if (names === undefined) {
      this.#names.set(ref.namespace, new Set([ref.name]));
    } else {
      names.add(ref.name);
    }
    this.#peers.get(ref.namespace)?.hubChange(ref.name, now);
  }
}
