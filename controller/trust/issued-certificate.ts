import { z } from 'zod';
import { fingerprintsOf } from '../../lib/pki/index.ts';
import { keys, type ManagedClusterAddOn } from '../hub/index.ts';

/** How long a cluster may take to use a signed certificate, in milliseconds: OCM's agents check at least this often. */
const pickUpMs = 5 * 60_000;

const issuedSchema = z.object({
  /** Fingerprint of its authority. */
  authority: z.string(),
  at: z.iso.datetime(),
  until: z.iso.datetime(),
});

/** Record of a certificate issued at a cluster's request. The certificate itself is only in the request. */
export type Issued = z.infer<typeof issuedSchema>;

/** The annotation that stores the record. */
export function issuedAnnotation(issued: Issued): Record<string, string> {
  return { [keys.issued]: JSON.stringify(issued) };
}

/**
 * The authority of the certificate that a cluster requested.
 * @returns its fingerprint; or undefined while another authority's certificate may be in use, and when to check again
 */
export function authorityInUse(
  addOn: ManagedClusterAddOn | undefined,
  authority: string,
  now: Date,
): { authority: string | undefined; lookAgainAt?: number } {
  const present = fingerprintsOf(authority)[0];
  const issued = issuedOf(addOn);
  if (issued === undefined || Date.parse(issued.until) <= now.getTime()) {
    return { authority: present };
  }
  if (issued.authority !== present) {
    return { authority: undefined, lookAgainAt: Date.parse(issued.until) };
  }
  const pickedUpAt = Date.parse(issued.at) + pickUpMs;
  return pickedUpAt > now.getTime() ? { authority: undefined, lookAgainAt: pickedUpAt } : { authority: present };
}

/** Whether the cluster has a certificate that it requested: the last one has not expired. */
export function hasIssued(addOn: ManagedClusterAddOn | undefined, now: Date): boolean {
  const issued = issuedOf(addOn);
  return issued !== undefined && Date.parse(issued.until) > now.getTime();
}

/** The record of the certificate that a cluster requested last; undefined when there is none. */
export function issuedOf(addOn: ManagedClusterAddOn | undefined): Issued | undefined {
  try {
    return issuedSchema.safeParse(JSON.parse(addOn?.metadata.annotations?.[keys.issued] ?? '')).data;
  } catch {
    return undefined; // as if no certificate had been issued; the next one writes a new record
  }
}
