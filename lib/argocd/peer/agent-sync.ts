import { randomUUID } from 'node:crypto';
import type { Logger } from '../../base/index.ts';
import type { Backoff, Clock } from '../../sync/index.ts';
import { CopyResync } from './copy-resync.ts';
import type { AgentKind, ConnectedPrincipal, CopySync, SourceSync } from './kind-sync.ts';
import type { Message, PeerConnection } from './messages.ts';
import { PeerSync } from './peer-sync.ts';
import { SourceResync } from './source-resync.ts';
import type { SyncStats } from './stats.ts';

/** What an agent keeps in step, by its mode. */
export type AgentKinds =
  | { readonly mode: 'managed'; readonly kinds: readonly AgentKind<CopySync>[] }
  | { readonly mode: 'autonomous'; readonly kinds: readonly AgentKind<SourceSync>[] };

/** How {@link AgentSync} work. */
export type AgentSyncOptions = AgentKinds & {
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly newId?: () => string;
  readonly resend?: Backoff;
};

/** Everything that an agent keeps in step with its principal. */
export class AgentSync {
  readonly #options: AgentSyncOptions;
  readonly #conversation: PeerSync<SourceSync> | PeerSync<CopySync>;

  constructor(options: AgentSyncOptions) {
    const { log, clock, random = Math.random, newId = randomUUID, resend, mode } = options;
    const common = { log, peer: { mode }, clock, random, newId, resend };
    this.#options = options;
    this.#conversation =
      options.mode === 'managed'
        ? new PeerSync(options.kinds, (context) => new CopyResync(context), common)
        : new PeerSync(options.kinds, (context) => new SourceResync(context), common);
  }

  /** Starts to follow the cluster. Call it when the caches are filled, and before the first connection. */
  start(signal: AbortSignal): void {
    for (const kind of this.#options.kinds) {
      kind.start(signal);
    }
    signal.addEventListener('abort', () => this.#conversation.close());
  }

  /** The principal is there; a newer connection takes the place of an older one. */
  connected(connection: PeerConnection, principal: ConnectedPrincipal): void {
    this.#conversation.connected(connection, principal);
  }

  /** The connection is gone; ignored when a newer one has taken its place. */
  disconnected(connection: PeerConnection): void {
    this.#conversation.disconnected(connection);
  }

  /** The connection takes more after it had refused. */
  writable(): void {
    this.#conversation.writable();
  }

  /** The principal processed an event of ours. */
  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): void {
    this.#conversation.acknowledged(event);
  }

  /** Takes a message of the principal. It is acknowledged when it is done. */
  receive(message: Message): void {
    this.#conversation.receive(message);
  }

  /** Figures for metrics, of all kinds together. */
  stats(): SyncStats {
    return this.#conversation.stats();
  }
}
