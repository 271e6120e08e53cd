import type { SharedCluster } from '../testbed/index.ts';
import { ocmPrograms } from './executables.ts';
import type { Ocm, OcmOptions } from './ocm.ts';
import { startPrograms } from './programs.ts';
import { startStandIns } from './stand-ins.ts';

export type { Membership, Ocm, OcmOptions } from './ocm.ts';
export { createSigningRequest } from './signing-request.ts';
export * from './types.ts';

/** Starts OCM on a hub that has its CRDs: the stand-ins, or with `OCM_BIN` its own programs. */
export async function startOcm(hub: SharedCluster, options: OcmOptions = {}): Promise<Ocm> {
  return ocmPrograms() === undefined ? await startStandIns(hub, options) : await startPrograms(hub, options);
}
