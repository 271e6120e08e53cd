import { resourceListChecksum } from '../../lib/argocd/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import { type OutboundEvent, Outbox, type ResourceKey, systemClock } from '../../lib/sync/index.ts';
import {
  acknowledgement,
  agentSource,
  type EventStream,
  eventTypes,
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
  lost(agent: SimulatedAgent, error: WireError): void;
  /**
   * It has all that it is to have, and nothing that it said waits for an answer. Told once per connection on which either
   * side asked for a resync.
   */
  inSync(agent: SimulatedAgent): void;
  /** An event came that makes or changes an object. */
  changed(): void;
}

/** How a simulated agent is made. */
export interface SimulatedAgentOptions {
  readonly name: string;
  /** `host:port` of the principal. */
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
  dueAt: number;
}

const resendMs = { least: 5_000, spread: 5_000 };
const origin = { source: agentSource };

/**
 * A managed agent as its principal sees it, with a cluster in memory: logs in with its certificate, tells what it has,
 * takes Applications, projects and the rest, acknowledges, and reports status as this project's agents do, by the same
 * outbox: one report per Application under way, as many at once as the principal works off, each as the status is then. It
 * speaks argocd-agent's protocol and knows nothing of the principal behind it.
 */
export class SimulatedAgent {
  readonly name: string;
  readonly #options: SimulatedAgentOptions;
  readonly #holdings = new Holdings();
  /** Event id → what waits for its acknowledgement. */
  readonly #unanswered = new Map<string, Unanswered>();
  readonly #reports: Outbox<Holding>;
  #stop: AbortController | undefined;
  #ended: Promise<void> = Promise.resolve();
  #stream: EventStream | undefined;
  #hasIntroducedItself = false;
  /** Either side asked for a resync on this connection. */
  #isCompared = false;
  #isInSync = false;
  /** The stream takes no more for the moment. */
  #isFull = false;

  constructor(options: SimulatedAgentOptions) {
    this.name = options.name;
    this.#options = options;
    const runtime = { clock: systemClock, random: Math.random };
    this.#reports = new Outbox({ source: { read: (key) => this.#status(key) }, sendsDeletes: false, runtime });
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

  /** Connects, and stays so as far as the principal lets it. */
  start(): void {
    if (this.#stop !== undefined) {
      return;
    }
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
            this.#reports.disconnected();
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
    this.#reports.close();
  }

  /** Sends again what was not acknowledged in time. */
  resend(now: number): void {
    if (this.#stream === undefined) {
      return;
    }
    for (const one of this.#unanswered.values()) {
      if (one.dueAt > now) {
        continue;
      }
      one.dueAt = now + 4 * resendMs.least;
      this.#stream.send(one.event);
    }
  }

  #connected(stream: EventStream): void {
    this.#stream = stream;
    this.#isInSync = false;
    this.#isCompared = !this.#hasIntroducedItself;
    for (const { event } of this.#unanswered.values()) {
      stream.send(event);
    }
    stream.onDrain(() => {
      this.#isFull = false;
      this.#reports.writable();
    });
    this.#isFull = false;
    this.#reports.connected({ send: (delivery) => this.#sendReport(stream, delivery) });
    if (!this.#hasIntroducedItself) {
      this.#hasIntroducedItself = true;
      // It has nothing. `complete`: nothing is left to tell. This project's agents say so; others do not read the word.
      const checksum = resourceListChecksum([]);
      this.#ask(eventTypes.requestSyncedResourceList, { checksum, complete: true });
    }
  }

  #announce(): void {
    for (const holding of this.#holdings.values()) {
      this.#ask(eventTypes.requestUpdate, requestUpdateOf(holding));
    }
  }

  #ask(type: string, payload: object): void {
    const event = messageEvent(targets.resourceResync, type, payload, origin);
    const dueAt = performance.now() + resendMs.least + Math.random() * resendMs.spread;
    this.#unanswered.set(event.eventId, { event, dueAt });
    this.#stream?.send(event);
  }

  #status({ namespace, name }: ResourceKey) {
    const holding = this.#holdings.at(targets.application, namespace, name);
    const version = String(holding?.version);
    return holding && { uid: holding.uid, version, digest: version, object: holding };
  }

  #sendReport(stream: EventStream, delivery: OutboundEvent<Holding>): boolean {
    if (this.#isFull) {
      return false;
    }
    if (!('snapshot' in delivery)) {
      return true;
    }
    const { resourceId, eventId, snapshot } = delivery;
    const ids = { resourceId, eventId };
    const event = objectEvent(targets.application, eventTypes.statusUpdate, localObject(snapshot.object), origin, ids);
    this.#isFull = !stream.send(event) && !stream.ended;
    return true;
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

  #answered({ resourceId, eventId }: WireEvent): void {
    if (this.#unanswered.delete(eventId)) {
      return;
    }
    this.#reports.acknowledged(resourceId, eventId);
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
        this.#options.listener.changed();
        // Argo CD writes a status into what is new.
        if (isNew && event.target === targets.application) {
          this.#reports.changed(keyOf(holding));
        }
        return;
      }
      case eventTypes.delete: {
        const gone = this.#holdings.drop(event);
        if (gone === undefined) {
          return;
        }
        this.#reports.changed(keyOf(gone));
      }
    }
  }

  #lookAround(): void {
    if (this.#isInSync || !this.#isCompared || this.#stream === undefined) {
      return;
    }
    if (this.#unanswered.size > 0 || this.#reports.pending > 0) {
      return;
    }
    if (this.#holdings.applications < this.#options.applications) {
      return;
    }
    this.#isInSync = true;
    this.#options.listener.inSync(this);
  }
}

function keyOf({ namespace, name }: Holding): ResourceKey {
  return { kind: 'Application', namespace, name };
}

const say = () => undefined;
const silent = { debug: say, info: say, warn: say, error: say };
