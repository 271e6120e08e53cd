import { rfc3339, type Secret } from '../../lib/kube/index.ts';
import {
  type CertificateRequest,
  fleetPageHosts,
  inspectCertificate,
  issueCertificate,
  type KeyCertificate,
  PkiError,
  reasonToReissue,
  renewalTime,
  resourceProxyHosts,
  secretText,
  tlsOfSecret,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import { principalHosts, principalServices, type ServiceExposure } from '../endpoint/index.ts';
import { failed, hubNames, isOurs, type StepReport, succeeded } from '../hub/index.ts';
import { parseGitOpsCluster } from '../spec/index.ts';
import type { HubAuthority } from './authority-step.ts';
import { isFrom, latestSwitch, type Rotation } from './rotation.ts';
import { currentSecret, writeSecret } from './shared-secrets.ts';
import type { TrustDeps, TrustScope } from './trust-deps.ts';

/**
 * Issues or renews the principal's server certificate.
 * @param addresses where agents of the principal's GitOpsClusters connect; empty while unknown
 */
export function ensurePrincipalCertificate(
  deps: TrustDeps,
  scope: TrustScope,
  issuer: HubAuthority | undefined,
  { exposure, addresses }: { readonly exposure: ServiceExposure; readonly addresses: readonly string[] },
): Promise<StepReport> {
  const { gitOpsCluster, namespace } = scope;
  // Each GitOpsCluster of the namespace may have its own address for the principal. Guests have no others than these.
  const others = deps.caches.gitOpsClusters
    .list(namespace)
    .filter(({ metadata }) => metadata.uid !== gitOpsCluster.metadata.uid && !metadata.deletionTimestamp)
    .flatMap((other) => parseGitOpsCluster(other).server.value?.address || []);
  const hosts = [
    ...principalHosts(exposure, namespace, [...new Set([...addresses, ...others])].sort()),
    ...fleetPageHosts(exposure.services, namespace),
  ];
  const message = 'Principal certificate generated successfully';
  return ensureServerCertificate(deps, scope, issuer, { name: hubNames.principalTls, hosts, message });
}

/** Issues or renews the resource proxy's server certificate, for Argo CD on the hub. */
export function ensureResourceProxyCertificate(
  deps: TrustDeps,
  scope: TrustScope,
  issuer: HubAuthority | undefined,
  { service }: ServiceExposure,
): Promise<StepReport> {
  const hosts = resourceProxyHosts(scope.namespace, service?.metadata.name ?? principalServices[0]);
  const message = 'Resource proxy certificate generated successfully';
  return ensureServerCertificate(deps, scope, issuer, { name: hubNames.resourceProxyTls, hosts, message });
}

function ensureServerCertificate(
  deps: TrustDeps,
  scope: TrustScope,
  issuer: HubAuthority | undefined,
  { name, hosts, message }: { readonly name: string; readonly hosts: readonly string[]; readonly message: string },
): Promise<StepReport> {
  return deps.mutex.run(scope.namespace, async () => {
    const { namespace, now, gitOpsCluster } = scope;
    const what = `Secret ${namespace}/${name}`;
    let live = await currentSecret(deps, scope, name);
    if (live && !isOurs(live)) {
      const supplied = tlsOfSecret(live.data, what);
      if (!supplied) {
        return { result: failed(`${what} must hold tls.crt and tls.key`) };
      }
      const { notBefore, notAfter } = inspectCertificate(supplied.certificate, what);
      if (now < notBefore) {
        return { result: failed(`${what}: tls.crt is valid from ${rfc3339(notBefore)}`), renewAt: notBefore.getTime() };
      }
      if (now >= notAfter) {
        return { result: failed(`${what}: tls.crt expired at ${rfc3339(notAfter)}; put a valid one there`) };
      }
      return { result: succeeded(`${message} (supplied by the user)`), renewAt: notAfter.getTime() };
    }
    if (issuer === undefined) {
      return { result: failed('the CA certificate is not ready') };
    }
    const { authority, authorities, rotation } = issuer;
    const request: CertificateRequest = { commonName: hosts[0] ?? name, hosts, usages: ['server'] };
    const trust = { authority: authority.certificate, authorities, rotation };
    const { reason, waitUntil } = judgeServer(keyCertificateOf(live), request, trust, now);
    if (reason !== undefined) {
      // Of a pair of principals, the one that follows shows its own to the other. One without this use is not replaced for it.
      const usages = name === hubNames.principalTls ? (['server', 'client'] as const) : request.usages;
      const made = await issueCertificate({ ...request, usages, authority, now });
      const chain = { certificate: made.certificate + authority.certificate, key: made.key };
      deps.logger.info({ namespace, secret: name, reason }, 'issued a server certificate');
      if (live) {
        deps.events.normal(gitOpsCluster, 'CertificateRenewed', `${what} is renewed: ${reason}`);
      }
      live = await writeSecret(deps, scope, name, { type: 'kubernetes.io/tls', data: tlsSecretData(chain) });
    }
    const certificate = secretText(live?.data, 'tls.crt') ?? '';
    const renewal = waitUntil ?? renewalTime(inspectCertificate(certificate, what));
    return { result: succeeded(message), renewAt: renewal.getTime() };
  });
}

/**
 * Decides whether a server certificate must be issued now, and why. Even a certificate due for renewal is kept while a
 * cluster does not trust the new authority, at the latest until `waitUntil`. A change of its names does not wait, because
 * agents at the new address need it.
 */
export function judgeServer(
  current: Partial<KeyCertificate>,
  request: CertificateRequest,
  trust: { authority: string; authorities: string; rotation: Rotation | undefined },
  now: Date,
): { reason?: string; waitUntil?: Date } {
  const { authority, authorities, rotation } = trust;
  const info = infoOf(current);
  const isFormer = info !== undefined && !isFrom(current.certificate ?? '', authority);
  const isAwaited = isFormer && isFrom(current.certificate ?? '', authorities) && rotation !== undefined;
  const waitUntil = isAwaited && rotation.untrusting.length > 0 ? latestSwitch(info) : undefined;
  const mayWait = waitUntil !== undefined && now < waitUntil;
  // While it has to wait, its age does not count: it is judged as if it were new.
  const reason = reasonToReissue(current, request, authorities, mayWait ? info?.notBefore : now);
  if (reason !== undefined) {
    return { reason };
  }
  if (mayWait) {
    return { waitUntil };
  }
  return isFormer ? { reason: 'there is another authority now' } : {};
}

function infoOf({ certificate }: Partial<KeyCertificate>) {
  try {
    return certificate === undefined ? undefined : inspectCertificate(certificate);
  } catch (error) {
    if (error instanceof PkiError) {
      return undefined;
    }
    throw error;
  }
}

/** The certificate and the key in a Secret; fields that are missing there are missing in the result. */
export function keyCertificateOf(secret: Secret | undefined): Partial<KeyCertificate> {
  const certificate = secretText(secret?.data, 'tls.crt');
  const key = secretText(secret?.data, 'tls.key');
  return { ...(certificate ? { certificate } : {}), ...(key ? { key } : {}) };
}
