import type { Registry } from 'prom-client';
import { instruments } from '../../lib/ops/index.ts';

/** Why a request to a peer failed. */
export type LinkFailure =
  /** No connection. */
  | 'unreachable'
  /** The peer does not hold the agent any more. */
  | 'not_held'
  /** The connection ended before the answer. */
  | 'lost'
  | 'timeout'
  /** Too many requests are open. */
  | 'busy';

/** The traffic between replicas. */
export interface LinkMetrics {
  /** A request was sent to a peer. */
  sent(): void;
  failed(reason: LinkFailure): void;
  /** A request of a peer has come. */
  received(outcome: 'served' | 'not-held'): void;
  /** Somebody who is no replica came to the port of replicas. */
  refused(): void;
}

/** Registers the metrics. `open` is read at every scrape: the requests that are open at peers. */
export function linkMetrics(registry: Registry, open: () => number): LinkMetrics {
  const { counter, gauge } = instruments(registry);
  const sent = counter('argocd_principal_replica_requests_sent_total', 'Requests forwarded to the replica of an agent');
  const failed = counter(
    'argocd_principal_replica_requests_failed_total',
    'Requests forwarded to another replica that failed, by reason',
    ['reason'],
  );
  const received = counter(
    'argocd_principal_replica_requests_received_total',
    'Requests that came from other replicas, by outcome',
    ['outcome'],
  );
  const refused = counter(
    'argocd_principal_replica_strangers_total',
    'Connections to the port of replicas that were refused because they came from no live replica',
  );
  gauge('argocd_principal_replica_requests_open', 'Requests that are open at other replicas', open);
  return {
    sent: () => sent.inc(),
    failed: (reason) => failed.inc({ reason }),
    received: (outcome) => received.inc({ outcome }),
    refused: () => refused.inc(),
  };
}
