import { randomUUID } from 'node:crypto';
import { resourceListChecksum } from '../../lib/argocd/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import {
  acknowledgement,
  agentSource,
  type EventStream,
  eventTypes,
  heartbeatEvent,
  isAcknowledgement,
  messageEvent,
  objectEvent,
  runWireClient,
  targets,
  type WireError,
  type WireEvent,
} from '../../lib/wire/index.ts';
import { type Holding, Holdings, localObject, requestUpdateOf } from './holdings.ts';

/** What a simulated agent tells of itself. */
export interface AgentListener {
  connected(agent: SimulatedAgent): void;
  lost(agent: SimulatedAgent, error: WireError): void;
  /**
   * It has all that it is to have, and nothing that it said waits for an answer. Told once per connection on which either
   * side asked for a resync.
   */
  inSync(agent: SimulatedAgent): void;
  /** An event came that makes or changes an object. */
  changed(event: WireEvent): void;
  /** A status report was acknowledged, this long after it was first sent. */
  reported(milliseconds: number): void;
}

/** How a simulated agent is made. */
export interface SimulatedAgentOptions {
  readonly name: string;
  /** `host:port`. */
  readonly server: string;
  readonly ca: string;
  readonly certificate: KeyCertificate;
  readonly version: string;
  /** How many Applications it is to have before it counts as in sync. */
  readonly applications: number;
  readonly listener: AgentListener;
}

/** An event of ours without acknowledgement. */
interface Unanswered {
  readonly event: WireEvent;
  readonly firstSentAt: number;
  dueAt: number;
  readonly holding: Holding | undefined;
}

const resendMs = { least: 5_000, spread: 5_000 };
const origin = { source: agentSource };

/**
 * A managed agent as its principal sees it, with a cluster in memory: logs in with its certificate, tells what it has,
 * takes Applications, projects and the rest, acknowledges, and reports status with at most one report per Application
 * under way. It speaks argocd-agent's protocol and knows nothing of the principal behind it.
 */
export class SimulatedAgent {
  readonly name: string;
  readonly #options: SimulatedAgentOptions;
  readonly #holdings = new Holdings();
  /** Event id → what waits for its acknowledgement. */
  readonly #unanswered = new Map<string, Unanswered>();
  /** Applications whose status changed while a report of it was under way. */
  readonly #outdated = new Set<Holding>();
  readonly #reporting = new Set<Holding>();
  #stop: AbortController | undefined;
  #ended: Promise<void> = Promise.resolve();
  #stream: EventStream | undefined;
  #hasIntroducedItself = false;
  /** Either side asked for a resync on this connection. */
  #isCompared = false;
  #isInSync = false;
  /** Status changes that were never sent because a newer one came first. */
  superseded = 0;
  /** Reports that were sent, repetitions not counted. */
  reports = 0;

  constructor(options: SimulatedAgentOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#stream !== undefined;
  }

  get isInSync(): boolean {
    return this.#isInSync;
  }

  /** How many Applications it has. */
  get applications(): number {
    return this.#holdings.applications;
  }

  /** Status changes that the principal has not acknowledged. */
  get unreported(): number {
    return this.#reporting.size + this.#outdated.size;
  }

  /** Connects, and stays so as far as the principal lets it. */
  start(): void {
    if (this.#stop !== undefined) return;
    const stop = new AbortController();
    this.#stop = stop;
    const { server, ca, certificate, version, listener } = this.#options;
    this.#ended = runWireClient({
      server,
      tls: () => ({ ca, cert: certificate.certificate, key: certificate.key }),
      credentials: () => ({ method: 'mtls', credentials: {} }),
      mode: 'managed',
      version,
      agentNamespace: 'argocd',
      signal: stop.signal,
      logger: silent,
      onConnected: (stream) => {
        this.#connected(stream);
        return {
          event: (event) => this.#take(event),
          closed: () => {
            this.#stream = undefined;
            this.#isInSync = false;
          },
        };
      },
      onDisconnected: (error) => listener.lost(this, error),
    });
  }

  /** Goes away; what it has stays with it. */
  async stop(): Promise<void> {
    this.#stop?.abort();
    this.#stop = undefined;
    await this.#ended;
  }

  /** Argo CD on the cluster finds that the health of an Application has changed. */
  changeHealth(index: number, message: string): void {
    const applications = Array.from(this.#holdings.values()).filter(({ target }) => target === targets.application);
    const holding = applications[index % applications.length];
    if (holding === undefined) return;
    holding.health = { status: 'Progressing', message };
    holding.version++;
    if (!this.#reporting.has(holding)) this.#report(holding);
    else if (this.#outdated.has(holding)) this.superseded++;
    else this.#outdated.add(holding);
  }

  /** Tells how much Argo CD has in its cache, as managed agents do every 10 s. */
  sendClusterCacheInfo(): void {
    const payload = { applicationsCount: this.#holdings.applications, apisCount: 60, resourcesCount: 500 };
    this.#say(
      messageEvent(targets.clusterCacheInfoUpdate, eventTypes.clusterCacheInfoUpdate, payload, origin),
      undefined,
    );
  }

  /** Gives a sign of life. */
  sendHeartbeat(): void {
    this.#stream?.send(heartbeatEvent(origin));
  }

  /** Sends again what was not acknowledged in time. */
  resend(now: number): void {
    if (this.#stream === undefined) return;
    for (const one of this.#unanswered.values()) {
      if (one.dueAt > now) continue;
      one.dueAt = now + 4 * resendMs.least;
      this.#stream.send(one.event);
    }
  }

  #connected(stream: EventStream): void {
    this.#stream = stream;
    this.#isInSync = false;
    this.#isCompared = !this.#hasIntroducedItself;
    for (const { event } of this.#unanswered.values()) stream.send(event);
    if (!this.#hasIntroducedItself) {
      this.#hasIntroducedItself = true;
      this.#announce();
      const list = Array.from(this.#holdings.values(), ({ kind, name, sourceUid: uid }) => ({ kind, name, uid }));
      // `complete`: all of it was told before. This project's agents say so; others leave the word out of what they read.
      const checksum = resourceListChecksum(list);
      this.#ask(eventTypes.requestSyncedResourceList, { checksum, complete: true });
    }
    this.#options.listener.connected(this);
  }

  #announce(): void {
    for (const holding of this.#holdings.values()) this.#ask(eventTypes.requestUpdate, requestUpdateOf(holding));
  }

  #ask(type: string, payload: object): void {
    this.#say(messageEvent(targets.resourceResync, type, payload, origin), undefined);
  }

  #say(event: WireEvent, holding: Holding | undefined): void {
    const now = performance.now();
    const dueAt = now + resendMs.least + Math.random() * resendMs.spread;
    this.#unanswered.set(event.eventId, { event, firstSentAt: now, dueAt, holding });
    this.#stream?.send(event);
  }

  #report(holding: Holding): void {
    const object = localObject(holding);
    this.#reporting.add(holding);
    this.#outdated.delete(holding);
    this.reports++;
    const { uid, version } = holding;
    // The version alone would not do: a copy that is made again starts with the first one.
    const ids = {
      resourceId: `${holding.name}_${uid}`,
      eventId: `${holding.name}_${uid}_${version}_${randomUUID().slice(0, 8)}`,
    };
    this.#say(objectEvent(targets.application, eventTypes.statusUpdate, object, origin, ids), holding);
  }

  #take(event: WireEvent): void {
    if (isAcknowledgement(event)) {
      this.#answered(event);
    } else {
      this.#follow(event);
      this.#stream?.send(acknowledgement(event, agentSource));
    }
    this.#lookAround();
  }

  #answered({ eventId }: WireEvent): void {
    const one = this.#unanswered.get(eventId);
    if (one === undefined) return;
    this.#unanswered.delete(eventId);
    const { holding } = one;
    if (holding === undefined) return;
    this.#options.listener.reported(performance.now() - one.firstSentAt);
    this.#reporting.delete(holding);
    if (this.#outdated.has(holding)) this.#report(holding);
  }

  #follow(event: WireEvent): void {
    if (event.target === targets.resourceResync) {
      if (event.type === eventTypes.requestResourceResync) {
        this.#isCompared = true;
        this.#announce();
      } else if (event.type === eventTypes.responseSyncedResource) {
        this.#ask(eventTypes.requestUpdate, this.#holdings.answerTo(event));
      }
      return;
    }
    switch (event.type) {
      case eventTypes.create:
      case eventTypes.specUpdate: {
        const isNew = this.#holdings.find(event) === undefined;
        const holding = this.#holdings.keep(event);
        this.#options.listener.changed(event);
        // Argo CD writes a status into what is new.
        if (isNew && event.target === targets.application) this.#report(holding);
        return;
      }
      case eventTypes.delete:
        this.#holdings.drop(event);
    }
  }

  #lookAround(): void {
    if (this.#isInSync || !this.#isCompared || this.#stream === undefined || this.#unanswered.size > 0) return;
    if (this.#holdings.applications < this.#options.applications) return;
    this.#isInSync = true;
    this.#options.listener.inSync(this);
  }
}

const say = () => undefined;
const silent = { debug: say, info: say, warn: say, error: say };
