import type { LabelCompletion } from '../../../base/index.ts';
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
import { isSkipped } from '../../routing.ts';
import { DepartedMirrors } from '../../writing/departed-mirrors.ts';
import { mirrorNames } from '../../writing/kind-names.ts';
import { namespaceMaker } from '../../writing/missing-namespace.ts';
import { PlanWriter } from '../../writing/plan-writer.ts';
import { isMadeHere } from '../mirror.ts';
import { AgentMirrors } from './agent-mirrors.ts';
import type { MirrorFailure } from './mirror-failure.ts';
import type { MirrorAdoptionPolicy, MirrorChange } from './mirror-plan.ts';

/** How {@link ApplicationMirrors} work. */
export interface ApplicationMirrorsOptions {
  /** The hub's Applications, of all namespaces. */
  readonly applications: Store<Application>;
  /** The principal's persistent identity. */
  readonly principalUid: string;
  /**
   * What the hub's Argo CD calls the agent's cluster; undefined while there is no such cluster, and then nothing is mirrored
   * (report a change with {@link ApplicationMirrors.clusterChanged}). Default: the agent's name.
   */
  readonly clusterOf?: (agent: string) => string | undefined;
  /** Makes a namespace that is missing. It rejects if that is not allowed: mirrors in it then wait until it is there. */
  readonly ensureNamespace?: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
  /** Whether an Application that is nobody's mirror is taken over by an agent's of the same name. Default: never. */
  readonly adoptionPolicy?: MirrorAdoptionPolicy;
  /**
   * The labels of a mirror, made of those that its agent's Application has: with them the store has it in its selection, whatever
   * the agent reports. Default: the same.
   */
  readonly labelsOf?: LabelCompletion;
  /**
   * Whether the agent of this name does not belong to the fleet: its mirrors are let go when somebody deletes them, whatever
   * finalizers they have. Default: none has left.
   */
  readonly hasLeft?: (agent: string) => boolean;
  /** Whether this principal, and no other one, does what is to be done for an agent. Default: yes. */
  readonly isResponsible?: ((agent: string) => boolean) | undefined;
  /** Called for what cannot be mirrored and why, once per reason, for people to see. */
  readonly onFailure?: (failure: MirrorFailure) => void;
  /** Called when somebody of the hub has changed or deleted a mirror, and it is as before again. Default: nobody hears of it. */
  readonly onPutBack?: (mirror: Application, was: MirrorChange) => void;
  /** Called when an agent connected or disconnected. */
  readonly presenceChanged?: (agent: string, isThere: boolean) => void;
  /** Waits until the agent may write again; called before each of its messages is processed. Default: no wait. */
  readonly pace?: ((agent: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

const noNames: ReadonlySet<string> = new Set();

/**
 * The hub's side of autonomous mode, for all agents: shows every agent's Applications as mirrors in the namespace named
 * after it, keeps them as the agent reports, whatever users do to them, and passes on what users request of Argo CD. An agent
 * reaches nothing outside its namespace.
 */
export class ApplicationMirrors implements HubKind<CopySync> {
  readonly #options: ApplicationMirrorsOptions;
  readonly #clock: Clock;
  readonly #view: View<Application>;
  readonly #writer: PlanWriter<Application>;
  readonly #stop = new AbortController();
  readonly #peers = new Map<string, AgentMirrors>();
  readonly #departed: DepartedMirrors<Application>;
  /** Names of Applications by namespace. */
  readonly #names = new Map<string, Set<string>>();

  constructor(options: ApplicationMirrorsOptions) {
    this.#options = options;
    this.#clock = options.runtime.clock;
    this.#view = new View({
      clock: this.#clock,
      changed: (ref, change) => this.#hubChange(ref, change),
      doubted: (ref) => this.#peers.get(ref.namespace)?.verify(ref),
    });
    this.#writer = new PlanWriter({
      names: mirrorNames,
      store: options.applications,
      view: this.#view,
      isHidden: isSkipped,
      ensureNamespace: namespaceMaker(options.ensureNamespace),
      runtime: options.runtime,
    });
    const agentOf = (one: Application) => (isMadeHere(one) ? one.metadata.namespace : undefined);
    this.#departed = new DepartedMirrors(
      { ...options, names: mirrorNames, writer: this.#writer, agentOf },
      this.#stop.signal,
    );
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
        labelsOf: options.labelsOf ?? ((labels) => labels),
        view: this.#view,
        names: () => this.namesIn(agent),
        writer: this.#writer,
        onFailure: options.onFailure ?? (() => undefined),
        onPutBack: options.onPutBack ?? (() => undefined),
        presenceChanged: (isThere) => options.presenceChanged?.(agent, isThere),
        pace: options.pace,
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
    for (const name of this.namesIn(agent)) {
      this.#considerDeparted({ namespace: agent, name });
    }
  }

  /** The hub's name for the agent's cluster may have changed. */
  clusterChanged(agent: string): void {
    this.#peers.get(agent)?.clusterChanged();
  }

  /** Whether a hub Application is known to be a mirror, also when somebody removed all its marks. */
  isMirror({ metadata }: Application): boolean {
    return this.#peers.get(metadata.namespace ?? '')?.isMirror(metadata.name, metadata.uid) ?? false;
  }

  /** Names of the Applications in an agent's namespace: mirrors, and what else is there. */
  namesIn(agent: string): ReadonlySet<string> {
    return this.#names.get(agent) ?? noNames;
  }

  /** The Applications of an agent that cannot be mirrored at present. */
  failures(agent: string): MirrorFailure[] {
    return this.#peers.get(agent)?.failures() ?? [];
  }

  #hubChange(ref: ObjectRef, change: StoreChange<Application>): void {
    const { now } = change;
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
    const peer = this.#peers.get(ref.namespace);
    if (peer === undefined) {
      this.#considerDeparted(ref);
    } else {
      peer.hubChange(ref.name, change);
    }
  }

  #considerDeparted(ref: ObjectRef): void {
    const application = this.#view.get(ref);
    if (application !== undefined) {
      this.#departed.consider(application);
    }
  }
}
