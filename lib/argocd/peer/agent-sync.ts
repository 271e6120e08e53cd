import { randomUUID } from 'node:crypto';
import type { Logger } from '../../base/index.ts';
import type { Backoff, Clock } from '../../sync/index.ts';
import { MirrorResync } from './copy-resync.ts';
import type { AgentKind, MirrorPart, PrincipalPeerInfo, SourcePart } from './kind-sync.ts';
import type { Message, PeerConnection } from './messages.ts';
import { Conversation } from './peer-sync.ts';
import { SourceResync } from './source-resync.ts';
import type { SyncStats } from './stats.ts';

/** What an agent keeps in step, by its mode. */
export type AgentKinds =
  | { readonly mode: 'managed'; readonly kinds: readonly AgentKind<MirrorPart>[] }
  | { readonly mode: 'autonomous'; readonly kinds: readonly AgentKind<SourcePart>[] };

/** How {@link AgentParts} work. */
export type AgentPartsOptions = AgentKinds & {
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly newId?: () => string;
  readonly resend?: Backoff;
};

/** Everything that an agent keeps in step with its principal. */
export class AgentParts {
  readonly #options: AgentPartsOptions;
  readonly #conversation: Conversation<SourcePart> | Conversation<MirrorPart>;

  constructor(options: AgentPartsOptions) {
    const { log, clock, random = Math.random, newId = randomUUID, resend, mode } = options;
    const common = { log, peer: { mode }, clock, random, newId, resend };
    this.#options = options;
    this.#conversation =
      options.mode === 'managed'
        ? new Conversation(options.kinds, (context) => new MirrorResync(context), common)
        : new Conversation(options.kinds, (context) => new SourceResync(context), common);
  }

  /** Starts to follow the cluster. Call it when the caches are filled, and before the first connection. */
  start(signal: AbortSignal): void {
    for (const kind of this.#options.kinds) {
      kind.start(signal);
    }
    signal.addEventListener('abort', () => this.#conversation.close());
  }

  /** The principal is there; a newer connection takes the place of an older one. */
  connected(connection: PeerConnection, principal: PrincipalPeerInfo): void {
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
