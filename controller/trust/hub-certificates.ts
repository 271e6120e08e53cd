import type { Secret } from '../../lib/kube/index.ts';
import {
  type CertificateRequest,
  inspectCertificate,
  issueCertificate,
  type KeyCertificate,
  PkiError,
  reasonToReissue,
  renewalTime,
  textOf,
  tlsOfSecret,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import { principalHosts, principalServices, resourceProxyHosts } from '../endpoint/discovery.ts';
import { failed, type Step, type StepContext, type StepResult, succeeded } from '../fleet/steps.ts';
import { isOurs } from '../hub/applier.ts';
import { hubNames } from '../hub/names.ts';
import { parseGitOpsCluster } from '../spec/spec.ts';
import { isFrom, latestSwitch, type Rotation } from './rotation.ts';
import { currentSecret, nameOf, writeSecret } from './shared-secrets.ts';

/** The certificate that agents see. */
export const principalStep: Step = {
  condition: 'PrincipalCertificateReady',
  purpose: 'generate principal certificate',
  run: (context) => {
    const { gitOpsCluster, namespace, endpoint, spec, caches } = context;
    // All GitOpsClusters of the namespace share the principal, each perhaps under an address of its own.
    const others = caches.gitOpsClusters
      .list(namespace)
      .filter(({ metadata }) => metadata.uid !== gitOpsCluster.metadata.uid && !metadata.deletionTimestamp)
      .flatMap((other) => parseGitOpsCluster(other).server.value?.address || []);
    const addresses = [endpoint?.address ?? spec.server.value?.address ?? '', ...others];
    const hosts = principalHosts(context.surroundings, namespace, [...new Set(addresses)].sort());
    return serverCertificate(context, hubNames.principalTls, hosts, 'Principal certificate generated successfully');
  },
};

/** The certificate that Argo CD on the hub sees. */
export const resourceProxyStep: Step = {
  condition: 'ResourceProxyCertificateReady',
  purpose: 'generate resource proxy certificate',
  run: (context) => {
    const hosts = resourceProxyHosts(
      context.namespace,
      context.surroundings.service?.metadata.name ?? principalServices[0],
    );
    const message = 'Resource proxy certificate generated successfully';
    return serverCertificate(context, hubNames.resourceProxyTls, hosts, message);
  },
};

function serverCertificate(
  context: StepContext,
  name: string,
  hosts: readonly string[],
  message: string,
): Promise<StepResult> {
  return context.inTurn(context.namespace, async () => {
    const { authority, authorities, rotation, now } = context;
    const what = `Secret ${nameOf(context, name)}`;
    let live = await currentSecret(context, name);
    if (live && !isOurs(live)) {
      if (!tlsOfSecret(live.data, what)) {
        return failed(`${what} must hold tls.crt and tls.key`);
      }
      return succeeded(`${message} (supplied by the user)`);
    }
    if (!authority || !authorities) {
      return failed('the CA certificate is not ready');
    }
    const request: CertificateRequest = { commonName: hosts[0] ?? name, hosts, usages: ['server'] };
    const trust = { authority: authority.certificate, authorities, rotation };
    const { reason, waitUntil } = judgeServer(keyCertificateOf(live), request, trust, now);
    if (reason !== undefined) {
      const made = await issueCertificate({ ...request, authority, now });
      const chain = { certificate: made.certificate + authority.certificate, key: made.key };
      context.logger.info({ namespace: context.namespace, secret: name, reason }, 'issued a server certificate');
      if (live) {
        context.events.normal(context.gitOpsCluster, 'CertificateRenewed', `${what} is renewed: ${reason}`);
      }
      live = await writeSecret(context, name, 'kubernetes.io/tls', tlsSecretData(chain));
    }
    const certificate = textOf(live?.data, 'tls.crt') ?? '';
    const renewal = waitUntil ?? renewalTime(inspectCertificate(certificate, what));
    context.renewAt = Math.min(context.renewAt, renewal.getTime());
    return succeeded(message);
  });
}

/**
 * Why a server certificate must be issued now, if it must. One of a former authority is kept, even when it is due for
 * renewal, until every cluster trusts the new authority; at the latest until `waitUntil`. Only a change of its names
 * does not wait: who is at the new address needs it.
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
  // As it was at the beginning of its life: its age is no reason as long as it has to wait.
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

/** The key pair of a Secret of ours, whatever state it is in. */
export function keyCertificateOf(secret: Secret | undefined): Partial<KeyCertificate> {
  const certificate = textOf(secret?.data, 'tls.crt');
  const key = textOf(secret?.data, 'tls.key');
  return { ...(certificate ? { certificate } : {}), ...(key ? { key } : {}) };
}
