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

/** The trusted authorities, the issuing one, and since when it issues. */
export interface TrustRecord {
  /** PEM. */
  readonly authorities: string;
  /** Fingerprint of the issuing authority. */
  readonly authority: string;
  readonly since: Date;
}

/** A change of the authority that is in progress. */
export interface Rotation {
  /** Clusters that do not trust the new authority yet. Servers do not use its certificates until they do. */
  readonly untrusting: readonly string[];
  /** Clusters that may still use certificates of a former authority. */
  readonly unswitched: readonly string[];
  /** A server shows a certificate of a former authority. A user may have supplied it, for any time. */
  readonly isServerLeft: boolean;
  /** When the former authorities are removed in any case: all their certificates have expired. */
  readonly until: Date;
}

/** The input of {@link planTrust}. */
export interface TrustInput {
  /** The certificate of the issuing authority, PEM. */
  readonly authority: string;
  /** All certificates in the authority's Secret, PEM. They are trusted. */
  readonly inSecret: string;
  /** The last decision. */
  readonly known: TrustRecord | undefined;
  /** Server certificates in use, PEM. */
  readonly servers: readonly string[];
  /** Only called when there is a former authority. A cluster not reconciled yet is undefined. */
  readonly clusters: () => ReadonlyMap<string, ClusterCertificates | undefined>;
  readonly now: Date;
}

/**
 * Decides which authorities to trust. A new authority is trusted at once, beside the former ones. Former ones are removed
 * when none of their certificates is in use any more.
 */
export function planTrust(input: TrustInput): { record: TrustRecord; rotation: Rotation | undefined } {
  const { known, inSecret, now } = input;
  const authority = fingerprintsOf(input.authority)[0] ?? '';
  const since = known?.authority === authority ? known.since : now;
  const settled = { record: { authorities: joinCertificates(inSecret), authority, since }, rotation: undefined };
  const former = formerOf(known, inSecret, now);
  const left = input.servers.filter((server) => former !== '' && isFrom(server, former) && !isFrom(server, inSecret));
  const ends = left.map((server) => inspectCertificate(server).notAfter.getTime());
  const agentsUntil = since.getTime() + lifetimes.leafMs;
  const until = new Date(Math.max(agentsUntil, ...ends));
  if (former === '' || until <= now) {
    return settled;
  }
  const currentMarks = fingerprintsOf(inSecret);
  const untrusting: string[] = [];
  const unswitched: string[] = [];
  for (const [cluster, state] of agentsUntil > now.getTime() ? input.clusters() : []) {
    if (!currentMarks.every((mark) => state?.trusts.includes(mark))) {
      untrusting.push(cluster);
    }
    if (state?.authority !== authority) {
      unswitched.push(cluster);
    }
  }
  const isServerLeft = ends.some((end) => end > now.getTime());
  if (unswitched.length === 0 && !isServerLeft) {
    return settled;
  }
  const authorities = joinCertificates(inSecret, former);
  return { record: { authorities, authority, since }, rotation: { untrusting, unswitched, isServerLeft, until } };
}

/** Trusted certificates that are no longer in the authority's Secret and have not expired, PEM. */
function formerOf(known: TrustRecord | undefined, inSecret: string, now: Date): string {
  if (known === undefined || known.authorities.trim() === '') {
    return '';
  }
  const marks = new Set(fingerprintsOf(inSecret));
  const former = splitCertificates(known.authorities).filter((certificate) => {
    const { fingerprint, notAfter } = inspectCertificate(certificate);
    return !marks.has(fingerprint) && notAfter > now;
  });
  return joinCertificates(...former);
}

/**
 * Until when a server keeps a certificate of a former authority because clusters do not trust the new one: nine tenths of
 * its lifetime.
 */
export function latestSwitch({ notBefore, notAfter }: { notBefore: Date; notAfter: Date }): Date {
  return new Date(notBefore.getTime() + (notAfter.getTime() - notBefore.getTime()) * 0.9);
}

/** Whether one of the authorities issued a certificate. False for a certificate that cannot be parsed. */
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
