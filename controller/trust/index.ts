export { ensureAuthority, type HubAuthority } from './authority-step.ts';
export { type ClientCertificatePlan, isTakenOver, planClientCertificate } from './client-certificate.ts';
export { ensurePrincipalCertificate, ensureResourceProxyCertificate, keyCertificateOf } from './hub-certificates.ts';
export { authorityInUse, issuedOf } from './issued-certificate.ts';
export { ensureTokenKey } from './jwt-step.ts';
export { observedCertificates } from './observed-certificates.ts';
export { Signer } from './signer.ts';
export type { TrustDeps, TrustScope } from './trust-deps.ts';
