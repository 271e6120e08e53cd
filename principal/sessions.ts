import type { Message, PrincipalParts } from '../lib/argocd/index.ts';
import { type AgentIdentity, type AuthRequest, fingerprintOf } from '../lib/auth/index.ts';
import { type Peer, peerOnStream } from '../lib/bridge/index.ts';
import type { Logger } from '../lib/ops/index.ts';
import { principalSource, type Session, type SessionHandlers } from '../lib/wire/index.ts';
import type { ConnectionRecords } from './connections.ts';
import type { PrincipalMetrics } from './metrics.ts';

/** What an agent may send ahead of what has been written to the API server. */
const intake = { maxEvents: 5_000, maxBytes: 64 * 1024 * 1024 };

interface Current {
  readonly session: Session;
  readonly peer: Peer;
}

/**
 * The agents' streams: puts each on the engine and records who is connected. An agent that has no cluster Secret stays
 * connected, but nothing is read from it and it is told nothing: "you should have nothing" would make it delete what it has.
 */
export class Sessions {
  readonly #sync: PrincipalParts;
  readonly #isMapped: (agent: string) => boolean;
  readonly #records: ConnectionRecords;
  readonly #metrics: PrincipalMetrics;
  readonly #logger: Logger;
  /** What agents said about themselves when they last authenticated. */
  readonly #introductions = new Map<string, { version: string; namespace: string }>();
  readonly #current = new Map<string, Current>();

  constructor(options: {
    sync: PrincipalParts;
    isMapped: (agent: string) => boolean;
    records: ConnectionRecords;
    metrics: PrincipalMetrics;
    logger: Logger;
  }) {
    this.#sync = options.sync;
    this.#isMapped = options.isMapped;
    this.#records = options.records;
    this.#metrics = options.metrics;
    this.#logger = options.logger;
  }

  /** Remembers what an agent said about itself. */
  introduced(identity: AgentIdentity, request: AuthRequest): void {
    this.#introductions.set(identity.agent, { version: request.version, namespace: request.agentNamespace });
  }

  /** The namespace of Argo CD on the agent's cluster, as the agent said. */
  namespaceOf(agent: string): string | undefined {
    return this.#introductions.get(agent)?.namespace;
  }

  /** The agents that are connected. */
  agents(): string[] {
    return [...this.#current.keys()];
  }

  /** Ends the streams of agents whose certificate is blocked. */
  disconnectBlocked(isBlocked: (fingerprint: string) => boolean): void {
    for (const [agent, { session }] of this.#current) {
      const { certificate } = session.peer;
      if (certificate === undefined || !isBlocked(fingerprintOf(certificate))) continue;
      this.#logger.warn({ agent }, 'the certificate of a connected agent was blocked');
      session.stream.close('the client certificate is on the blocklist');
    }
  }

  /** The agent has got a cluster Secret. */
  mapped(agent: string): void {
    const current = this.#current.get(agent);
    if (current === undefined) return;
    this.#attach(agent, current);
    current.session.stream.resume();
  }

  /** The agent's last cluster Secret is gone: the engine forgets it, and its stream ends. */
  unmapped(agent: string): void {
    this.#sync.forgetAgent(agent);
    this.#metrics.connections.remove({ agent_name: agent });
    this.#current.get(agent)?.session.stream.close('the agent is no longer mapped to a cluster');
  }

  /** Takes over a new stream. */
  subscribe(session: Session): SessionHandlers {
    const { agent, mode, stream } = session;
    const sync = this.#sync;
    const version = this.#introductions.get(agent)?.version ?? '';
    const peer: Peer = peerOnStream({
      stream,
      source: principalSource,
      logger: this.#logger.child({ agent }),
      listener: {
        receive: (message) => sync.receive(agent, message),
        acknowledged: (ids) => sync.acknowledged(agent, ids),
        writable: () => sync.writable(agent),
      },
      received: () => this.#metrics.eventsReceived.inc(),
      sent: () => this.#metrics.eventsSent.inc(),
      messageSent: (message) => this.#logSent(agent, message),
      intake,
    });
    const current: Current = { session, peer };
    this.#current.set(agent, current);
    this.#metrics.connections.inc({ agent_name: agent });
    this.#metrics.connectedAgents.set(this.#current.size);
    this.#records.connected(agent, { mode, version });
    if (this.#isMapped(agent)) this.#attach(agent, current);
    else {
      stream.pause();
      this.#logger.warn(
        { agent },
        'the agent has no cluster Secret (label argocd-agent.argoproj-labs.io/agent-name) and gets nothing until it has one',
      );
    }
    return {
      event: peer.event,
      closed: () => {
        sync.disconnected(agent, peer.connection);
        if (this.#current.get(agent) !== current) return;
        this.#current.delete(agent);
        this.#metrics.connectedAgents.set(this.#current.size);
        this.#records.disconnected(agent);
      },
    };
  }

  /** Lets an operator follow what an agent is asked to do. */
  #logSent(agent: string, message: Message): void {
    if (message.target === 'resourceResync' || message.type === 'error') return;
    const { namespace, name } = message.object.metadata;
    const field = message.target === 'application' ? 'application' : 'appProject';
    this.#logger.info({ agent, [field]: `${namespace ?? ''}/${name}`, event: message.type }, 'sent to the agent');
  }

  #attach(agent: string, { session, peer }: Current): void {
    this.#sync.connected(agent, session.mode, peer.connection);
  }
}
