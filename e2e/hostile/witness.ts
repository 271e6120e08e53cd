import { applicationSchema } from '../../lib/argocd/index.ts';
import { until } from '../../lib/base/testing.ts';
import type { KubeClient } from '../../lib/kube/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import {
  acknowledgement,
  agentSource,
  dataOf,
  type EventStream,
  eventTypes,
  isAcknowledgement,
  objectEvent,
  runWireClient,
  targets,
  type WireEvent,
} from '../../lib/wire/index.ts';
import { type ArgoObject, pairApplications } from '../pair/index.ts';

/** A well-behaved agent beside an attacker: what it notices, other agents would notice. */
export class Witness {
  readonly #client: KubeClient;
  readonly #ref: { readonly namespace: string; readonly name: string };
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;
  readonly #received: WireEvent[] = [];
  #stream: EventStream | undefined;
  #rounds = 0;
  /** How often it was connected. */
  connections = 0;

  /** @param ref an Application of the hub that is this agent's */
  constructor(options: {
    client: KubeClient;
    port: number;
    ca: string;
    certificate: KeyCertificate;
    ref: { readonly namespace: string; readonly name: string };
  }) {
    this.#client = options.client;
    this.#ref = options.ref;
    const { ca, certificate } = options;
    this.#running = runWireClient({
      server: `127.0.0.1:${options.port}`,
      tls: () => ({ ca, cert: certificate.certificate, key: certificate.key }),
      credentials: () => ({ method: 'mtls', credentials: {} }),
      mode: 'managed',
      version: 'witness',
      agentNamespace: 'argocd',
      signal: this.#abort.signal,
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
      onConnected: (stream) => {
        this.connections++;
        this.#stream = stream;
        return { event: (event) => this.#take(stream, event), closed: ignore };
      },
    });
  }

  /**
   * Changes the Application on the hub and waits until this agent hears of it, then reports a status and waits until the hub
   * shows it. Resolves with the milliseconds that took.
   */
  async exchange(details: () => string): Promise<number> {
    const began = performance.now();
    const mark = `round-${++this.#rounds}`;
    const path = `path-${this.#rounds}`;
    await this.#client.mergePatch(pairApplications, this.#ref, { spec: { source: { path } } });
    const heard = await until(
      `the witness hears of ${path}`,
      async () => this.#received.map(objectOf).findLast((object) => object?.spec.source?.path === path),
      { details },
    );
    const status = { health: { status: 'Healthy', message: mark } };
    const reported = { ...heard, status, metadata: { ...heard.metadata, resourceVersion: mark } };
    this.#stream?.send(objectEvent(targets.application, eventTypes.statusUpdate, reported, { source: agentSource }));
    await until(
      `the hub shows ${mark}`,
      async () => {
        const hub: ArgoObject | undefined = await this.#client.get(pairApplications, this.#ref);
        return (hub?.status?.health as { message?: string } | undefined)?.message === mark;
      },
      { details },
    );
    this.#received.length = 0;
    return performance.now() - began;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#running;
  }

  #take(stream: EventStream, event: WireEvent): void {
    if (isAcknowledgement(event)) {
      return;
    }
    this.#received.push(event);
    stream.send(acknowledgement(event, agentSource));
  }
}

interface Seen {
  readonly metadata: { readonly name: string; readonly uid?: string };
  readonly spec: { readonly source?: { readonly path?: string } };
}

function objectOf(event: WireEvent): Seen | undefined {
  return event.target === targets.application && event.type !== eventTypes.delete
    ? (dataOf(event, applicationSchema) as Seen)
    : undefined;
}

function ignore(): void {
  // What matters is asked for.
}
