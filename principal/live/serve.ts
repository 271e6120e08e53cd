import type { X509Certificate } from 'node:crypto';
import type { TokenAuthority } from '../../lib/auth/index.ts';
import type { Logger } from '../../lib/ops/index.ts';
import { grpcStatus, type LiveStreamService, type ServerTls, targets, type WireEvent } from '../../lib/wire/index.ts';
import { Bodies } from './bodies.ts';
import { CallerNames } from './callers.ts';
import { Exchange } from './exchange.ts';
import { type ResourceProxy, type ResourceProxyOptions, serveResourceProxy } from './resource-proxy.ts';

/** Live data of the agents' clusters: what is asked of agents, and what they answer. */
export class LiveAccess {
  readonly #exchange: Exchange;
  readonly #bodies = new Bodies();
  readonly #send: (agent: string, event: WireEvent) => boolean;

  /** @param send puts an event on the stream of an agent that may be asked; false when there is none */
  constructor(send: (agent: string, event: WireEvent) => boolean) {
    this.#send = send;
    this.#exchange = new Exchange(send);
  }

  /** The streams of live data that agents open. */
  readonly streams: LiveStreamService = {
    logs: (stream) => this.#bodies.serve(stream),
    terminal: (stream) => {
      stream.finish(grpcStatus.notFound, 'unknown session');
      return { message: () => undefined, closed: () => undefined };
    },
  };

  /** Takes an event of an agent; false when it is no answer to anything that was asked. */
  answered(agent: string, event: WireEvent): boolean {
    return event.target === targets.resource && this.#exchange.answered(agent, event);
  }

  /** The agent's stream has ended. */
  disconnected(agent: string): void {
    this.#exchange.disconnected(agent);
  }

  /** Serves the API of the agents' clusters. @throws FatalError when the port cannot be taken */
  serveResources(options: {
    address: { readonly host: string; readonly port: number };
    tls: ServerTls;
    tokens: Pick<TokenAuthority, 'verifyResourceProxy'>;
    isBlocked: (certificate: X509Certificate) => boolean;
    metrics: ResourceProxyOptions['metrics'];
    logger: Logger;
  }): Promise<ResourceProxy> {
    const { address, tls, tokens, isBlocked, metrics, logger } = options;
    return serveResourceProxy({
      ...address,
      tls,
      callers: new CallerNames(tokens, isBlocked),
      exchange: this.#exchange,
      bodies: this.#bodies,
      send: this.#send,
      metrics,
      logger,
    });
  }
}
