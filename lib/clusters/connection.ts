import { wellKnown } from '../base/index.ts';
import type { Lease } from '../kube/index.ts';

/** Selects the Leases in which the principal records the agents' connections. */
export const connectionSelector = `${wellKnown.partOfLabel}=argocd-agent,app.kubernetes.io/component=connection`;

/** What the Lease of an agent says. */
export interface ConnectionRecord {
  readonly agent: string;
  readonly isConnected: boolean;
  /** Of the last connection; empty when the principal has forgotten it, or never knew. */
  readonly mode: string;
  readonly version: string;
  /** Which process of the principal holds the connection; empty without one. */
  readonly holder: string;
  /** RFC 3339. Since when it is connected; undefined when it is not. */
  readonly since: string | undefined;
  /** RFC 3339. When it was last connected; undefined while it is. */
  readonly lastSeen: string | undefined;
}

/** Reads the record of a connection; undefined for a Lease that is none. */
export function connectionRecord({ metadata, spec }: Lease): ConnectionRecord | undefined {
  const { labels = {}, annotations = {} } = metadata;
  const agent = labels[wellKnown.agentNameLabel];
  if (agent === undefined) {
    return undefined;
  }
  const isConnected = annotations[wellKnown.connectedAnnotation] === 'true';
  return {
    agent,
    isConnected,
    mode: annotations[wellKnown.agentModeAnnotation] ?? '',
    version: annotations[wellKnown.agentVersionAnnotation] ?? '',
    holder: spec?.holderIdentity ?? '',
    since: isConnected ? (spec?.acquireTime ?? spec?.renewTime) : undefined,
    lastSeen: isConnected ? undefined : (spec?.renewTime ?? spec?.acquireTime),
  };
}
