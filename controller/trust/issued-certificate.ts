import { z } from 'zod';
import { fingerprintsOf } from '../../lib/pki/index.ts';
import { keys, type ManagedClusterAddOn } from '../hub/index.ts';

/** How long after it was signed a certificate may take to be in use: OCM's agents look at least this often. */
const pickUpMs = 5 * 60_000;

const issuedSchema = z.object({
  /** Fingerprint of its authority. */
  authority: z.string(),
  at: z.iso.datetime(),
  until: z.iso.datetime(),
});

/** What is remembered of a certificate that was issued at a cluster's request; the certificate itself goes to the cluster. */
export type Issued = z.infer<typeof issuedSchema>;

/** The annotation that remembers it. */
export function issuedAnnotation(issued: Issued): Record<string, string> {
  return { [keys.issued]: JSON.stringify(issued) };
}

/**
 * Which authority the certificate is of that a cluster asked for itself.
 * @returns its fingerprint, or undefined and when to look again while one of another may be in use
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

function issuedOf(addOn: ManagedClusterAddOn | undefined): Issued | undefined {
  try {
    return issuedSchema.safeParse(JSON.parse(addOn?.metadata.annotations?.[keys.issued] ?? '')).data;
  } catch {
    return undefined; // as if none had been issued: it is written anew with the next one
  }
}
