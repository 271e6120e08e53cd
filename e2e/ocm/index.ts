export { ocmVersion } from './executables.ts';
export type { Membership, Ocm, OcmOptions } from './ocm.ts';
export { createSigningRequest } from './signing-request.ts';
export { startOcm } from './start.ts';
export * from './types.ts';
