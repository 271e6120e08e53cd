import type { HubSync, Message } from '../../lib/argocd/index.ts';
import { type AgentIdentity, type AgentMode, AuthError } from '../../lib/auth/index.ts';
import {
  adaptStream,
  ConnectionObserver,
  messageLog,
  type ReceiveWindowLimits,
  resourceTypeOf,
  type StreamAdapter,
  sendTurns,
} from '../../lib/bridge/index.ts';
import type { Detail, ProgramLogger } from '../../lib/ops/index.ts';
import type { Tracer } from '../../lib/tracing/index.ts';
import { principalSource, type Session, type SessionHandlers, targets, type WireEvent } from '../../lib/wire/index.ts';
import type { ClusterInfos } from '../clusters/cluster-info.ts';
import type { LiveAccess } from '../live/live-access.ts';
import type { PrincipalMetrics } from '../metrics.ts';
import type { AgentRecords } from './agent-records.ts';
import type { AgentIntroductions } from './introductions.ts';
import type { OpenSession, OpenSessions } from './open-sessions.ts';
import { OtherEvents } from './other-events.ts';

/** What {@link Sessions} works with. */
export interface SessionsOptions {
  readonly open: OpenSessions;
  readonly introductions: AgentIntroductions;
  readonly sync: HubSync;
  readonly isMapped: (agent: string) => boolean;
  /** Called when the fields of the agent's cluster Secrets have changed. */
  readonly clusterChanged: (agent: string) => void;
  /** The mode that an agent must have, undefined when it may have any. */
  readonly pinnedMode: (agent: string) => string | undefined;
  readonly records: Pick<AgentRecords, 'connected' | 'disconnected' | 'forget'>;
  readonly clusterInfos: ClusterInfos;
  /** Called when an agent cannot have what it was sent, with the reason. */
  readonly refused?: (agent: string, reason: string) => void;
  readonly live: Pick<LiveAccess, 'answered' | 'connected' | 'disconnected'>;
  /** How much an agent may send ahead of our acknowledgements. */
  readonly receiveWindow: ReceiveWindowLimits;
  readonly metrics: PrincipalMetrics;
  readonly tracer: Tracer | undefined;
  readonly detail: Detail;
  readonly logger: ProgramLogger;
  /** For each event that is received or sent. */
  readonly eventLogger: ProgramLogger;
  /** Connects a stream with the engine. Default: {@link adaptStream}; the simulator's streams carry messages as they are. */
  readonly adapt?: typeof adaptStream;
}

/**
 * The agents' streams: connects each with the delivery engine and records the connections. An agent without a cluster
 * Secret stays connected, but nothing is read from it and nothing is sent to it: an empty list of resources would make it
 * delete its copies.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sending = sendTurns();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /**
   * Ends the streams of agents whose login no longer holds.
   * @param check rejects with an AuthError for such an agent
   */
  async disconnectWithdrawn(check: (identity: AgentIdentity) => Promise<void> | undefined): Promise<void> {
    for (const { session } of this.#options.open.all()) {
      try {
        await check(session);
      } catch (error) {
        if (!(error instanceof AuthError)) {
          throw error;
        }
        const { agent } = session;
        this.#options.logger.warn({ agent }, `the login of a connected agent was withdrawn: ${error.message}`);
        session.stream.close('the credentials of this agent were withdrawn');
      }
    }
  }

  /** The agent has got a cluster Secret. */
  mapped(agent: string): void {
    const open = this.#options.open.get(agent);
    if (open === undefined || this.#endInWrongMode(open) || !open.isServed) {
      return;
    }
    this.#attach(open);
    open.session.stream.resume('unserved');
    this.#options.clusterInfos.connected(agent);
  }

  /** This principal holds the agent from now on: its stream, which waited for that, is served. */
  held(agent: string): void {
    const open = this.#options.open.get(agent);
    if (open === undefined || open.isServed) {
      return;
    }
    open.isServed = true;
    this.#serve(open);
    if (this.#options.isMapped(agent)) {
      open.session.stream.resume('unserved');
    }
  }

  /** Ends the agent's session: another principal holds the agent, or may do so soon. Nothing is taken from its stream any more. */
  lost(agent: string, why: string): void {
    const open = this.#options.open.get(agent);
    if (open !== undefined) {
      this.#end(open);
      open.isServed = false;
      open.session.stream.close(why);
    }
  }

  /** The agent's cluster Secrets have changed. */
  changed(agent: string): void {
    const open = this.#options.open.get(agent);
    if (open !== undefined) {
      this.#endInWrongMode(open);
    }
    this.#options.clusterInfos.changed(agent);
    this.#options.clusterChanged(agent);
  }

  /** The agent's last cluster Secret is gone: the engine forgets it, and its stream ends. */
  unmapped(agent: string): void {
    const { open, introductions, sync, metrics, records } = this.#options;
    sync.forgetAgent(agent);
    metrics.forgetAgent(agent);
    records.forget(agent);
    introductions.forget(agent);
    open.get(agent)?.session.stream.close('the agent is no longer mapped to a cluster');
  }

  /** Takes over a new stream. */
  subscribe(session: Session): SessionHandlers {
    const observer = this.#observerOf(session);
    const adapter = this.#adapt(session, observer);
    const open: OpenSession = { session, adapter, since: new Date(), isServed: true };
    this.#start(open);
    return {
      event: (event) => {
        if (open.isServed) {
          adapter.event(event);
        }
      },
      unreadable: () => this.#options.metrics.refusedEvent(session.agent, 'unknown'),
      closed: () => {
        observer.close();
        this.#end(open);
      },
    };
  }

  #observerOf({ agent, mode }: Session): ConnectionObserver {
    const { metrics, tracer } = this.#options;
    return new ConnectionObserver({
      counter: metrics,
      times: {
        arrived: (type, seconds) => metrics.arrived(type, seconds),
        done: (type, seconds, outcome) => metrics.processed(agent, type, outcome, seconds),
      },
      tracer,
      attributes: { 'argocd.agent.name': agent, 'argocd.agent.mode': mode },
    });
  }

  #adapt({ agent, mode, stream }: Session, observer: ConnectionObserver): StreamAdapter {
    const { sync, metrics, live, clusterInfos, logger, detail, receiveWindow, adapt = adaptStream } = this.#options;
    const eventLogger = this.#options.eventLogger.child({ agent });
    const others = new OtherEvents({ agent, live, clusterInfos, logger, eventLogger });
    const logDetail = messageLog(detail, logger, { agent });
    const unusable = (event: WireEvent) => {
      observer.failed(event);
      metrics.refusedEvent(agent, resourceTypeOf(event));
    };
    return adapt({
      stream,
      source: principalSource,
      logger: eventLogger,
      listener: {
        receive: (message) => {
          logDetail('received', message);
          sync.receive(agent, message);
        },
        unreadable: (message) => sync.unreadable(agent, message),
        acknowledged: (ids) => sync.acknowledged(agent, ids),
        writable: () => sync.writable(agent),
      },
      observer,
      messageSent: (message) => {
        logDetail('sent', message);
        this.#logSent(agent, message);
      },
      other: (event) => {
        if (!others.take(event)) {
          unusable(event);
        }
      },
      unreadable: unusable,
      refused: (reason) => this.#options.refused?.(agent, reason),
      unsendable: (event) =>
        metrics.unsendable(agent, {
          eventType: event.type,
          resourceType: resourceTypeOf(event),
          reason: 'too_large',
        }),
      receiveWindow,
      accepts: ({ target }) => !hubObjects[mode].has(target),
      sending: this.#sending,
    });
  }

  #start(open: OpenSession): void {
    const { introductions, records } = this.#options;
    const { agent, mode, stream } = open.session;
    const older = this.#options.open.get(agent);
    this.#options.open.add(open);
    if (older?.isServed === false) {
      older.session.stream.close('this agent has a newer connection');
    }
    open.isServed = records.connected(agent, { mode, version: introductions.of(agent)?.version ?? '' });
    if (open.isServed) {
      this.#serve(open);
    } else {
      stream.pause('unserved');
    }
  }

  #serve(open: OpenSession): void {
    const { isMapped, metrics, clusterInfos, logger } = this.#options;
    const { agent, stream } = open.session;
    if (isMapped(agent)) {
      metrics.connected(agent);
      clusterInfos.connected(agent);
      this.#attach(open);
    } else {
      stream.pause('unserved');
      logger.warn(
        { agent },
        'the agent has no cluster Secret (label argocd-agent.argoproj-labs.io/agent-name) and gets nothing until it has one',
      );
    }
  }

  #end(open: OpenSession): void {
    const { sync, live, isMapped, records, clusterInfos } = this.#options;
    const { agent } = open.session;
    sync.disconnected(agent, open.adapter.connection);
    if (!this.#options.open.remove(open)) {
      return;
    }
    live.disconnected(agent);
    records.disconnected(agent);
    if (isMapped(agent) && open.isServed) {
      clusterInfos.disconnected(agent);
    }
  }

  #attach({ session: { agent, mode }, adapter }: OpenSession): void {
    this.#options.sync.connected(agent, mode, adapter.connection);
    this.#options.live.connected(agent);
  }

  /** Ends a session whose mode an operator no longer allows: the agent has to reconnect in the other one. */
  #endInWrongMode({ session: { agent, mode, stream } }: OpenSession): boolean {
    const pinned = this.#options.pinnedMode(agent);
    if (pinned === undefined || pinned === mode) {
      return false;
    }
    this.#options.logger.warn({ agent, mode, pinned }, "the agent's mode is no longer allowed, its stream ends");
    stream.close(`this agent's mode has to be ${pinned}`);
    return true;
  }

  /** Logs that an object was sent. */
  #logSent(agent: string, message: Message): void {
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
}

/** The kinds that only the hub sends, by the agent's mode. */
const hubObjects: Readonly<Record<AgentMode, ReadonlySet<string>>> = {
  managed: new Set([targets.appProject, targets.repository, targets.gpgKey]),
  autonomous: new Set([targets.repository, targets.gpgKey]),
};

const fieldOf = {
  application: 'application',
  appproject: 'appProject',
  repository: 'repository',
  gpgkey: 'gpgKey',
} as const;
