/** How a cluster is, from the worst to the best; `waiting` has never been there. */
export const clusterStates = ['refused', 'lost', 'attention', 'waiting', 'ready'] as const;

/** One of {@link clusterStates}. */
export type ShownState = (typeof clusterStates)[number];

/** Argo CD's health statuses, the worst first. */
export const healthNames = ['Degraded', 'Missing', 'Unknown', 'Progressing', 'Suspended', 'Healthy'] as const;
/** Argo CD's sync statuses. */
export const syncNames = ['OutOfSync', 'Unknown', 'Synced'] as const;

/** Number of Applications by status. */
export interface ApplicationCounts {
  readonly total: number;
  readonly health: Readonly<Record<string, number>>;
  readonly sync: Readonly<Record<string, number>>;
}

/** Groups of the time that a certificate has left; one that is `overdue` should have been replaced before. */
export const certificateTerms = ['expired', 'overdue', 'week', 'month', 'later', 'unknown'] as const;
/** One of {@link certificateTerms}. */
export type CertificateTerm = (typeof certificateTerms)[number];

/** What the principal knows about a cluster, apart from what follows from it. */
export interface ClusterSigns {
  readonly agent: string;
  /** What Argo CD calls the cluster; the agent's name without one. */
  readonly title: string;
  readonly mode: string;
  readonly version: string;
  /** Since when it is connected; undefined when it is not. */
  readonly connectedSince: Date | undefined;
  /** When it was last connected; undefined when it is, or never was. */
  readonly lastSeen: Date | undefined;
  /** Why its last login was refused, if it has not been connected since. */
  readonly refused: { readonly message: string; readonly at: Date } | undefined;
  /** Resources whose current state it has not acknowledged. */
  readonly pending: number;
  /** Since when that number has not been 0. */
  readonly pendingSince: Date | undefined;
  /** From when to when the certificate is valid that it last connected with; undefined when that is not known. */
  readonly certificate: { readonly from: Date; readonly ends: Date } | undefined;
  readonly applications: ApplicationCounts;
}

/** What holds for a cluster, as Kubernetes has conditions. */
export interface FleetCondition {
  readonly type: string;
  readonly ok: boolean | undefined;
  /** Whether the cluster is ready all the same when it does not hold. */
  readonly isMinor?: boolean;
  readonly reason: string;
  readonly message: string;
}

/** A cluster as the page shows it. */
export interface ClusterFacts extends ClusterSigns {
  readonly state: ShownState;
  /** One short sentence: why it is not ready; empty when it is. */
  readonly why: string;
  readonly term: CertificateTerm;
  readonly conditions: readonly FleetCondition[];
}

const day = 24 * 3_600_000;
/**
 * What is left of a certificate's life, as a share, when it should have been replaced: an agent changes to the next one when a
 * tenth is left (`lib/wire/client/renewal-watch.ts`).
 */
const overdueShare = 0.05;
/** A change is on its way for less than this, usually. */
const slowAfterMs = 30_000;

/** What follows from what is known about a cluster at a time. */
export function clusterFacts(signs: ClusterSigns, now: Date): ClusterFacts {
  const term = termOf(signs.certificate, now);
  const conditions = [
    connection(signs),
    delivery(signs, now),
    validity(signs, term),
    health(signs.applications),
    synchronisation(signs.applications),
  ];
  const isConnected = signs.connectedSince !== undefined;
  const trouble = conditions.find(({ ok, isMinor }) => ok === false && isMinor !== true);
  const state: ShownState = isConnected
    ? trouble === undefined
      ? 'ready'
      : 'attention'
    : signs.refused !== undefined
      ? 'refused'
      : signs.lastSeen === undefined
        ? 'waiting'
        : 'lost';
  return { ...signs, term, conditions, state, why: state === 'ready' ? '' : (trouble?.message ?? '') };
}

/** How many Applications are not as they should be: neither healthy nor suspended, or out of sync. */
export function unhealthyOf({ total, health }: ApplicationCounts): number {
  return total - (health.Healthy ?? 0) - (health.Suspended ?? 0) - (health.Progressing ?? 0);
}

function connection({ connectedSince, lastSeen, refused }: ClusterSigns): FleetCondition {
  const type = 'Connected';
  if (connectedSince !== undefined) {
    return { type, ok: true, reason: 'StreamOpen', message: 'The agent is connected.' };
  }
  if (refused !== undefined) {
    return {
      type,
      ok: false,
      reason: 'LoginRefused',
      message: `The agent is refused: ${refused.message.replace(/\.?$/, '.')}`,
    };
  }
  return lastSeen === undefined
    ? { type, ok: false, reason: 'NeverConnected', message: 'The agent has not connected yet.' }
    : { type, ok: false, reason: 'StreamClosed', message: 'The agent is not connected; it was before.' };
}

function delivery({ connectedSince, pending, pendingSince }: ClusterSigns, now: Date): FleetCondition {
  const type = 'InStep';
  if (connectedSince === undefined) {
    return { type, ok: undefined, reason: 'NotConnected', message: 'Not known while the agent is not connected.' };
  }
  if (pending === 0) {
    return { type, ok: true, reason: 'AllAcknowledged', message: 'The agent has acknowledged everything.' };
  }
  const isSlow = pendingSince !== undefined && now.getTime() - pendingSince.getTime() >= slowAfterMs;
  const message = `${pending} ${pending === 1 ? 'change is' : 'changes are'} not acknowledged yet.`;
  return { type, ok: !isSlow, reason: isSlow ? 'Behind' : 'OnTheWay', message };
}

function validity({ certificate }: ClusterSigns, term: CertificateTerm): FleetCondition {
  const type = 'CertificateValid';
  if (certificate === undefined) {
    return {
      type,
      ok: undefined,
      reason: 'NotSeen',
      message: 'No certificate of this agent has been seen since the principal started.',
    };
  }
  const ends = `${certificate.ends.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  if (term === 'expired') {
    return { type, ok: false, reason: 'Expired', message: `Its certificate expired at ${ends}.` };
  }
  return term === 'overdue'
    ? { type, ok: false, reason: 'EndsSoon', message: `Its certificate ends at ${ends} and has not been renewed.` }
    : { type, ok: true, reason: 'Valid', message: `Its certificate is valid until ${ends}.` };
}

function health({ total, health }: ApplicationCounts): FleetCondition {
  const type = 'ApplicationsHealthy';
  const bad = (health.Degraded ?? 0) + (health.Missing ?? 0);
  return bad === 0
    ? {
        type,
        ok: true,
        reason: 'NoneDegraded',
        message: total === 0 ? 'It has no Applications.' : 'No Application is degraded.',
      }
    : {
        type,
        ok: false,
        reason: 'Degraded',
        message: `${bad} of ${total} Applications ${bad === 1 ? 'is' : 'are'} degraded or missing.`,
      };
}

/** Minor: an Application may be out of sync because somebody has to look at the change first. */
function synchronisation({ total, sync }: ApplicationCounts): FleetCondition {
  const type = 'ApplicationsSynced';
  const out = sync.OutOfSync ?? 0;
  return out === 0
    ? {
        type,
        ok: true,
        reason: 'NoneOutOfSync',
        message: total === 0 ? 'It has no Applications.' : 'No Application is out of sync.',
      }
    : {
        type,
        ok: false,
        isMinor: true,
        reason: 'OutOfSync',
        message: `${out} of ${total} Applications ${out === 1 ? 'is' : 'are'} out of sync.`,
      };
}

function termOf(certificate: ClusterSigns['certificate'], now: Date): CertificateTerm {
  if (certificate === undefined) {
    return 'unknown';
  }
  const left = certificate.ends.getTime() - now.getTime();
  if (left <= 0) {
    return 'expired';
  }
  const life = certificate.ends.getTime() - certificate.from.getTime();
  return left < life * overdueShare ? 'overdue' : left < 7 * day ? 'week' : left < 30 * day ? 'month' : 'later';
}
