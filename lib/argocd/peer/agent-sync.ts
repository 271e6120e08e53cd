import type { Runtime, Tuning } from '../../sync/index.ts';
import { CopyResync } from './copy-resync.ts';
import type { AgentKind, ConnectedPrincipal, CopySync, SourceSync } from './kind-sync.ts';
import type { Message, PeerConnection, UnreadableMessage } from './messages.ts';
import { PeerSync } from './peer-sync.ts';
import { SourceResync } from './source-resync.ts';
import type { SyncStats } from './stats.ts';

/** The kinds that an agent synchronises, by its mode. */
export type AgentKinds =
  | { readonly mode: 'managed'; readonly kinds: readonly AgentKind<CopySync>[] }
  | { readonly mode: 'autonomous'; readonly kinds: readonly AgentKind<SourceSync>[] };

/** How {@link AgentSync} work. */
export type AgentSyncOptions = AgentKinds & {
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
};

/** Everything that an agent synchronises with its principal. */
export class AgentSync {
  readonly #options: AgentSyncOptions;
  readonly #sync: PeerSync<SourceSync> | PeerSync<CopySync>;

  constructor(options: AgentSyncOptions) {
    const { mode, runtime, tuning } = options;
    const common = { peer: { mode }, runtime, tuning };
    this.#options = options;
    this.#sync =
      options.mode === 'managed'
        ? new PeerSync(options.kinds, (context) => new CopyResync(context), common)
        : new PeerSync(options.kinds, (context) => new SourceResync(context), common);
  }

  /** Starts to follow the cluster. Call it when the caches are filled, and before the first connection. */
  start(signal: AbortSignal): void {
    for (const kind of this.#options.kinds) {
      kind.start(signal);
    }
    signal.addEventListener('abort', () => this.#sync.close());
  }

  /** The principal connected; a newer connection replaces an older one. */
  connected(connection: PeerConnection, principal: ConnectedPrincipal): void {
    this.#sync.connected(connection, principal);
  }

  /** The connection is gone; ignored when a newer one has taken its place. */
  disconnected(connection: PeerConnection): void {
    this.#sync.disconnected(connection);
  }

  /**
   * A cache shows that the cluster was restored from a backup, and everything that follows the cache has heard of it. What the
   * cluster has is compared with what the principal has, as after a restart.
   */
  restored(): void {
    this.#sync.restored();
  }

  /** The connection takes more after it had refused. */
  writable(): void {
    this.#sync.writable();
  }

  /** The principal processed an event of ours. */
  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): void {
    this.#sync.acknowledged(event);
  }

  /** Takes a message of the principal. It is acknowledged when it is done. */
  receive(message: Message): void {
    this.#sync.receive(message);
  }

  /** The principal sent something about an object that cannot be read, and was refused. */
  unreadable(message: UnreadableMessage): void {
    this.#sync.unreadable(message);
  }

  /** Figures for metrics, of all kinds together. */
  stats(): SyncStats {
    return this.#sync.stats();
  }

  /** For how long, in milliseconds, the oldest state that the principal has not acknowledged has waited; 0 without any. */
  oldestMs(): number {
    return this.#sync.oldestMs();
  }
}
