import { type HubSync, type Message, Warnings } from '../../lib/argocd/index.ts';
import { type AgentIdentity, type AuthRequest, fingerprintOf } from '../../lib/auth/index.ts';
import {
  adaptStream,
  EventTimer,
  EventTracer,
  FairSender,
  type ReceiveWindowLimits,
  resourceTypeOf,
  type StreamAdapter,
  UnservedEvents,
} from '../../lib/bridge/index.ts';
import type { ProgramLogger } from '../../lib/ops/index.ts';
import { type Detail, detailOf } from '../../lib/ops/index.ts';
import type { Tracer } from '../../lib/tracing/index.ts';
import { principalSource, type Session, type SessionHandlers, targets, type WireEvent } from '../../lib/wire/index.ts';
import type { ClusterInfos } from '../clusters/cluster-info.ts';
import type { LiveAccess } from '../live/live-access.ts';
import type { PrincipalMetrics, UnsendableEvent } from '../metrics.ts';
import type { ConnectionRecords } from './connection-records.ts';

/** Of what an agent says about itself, as much as makes sense is kept and shown. */
const longestVersion = 128;
const longestNamespace = 63;

interface Current {
  readonly session: Session;
  readonly peer: StreamAdapter;
  readonly since: Date;
}

/** What {@link Sessions} works with. */
export interface SessionsOptions {
  readonly parts: HubSync;
  readonly isMapped: (agent: string) => boolean;
  /** Hears that what the cluster Secrets say of an agent has changed. */
  readonly clusterChanged: (agent: string) => void;
  /** The mode that an agent must have, undefined when it may have any. */
  readonly pinnedMode: (agent: string) => string | undefined;
  readonly records: ConnectionRecords;
  readonly clusterInfos: ClusterInfos;
  readonly live: Pick<LiveAccess, 'answered' | 'connected' | 'disconnected'>;
  /** What an agent may send ahead of what has been written to the API server. */
  readonly receiveWindow: ReceiveWindowLimits;
  readonly metrics: PrincipalMetrics;
  readonly tracer: Tracer | undefined;
  readonly detail: Detail;
  readonly logger: ProgramLogger;
  /** For each event that comes and goes. */
  readonly eventLogger: ProgramLogger;
}

/**
 * The agents' streams: puts each on the engine and records who is connected. An agent that has no cluster Secret stays
 * connected, but nothing is read from it and it is told nothing: "you should have nothing" would make it delete what it has.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  /** What agents said about themselves when they last authenticated. */
  readonly #introductions = new Map<string, { version: string; namespace: string }>();
  readonly #current = new Map<string, Current>();
  readonly #sender = new FairSender();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Remembers what an agent said about itself. */
  introduced(identity: AgentIdentity, request: AuthRequest): void {
    const version = request.version.slice(0, longestVersion);
    this.#introductions.set(identity.agent, { version, namespace: request.agentNamespace.slice(0, longestNamespace) });
  }

  /** The namespace of Argo CD on the agent's cluster, as the agent said. */
  namespaceOf(agent: string): string | undefined {
    return this.#introductions.get(agent)?.namespace;
  }

  /** Whether the agent has a stream and a cluster Secret. */
  isConnected(agent: string): boolean {
    return this.#current.get(agent)?.session.stream.ended === false && this.#options.isMapped(agent);
  }

  /** Puts an event about live data on the agent's stream; false when there is none, or the agent gets nothing. */
  send(agent: string, event: WireEvent): boolean {
    if (!this.isConnected(agent)) {
      return false;
    }
    this.#options.metrics.eventSent();
    this.#current.get(agent)?.session.stream.send(event);
    return true;
  }

  /** The agents that are connected. */
  connections(): { readonly agent: string; readonly mode: string; readonly since: Date }[] {
    return Array.from(this.#current.values(), ({ session, since }) => ({
      agent: session.agent,
      mode: session.mode,
      since,
    }));
  }

  /** Ends the streams of agents whose certificate is blocked. */
  disconnectBlocked(isBlocked: (fingerprint: string) => boolean): void {
    for (const [agent, { session }] of this.#current) {
      const { certificate } = session.peer;
      if (certificate === undefined || !isBlocked(fingerprintOf(certificate))) {
        continue;
      }
      this.#options.logger.warn({ agent }, 'the certificate of a connected agent was blocked');
      session.stream.close('the client certificate is on the blocklist');
    }
  }

  /** The agent has got a cluster Secret. */
  mapped(agent: string): void {
    const current = this.#current.get(agent);
    if (current === undefined || this.#endInWrongMode(current)) {
      return;
    }
    this.#attach(agent, current);
    current.session.stream.resume();
    this.#options.clusterInfos.connected(agent);
  }

  /** What the agent's cluster Secrets say has changed. */
  changed(agent: string): void {
    const current = this.#current.get(agent);
    if (current !== undefined) {
      this.#endInWrongMode(current);
    }
    this.#options.clusterInfos.changed(agent);
    this.#options.clusterChanged(agent);
  }

  /** The agent's last cluster Secret is gone: the engine forgets it, and its stream ends. */
  unmapped(agent: string): void {
    const { parts, metrics, records } = this.#options;
    parts.forgetAgent(agent);
    metrics.forgetAgent(agent);
    records.forget(agent);
    this.#introductions.delete(agent);
    this.#current.get(agent)?.session.stream.close('the agent is no longer mapped to a cluster');
  }

  /** Takes over a new stream. */
  subscribe(session: Session): SessionHandlers {
    const { agent, mode, stream } = session;
    const { parts, metrics, records, clusterInfos, logger } = this.#options;
    const version = this.#introductions.get(agent)?.version ?? '';
    const warnings = new Warnings(logger);
    const unserved = new UnservedEvents(this.#options.eventLogger.child({ agent }));
    const unusable = (event: WireEvent) => {
      timer.failed(event);
      traces?.failed(event, 'it cannot be made use of');
      metrics.refusedEvent(agent, resourceTypeOf(event));
    };
    const timer = new EventTimer({
      arrived: (type, seconds) => metrics.arrived(type, seconds),
      done: (type, seconds, outcome) => metrics.processed(agent, type, outcome, seconds),
    });
    const { tracer } = this.#options;
    const traces = tracer && new EventTracer(tracer, { 'argocd.agent.name': agent, 'argocd.agent.mode': mode });
    const peer: StreamAdapter = adaptStream({
      stream,
      source: principalSource,
      logger: this.#options.eventLogger.child({ agent }),
      listener: {
        receive: (message) => {
          this.#logDetail(agent, 'received', message);
          parts.receive(agent, message);
        },
        acknowledged: (ids) => parts.acknowledged(agent, ids),
        writable: () => parts.writable(agent),
      },
      received: (event) => {
        metrics.eventReceived();
        timer.received(event);
        traces?.received(event);
      },
      sent: (event) => {
        metrics.eventSent();
        timer.sent(event);
        traces?.sent(event);
      },
      ...(traces && { outgoing: (event: WireEvent) => traces.outgoing(event) }),
      messageSent: (message) => this.#logSent(agent, message),
      other: (event) => {
        if (!this.#takeOther(agent, event, { warnings, unserved })) {
          unusable(event);
        }
      },
      unreadable: (event) => unusable(event),
      unsendable: (event) => metrics.unsendable(agent, unsendable(event)),
      receiveWindow: this.#options.receiveWindow,
      sender: this.#sender,
    });
    const current: Current = { session, peer, since: new Date() };
    this.#current.set(agent, current);
    records.connected(agent, { mode, version });
    if (this.#options.isMapped(agent)) {
      metrics.connected(agent);
      clusterInfos.connected(agent);
      this.#attach(agent, current);
    } else {
      stream.pause();
      logger.warn(
        { agent },
        'the agent has no cluster Secret (label argocd-agent.argoproj-labs.io/agent-name) and gets nothing until it has one',
      );
    }
    return {
      event: peer.event,
      unreadable: () => metrics.refusedEvent(agent, 'unknown'),
      closed: () => {
        traces?.close();
        parts.disconnected(agent, peer.connection);
        if (this.#current.get(agent) !== current) {
          return;
        }
        this.#current.delete(agent);
        this.#options.live.disconnected(agent);
        records.disconnected(agent);
        if (this.#options.isMapped(agent)) {
          clusterInfos.disconnected(agent);
        }
      },
    };
  }

  #attach(agent: string, { session, peer }: Current): void {
    this.#options.parts.connected(agent, session.mode, peer.connection);
    this.#options.live.connected(agent);
  }

  /** An operator has decided for another mode: the agent has to come back in that one. */
  #endInWrongMode({ session: { agent, mode, stream } }: Current): boolean {
    const pinned = this.#options.pinnedMode(agent);
    if (pinned === undefined || pinned === mode) {
      return false;
    }
    this.#options.logger.warn({ agent, mode, pinned }, "the agent's mode is no longer allowed, its stream ends");
    stream.close(`this agent's mode has to be ${pinned}`);
    return true;
  }

  /** What is not about resources that are kept in step. Returns whether it could be made use of. */
  #takeOther(
    agent: string,
    event: WireEvent,
    { warnings, unserved }: { readonly warnings: Warnings; readonly unserved: UnservedEvents },
  ): boolean {
    switch (event.target) {
      case targets.heartbeat:
        return true;
      case targets.resource:
      case targets.redis:
        try {
          // One that nobody waits for any more is late, which is no fault.
          this.#options.live.answered(agent, event);
          return true;
        } catch (error) {
          warnings.warn({ agent, error }, 'an answer of an agent cannot be read');
          return false;
        }
      case targets.clusterCacheInfoUpdate:
        try {
          this.#options.clusterInfos.statistics(agent, event);
          return true;
        } catch (error) {
          warnings.warn({ agent, error }, "the statistics of an agent's cluster cannot be read");
          return false;
        }
      default:
        unserved.report(event);
        return false;
    }
  }

  /** Lets an operator follow what an agent is asked to do. */
  #logSent(agent: string, message: Message): void {
    this.#logDetail(agent, 'sent', message);
    if (message.target === 'resourceResync' || message.type === 'error') {
      return;
    }
    const { namespace, name } = message.object.metadata;
    const field = fieldOf[message.target];
    this.#options.logger.info(
      { agent, [field]: `${namespace ?? ''}/${name}`, event: message.type },
      'sent to the agent',
    );
  }

  #logDetail(agent: string, direction: 'sent' | 'received', message: Message): void {
    if (!this.#options.detail.has('events')) {
      return;
    }
    const { target, type } = message;
    const content = 'object' in message ? message.object : message;
    const detail = detailOf(content, secretTargets.has(target) ? 'Secret' : undefined);
    this.#options.logger.info(
      { agent, log_category: 'events', direction, event_target: target, event_type: type, detail },
      'event in full',
    );
  }
}

function unsendable(event: WireEvent): UnsendableEvent {
  return { eventType: event.type, resourceType: resourceTypeOf(event), reason: 'too_large' };
}

const secretTargets: ReadonlySet<string> = new Set([targets.repository]);
const fieldOf = {
  application: 'application',
  appproject: 'appProject',
  repository: 'repository',
  gpgkey: 'gpgKey',
} as const;
