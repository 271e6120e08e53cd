import type { Runtime, Tuning } from '../../sync/index.ts';
import { CopyResync } from './copy-resync.ts';
import type { AgentMode, CopySync, HubKind, LateObject, SourceSync } from './kind-sync.ts';
import type { Message, PeerConnection, ResyncKind, UnreadableMessage } from './messages.ts';
import { PeerSync } from './peer-sync.ts';
import { SourceResync } from './source-resync.ts';
import type { SyncStats } from './stats.ts';

/** How {@link HubSync} work. */
export interface HubSyncOptions {
  /** Kinds that managed agents receive, in the order of sending: Argo CD needs projects and repositories first. */
  readonly managed: readonly HubKind<SourceSync>[];
  /** Kinds that are mirrored from autonomous agents. */
  readonly autonomous?: readonly HubKind<CopySync>[];
  /** Called for each message that an agent may not send in its mode. */
  readonly refused?: (agent: string, message: Message) => void;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

interface Agent {
  readonly mode: AgentMode;
  readonly sync: PeerSync<SourceSync> | PeerSync<CopySync>;
}

/** Everything that the principal synchronises with its agents, managed and autonomous ones. */
export class HubSync {
  readonly #options: HubSyncOptions;
  readonly #agents = new Map<string, Agent>();

  constructor(options: HubSyncOptions) {
    this.#options = options;
  }

  /** Starts to follow the hub. Call it when the caches are filled, and before the first connection. */
  start(signal: AbortSignal): void {
    const { managed, autonomous = [] } = this.#options;
    for (const kind of [...managed, ...autonomous]) {
      kind.start(signal);
    }
    signal.addEventListener('abort', () => {
      for (const { sync } of this.#agents.values()) {
        sync.close();
      }
    });
  }

  /**
   * Prepares for an agent that has not connected yet: the mirrors of an autonomous agent are protected from now on. Not
   * needed for an agent that connects.
   */
  expect(agent: string, mode: AgentMode): void {
    this.#agent(agent, mode);
  }

  /**
   * The agent connected; a newer connection replaces an older one. An agent that changed its mode counts as another agent,
   * and its state here is dropped.
   */
  connected(agent: string, mode: AgentMode, connection: PeerConnection): void {
    this.#agent(agent, mode).sync.connected(connection, { agent, principalNamespace: '' });
  }

  /** The connection is gone; ignored when a newer one has taken its place. */
  disconnected(agent: string, connection: PeerConnection): void {
    this.#agents.get(agent)?.sync.disconnected(connection);
  }

  /** The agent's connection takes more after it had refused. */
  writable(agent: string): void {
    this.#agents.get(agent)?.sync.writable();
  }

  /** The agent processed an event of ours. */
  acknowledged(agent: string, event: { readonly resourceId: string; readonly eventId: string }): void {
    this.#agents.get(agent)?.sync.acknowledged(event);
  }

  /** Takes a message of a connected agent. It is acknowledged when it is done. */
  receive(agent: string, message: Message): void {
    this.#agents.get(agent)?.sync.receive(message);
  }

  /** A connected agent sent something about an object that cannot be read, and was refused. */
  unreadable(agent: string, message: UnreadableMessage): void {
    this.#agents.get(agent)?.sync.unreadable(message);
  }

  /** The agent was detached: its state here is dropped; objects stay. */
  forgetAgent(agent: string): void {
    const { managed, autonomous = [] } = this.#options;
    this.#agents.get(agent)?.sync.close();
    this.#agents.delete(agent);
    for (const kind of [...managed, ...autonomous]) {
      kind.forgetAgent(agent);
    }
  }

  /** Another principal serves the agent, or may from now on: its state here is dropped, and nothing is done for it any more. */
  releaseAgent(agent: string): void {
    const { managed, autonomous = [] } = this.#options;
    this.#agents.get(agent)?.sync.close();
    this.#agents.delete(agent);
    for (const kind of [...managed, ...autonomous]) {
      if (kind.releaseAgent === undefined) {
        kind.forgetAgent(agent);
      } else {
        kind.releaseAgent(agent);
      }
    }
  }

  /** Figures for metrics, of all kinds together. */
  stats(agent: string): SyncStats {
    return this.#agents.get(agent)?.sync.stats() ?? { pending: 0, inFlight: 0, queued: 0, retrying: 0 };
  }

  /** For how long, in milliseconds, the oldest state that the agent has not acknowledged has waited; 0 without any. */
  oldestMs(agent: string): number {
    return this.#agents.get(agent)?.sync.oldestMs() ?? 0;
  }

  /** Some objects of a kind whose states have waited for longer than `afterMs` for the agent's acknowledgement, at most `most`. */
  late(agent: string, kind: ResyncKind, afterMs: number, most: number): readonly LateObject[] {
    return this.#agents.get(agent)?.sync.late(kind, afterMs, most) ?? [];
  }

  #agent(name: string, mode: AgentMode): Agent {
    const known = this.#agents.get(name);
    if (known?.mode === mode) {
      return known;
    }
    if (known !== undefined) {
      this.forgetAgent(name);
    }
    const agent = { mode, sync: this.#syncWith(name, mode) };
    this.#agents.set(name, agent);
    return agent;
  }

  #syncWith(agent: string, mode: AgentMode): Agent['sync'] {
    const { managed, autonomous = [], runtime, tuning } = this.#options;
    const refused = (message: Message) => this.#options.refused?.(agent, message);
    const options = { peer: { agent, mode }, runtime, tuning, refused };
    return mode === 'managed'
      ? new PeerSync(
          managed.map((kind) => kind.syncFor(agent)),
          (context) => new SourceResync(context),
          options,
        )
      : new PeerSync(
          autonomous.map((kind) => kind.syncFor(agent)),
          (context) => new CopyResync(context),
          options,
        );
  }
}
