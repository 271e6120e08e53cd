import {
  followPrincipal,
  type Holding,
  Holdings,
  localObject,
  type PlayedAgent,
  playAgent,
  speakOn,
  type WirePeer,
  wirePeer,
} from '../../e2e/peer/index.ts';
import { resourceListChecksum } from '../../lib/argocd/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import { type OutboundEvent, Outbox, type ResourceKey, systemClock } from '../../lib/sync/index.ts';
import {
  agentSource,
  type EventStream,
  eventTypes,
  messageEvent,
  objectEvent,
  targets,
  type WireError,
  type WireEvent,
} from '../../lib/wire/index.ts';

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
  readonly #peer: WirePeer;
  readonly #reports: Outbox<Holding>;
  #connection: PlayedAgent | undefined;
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
    this.#peer = wirePeer(agentSource, {
      remembers: false,
      handle: (event) => void this.#follow(event),
      stray: ({ resourceId, eventId }) => void this.#reports.acknowledged(resourceId, eventId),
    });
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
    const { server, ca, certificate, version, listener } = this.#options;
    this.#connection ??= playAgent(server, {
      tls: () => ({ ca, cert: certificate.certificate, key: certificate.key }),
      version,
      // As agents wait.
      backoff: { initialMs: 200, maxMs: 10_000 },
      onConnected: (stream) => {
        this.#connected(stream);
        return {
          event: (event) => {
            this.#peer.take(event);
            this.#lookAround();
          },
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
    await this.#connection?.stop();
    this.#connection = undefined;
    this.#reports.close();
  }

  /** Sends again what was not acknowledged in time. */
  resend(now: number): void {
    if (this.#stream !== undefined) {
      this.#peer.writer.repeat(now);
    }
  }

  #connected(stream: EventStream): void {
    this.#stream = stream;
    this.#isInSync = false;
    this.#isCompared = !this.#hasIntroducedItself;
    speakOn(this.#peer, stream);
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

  #ask(type: string, payload: object): void {
    this.#peer.say(messageEvent(targets.resourceResync, type, payload, origin));
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

  #follow(event: WireEvent): void {
    followPrincipal(
      {
        holdings: this.#holdings,
        say: (type, payload) => this.#ask(type, payload),
        asked: () => {
          this.#isCompared = true;
        },
        kept: (holding, isNew) => {
          this.#options.listener.changed();
          // Argo CD writes a status into what is new.
          if (isNew && event.target === targets.application) {
            this.#reports.changed(keyOf(holding));
          }
        },
        dropped: (gone) => this.#reports.changed(keyOf(gone)),
      },
      event,
    );
  }

  #lookAround(): void {
    if (this.#isInSync || !this.#isCompared || this.#stream === undefined) {
      return;
    }
    if (!this.#peer.writer.isIdle || this.#reports.pending > 0) {
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
