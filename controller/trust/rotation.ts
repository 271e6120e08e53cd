import {
  fingerprintsOf,
  inspectCertificate,
  isIssuedBy,
  joinCertificates,
  lifetimes,
  PkiError,
  splitCertificates,
} from '../../lib/pki/index.ts';
import type { ClusterCertificates } from '../ownership/index.ts';

/** Which authorities are trusted, which of them issues, and since when. */
export interface TrustRecord {
  /** PEM. */
  readonly authorities: string;
  /** Fingerprint of the one that issues. */
  readonly authority: string;
  readonly since: Date;
}

/** A change from one authority to another that is under way. */
export interface Rotation {
  /** Clusters that do not trust the new authority yet: servers do not show certificates of it to them. */
  readonly untrusting: readonly string[];
  /** Clusters that may still use certificates of a former authority. */
  readonly unswitched: readonly string[];
  /** When the former authorities are given up in any case: nothing of them can be valid any more. */
  readonly until: Date;
}

/** What is known when it is decided which authorities to trust. */
export interface TrustInput {
  /** The certificate of the authority that issues, PEM. */
  readonly authority: string;
  /** Every certificate of its Secret, PEM. */
  readonly wanted: string;
  /** What was decided last. */
  readonly known: TrustRecord | undefined;
  /** Server certificates in use, PEM. */
  readonly servers: readonly string[];
  /** Asked only when there is a former authority. Undefined for a cluster that has not been looked at yet. */
  readonly clusters: () => ReadonlyMap<string, ClusterCertificates | undefined>;
  readonly now: Date;
}

/**
 * Decides which authorities to trust. A new authority is trusted at once, beside the former ones; those go when no
 * certificate of them is in use any more.
 */
export function planTrust(input: TrustInput): { record: TrustRecord; rotation: Rotation | undefined } {
  const { known, wanted, now } = input;
  const authority = fingerprintsOf(input.authority)[0] ?? '';
  const since = known?.authority === authority ? known.since : now;
  const settled = { record: { authorities: joinCertificates(wanted), authority, since }, rotation: undefined };
  const former = formerOf(known, wanted, now);
  const until = new Date(since.getTime() + lifetimes.leafMs);
  if (former === '' || until <= now) {
    return settled;
  }
  const wantedMarks = fingerprintsOf(wanted);
  const untrusting: string[] = [];
  const unswitched: string[] = [];
  for (const [cluster, state] of input.clusters()) {
    if (!wantedMarks.every((mark) => state?.trusts.includes(mark))) {
      untrusting.push(cluster);
    }
    if (state?.authority !== authority) {
      unswitched.push(cluster);
    }
  }
  const isServerLeft = input.servers.some((server) => isFrom(server, former) && !isFrom(server, wanted));
  if (unswitched.length === 0 && !isServerLeft) {
    return settled;
  }
  const authorities = joinCertificates(wanted, former);
  return { record: { authorities, authority, since }, rotation: { untrusting, unswitched, until } };
}

/** Certificates that were trusted and are no longer wanted, without those that have expired. */
function formerOf(known: TrustRecord | undefined, wanted: string, now: Date): string {
  if (known === undefined || known.authorities.trim() === '') {
    return '';
  }
  const marks = new Set(fingerprintsOf(wanted));
  const former = splitCertificates(known.authorities).filter((certificate) => {
    const { fingerprint, notAfter } = inspectCertificate(certificate);
    return !marks.has(fingerprint) && notAfter > now;
  });
  return joinCertificates(...former);
}

/**
 * Until when a server keeps a certificate of a former authority for the sake of clusters that do not trust the new one:
 * nine tenths of its life.
 */
export function latestSwitch({ notBefore, notAfter }: { notBefore: Date; notAfter: Date }): Date {
  return new Date(notBefore.getTime() + (notAfter.getTime() - notBefore.getTime()) * 0.9);
}

/** Whether one of the authorities signed a certificate; what does not parse is of nobody. */
export function isFrom(certificate: string, authorities: string): boolean {
  try {
    return isIssuedBy(certificate, authorities);
  } catch (error) {
    if (error instanceof PkiError) {
      return false;
    }
    throw error;
  }
}
