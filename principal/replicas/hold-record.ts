import { wellKnown } from '../../lib/base/index.ts';
import { type Lease, rfc3339Micro } from '../../lib/kube/index.ts';
import type { ConnectedAgent } from '../sessions/agent-records.ts';
import { agentLeaseName, connectionAnnotations, connectionLabels } from '../sessions/connection-records.ts';

/** The replica that an agent has connected to while another one holds it: the holder hands it over. */
export const wantedByAnnotation = 'argocd-agent.argoproj-labs.io/wanted-by';

/** The agent whose hold and connection a Lease records; undefined: it is another Lease. */
export function agentOfHold({ metadata: { name, labels } }: Lease): string | undefined {
  const agent = labels?.[wellKnown.agentNameLabel];
  return agent !== undefined && name === agentLeaseName(agent) ? agent : undefined;
}

/** The term of a hold, by a name that no other term of the agent has. */
export function termOf({ metadata: { uid }, spec }: Lease): string {
  return `${uid}/${spec?.leaseTransitions ?? 0}`;
}

/** The replica that asks the holder for the agent; empty: none does. */
export function askerOf(lease: Lease | undefined): string {
  return lease?.metadata.annotations?.[wantedByAnnotation] ?? '';
}

/** The Lease with another asker, or without one. */
export function withAsker(lease: Lease, asker: string | undefined): Lease {
  return withAnnotations(lease, { [wantedByAnnotation]: asker });
}

/** The Lease of an agent that connected to a replica, held by it: a new term, unless the replica holds it already. */
export function takenHold(
  agent: string,
  namespace: string,
  lease: Lease | undefined,
  identity: string,
  connection: ConnectedAgent & { readonly since: Date },
): Lease {
  const isOurs = lease?.spec?.holderIdentity === identity;
  const base: Lease = lease ?? { metadata: { namespace, name: agentLeaseName(agent) } };
  const at = rfc3339Micro(connection.since);
  const record = withAnnotations(base, {
    [connectionAnnotations.connected]: 'true',
    [wellKnown.agentModeAnnotation]: connection.mode,
    [connectionAnnotations.version]: connection.version,
    [wantedByAnnotation]: undefined,
  });
  return {
    ...record,
    metadata: {
      ...record.metadata,
      labels: { ...record.metadata.labels, ...connectionLabels, [wellKnown.agentNameLabel]: agent },
    },
    spec: {
      ...base.spec,
      holderIdentity: identity,
      acquireTime: at,
      renewTime: at,
      leaseTransitions: (base.spec?.leaseTransitions ?? 0) + (isOurs ? 0 : 1),
    },
  };
}

/** The Lease of an agent that nobody holds any more. `at` is when it was last connected, if it was and that is known. */
export function endedHold(lease: Lease, at: Date | undefined, isForgotten: boolean): Lease {
  const wasConnected = lease.metadata.annotations?.[connectionAnnotations.connected] === 'true';
  const record = withAnnotations(lease, {
    [connectionAnnotations.connected]: 'false',
    [wantedByAnnotation]: undefined,
    ...(isForgotten ? { [wellKnown.agentModeAnnotation]: undefined } : {}),
  });
  const renewTime = wasConnected && at !== undefined ? rfc3339Micro(at) : lease.spec?.renewTime;
  return { ...record, spec: { ...lease.spec, holderIdentity: '', ...(renewTime && { renewTime }) } };
}

/** The Lease of an agent that its holder gives to another replica: a new term. */
export function handedOverHold(lease: Lease, to: string): Lease {
  const leaseTransitions = (lease.spec?.leaseTransitions ?? 0) + 1;
  return { ...withAsker(lease, undefined), spec: { ...lease.spec, holderIdentity: to, leaseTransitions } };
}

/** Whether both say the same of the same connection. */
export function isSameHold(a: Lease | undefined, b: Lease): boolean {
  const brief = (lease: Lease | undefined) => {
    const { annotations = {} } = lease?.metadata ?? {};
    return [
      lease?.spec?.holderIdentity,
      new Date(lease?.spec?.acquireTime ?? 0).getTime(),
      annotations[connectionAnnotations.connected],
      annotations[connectionAnnotations.version],
      annotations[wellKnown.agentModeAnnotation],
    ].join('|');
  };
  return brief(a) === brief(b);
}

/**
 * Whether the Lease records a newer connection of the agent than one that began at `since`, when `recorded` was on record. The
 * times are of two clocks: only a record that was not there then can say so, and an agent that comes again is believed.
 */
export function isOfNewerConnection(
  { spec }: Lease,
  { since, recorded }: { readonly since: Date; readonly recorded: string | undefined },
): boolean {
  return spec?.acquireTime !== recorded && new Date(spec?.acquireTime ?? 0) > since;
}

function withAnnotations(lease: Lease, changes: Readonly<Record<string, string | undefined>>): Lease {
  const annotations = { ...lease.metadata.annotations };
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) {
      delete annotations[name];
    } else {
      annotations[name] = value;
    }
  }
  return { ...lease, metadata: { ...lease.metadata, annotations } };
}
