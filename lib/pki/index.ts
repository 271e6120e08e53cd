export { PkiError } from './errors.ts';
export { fleetPageHosts, loopbackHosts, resourceProxyHosts, serviceHosts } from './hosts.ts';
export {
  type CertificateInfo,
  type CertificateUsage,
  inspectCertificate,
  isIssuedBy,
  isKeyOf,
  parseCertificates,
  renewalTime,
} from './inspect.ts';
export {
  type CertificateRequest,
  clockSkewMs,
  createAuthority,
  issueCertificate,
  type KeyCertificate,
  lifetimes,
  reasonToReissue,
  selfSignedCertificate,
} from './issue.ts';
export {
  generateJwtKey,
  generatePrivateKey,
  type KeyAlgorithm,
  parsePrivateKey,
  pkcs8Pem,
  privateKeyPem,
} from './keys.ts';
export { certifyClient, readSigningRequest, type SigningRequest, signingRequestFor } from './request.ts';
export { authoritiesOfSecret, type SecretData, secretText, tlsOfSecret, tlsSecretData } from './secrets.ts';
export { fingerprintsOf, joinCertificates, splitCertificates } from './trust.ts';
export { type TrustPath, trustPath } from './trust-path.ts';
