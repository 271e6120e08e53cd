import { applicationSchema } from '../../lib/argocd/index.ts';
import { until } from '../../lib/base/testing.ts';
import type { KubeClient } from '../../lib/kube/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import { agentSource, dataOf, eventTypes, objectEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import { type ArgoObject, pairApplications } from '../pair/index.ts';
import { type PlayedAgent, playAgent, wirePeer } from '../peer/index.ts';

/** A well-behaved agent beside an attacker: what it notices, other agents would notice. */
export class Witness {
  readonly #client: KubeClient;
  readonly #ref: { readonly namespace: string; readonly name: string };
  readonly #agent: PlayedAgent;
  readonly #peer = wirePeer(agentSource);
  #rounds = 0;

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
    const { port, ca, certificate } = options;
    this.#agent = playAgent(port, {
      peer: this.#peer,
      tls: () => ({ ca, cert: certificate.certificate, key: certificate.key }),
      version: 'witness',
    });
  }

  /** How often it was connected. */
  get connections(): number {
    return this.#agent.streams.length;
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
      async () => this.#peer.received.map(objectOf).findLast((object) => object?.spec.source?.path === path),
      { details },
    );
    const status = { health: { status: 'Healthy', message: mark } };
    const reported = { ...heard, status, metadata: { ...heard.metadata, resourceVersion: mark } };
    this.#peer.say(objectEvent(targets.application, eventTypes.statusUpdate, reported, { source: agentSource }));
    await until(
      `the hub shows ${mark}`,
      async () => {
        const hub: ArgoObject | undefined = await this.#client.get(pairApplications, this.#ref);
        return (hub?.status?.health as { message?: string } | undefined)?.message === mark;
      },
      { details },
    );
    this.#peer.received.length = 0;
    return performance.now() - began;
  }

  async stop(): Promise<void> {
    await this.#agent.stop();
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
