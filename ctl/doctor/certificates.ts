import type { Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { inspectCertificate, isIssuedBy, isKeyOf } from '../../lib/pki/index.ts';
import type { Diagnosis } from './finding.ts';

/** A certificate that is looked at. */
export interface Examined {
  /** Start of the findings' names: `principal-certificate`. */
  readonly id: string;
  readonly cluster: string;
  /** In words: `the principal's certificate`. */
  readonly what: string;
  readonly where: string;
  readonly certificate: string;
  /** Empty when it is not to be looked at. */
  readonly key: string;
  /** Authorities, one of which must have signed it; empty when they are not known. */
  readonly authorities: string;
  /** The name that it must be for. */
  readonly commonName?: string;
  readonly mend: string;
}

/** Whoever renews a certificate does so before this: OCM's registration agent lets a day's certificate come to a fifth. */
const soonMs = 7 * 24 * 3_600_000;
const soonPart = 1 / 10;

/** What is wrong with a certificate; the first thing only. */
export function certificateFaults(examined: Examined, now: Date): Diagnosis[] {
  const { id, cluster, what, where, certificate, key, authorities, commonName, mend } = examined;
  const fault = (suffix: string, text: string): Diagnosis[] => [
    { id: `${id}-${suffix}`, cluster, what: `${what} ${text}`, where, mend },
  ];
  try {
    const info = inspectCertificate(certificate, what);
    if (key !== '' && !isKeyOf(certificate, key)) {
      return fault('invalid', 'does not belong to the private key beside it');
    }
    if (info.notAfter < now) {
      return fault('expired', `expired at ${info.notAfter.toISOString()}`);
    }
    if (info.notBefore > now) {
      return fault('expired', `is not valid before ${info.notBefore.toISOString()}: a clock is wrong, or wait`);
    }
    if (authorities !== '' && !isIssuedBy(certificate, authorities)) {
      return fault('wrong-authority', "was not signed by the hub's certificate authority");
    }
    if (commonName !== undefined && info.commonName !== commonName) {
      return fault('wrong-name', `is for ${JSON.stringify(info.commonName)}, not for ${JSON.stringify(commonName)}`);
    }
    const lifetimeMs = info.notAfter.getTime() - info.notBefore.getTime();
    if (info.notAfter.getTime() - now.getTime() < Math.min(soonMs, lifetimeMs * soonPart)) {
      const text = `${what} ends at ${info.notAfter.toISOString()} and was not renewed`;
      return [{ id: 'certificate-ends-soon', cluster, what: text, where, mend }];
    }
    return [];
  } catch (error) {
    return fault('invalid', `cannot be read: ${(error as Error).message}`);
  }
}

/** Looks at the certificate in a TLS Secret; a Secret that is missing is a fault, too. */
export function tlsSecretFaults(
  secret: Secret | undefined,
  examined: Omit<Examined, 'certificate' | 'key'>,
  now: Date,
): Diagnosis[] {
  const { id, cluster, what, where, mend } = examined;
  if (secret === undefined) {
    return [{ id: `${id}-missing`, cluster, what: `${what} does not exist`, where, mend }];
  }
  const fields = decodeSecret(secret);
  return certificateFaults({ ...examined, certificate: fields['tls.crt'] ?? '', key: fields['tls.key'] ?? '' }, now);
}
