import { isDeepStrictEqual } from 'node:util';
import { type ConfigMap, configMaps, type Secret, secrets } from '../lib/kube/index.ts';
import {
  authoritiesOfSecret,
  type CertificateRequest,
  createAuthority,
  generateJwtKey,
  inspectCertificate,
  issueCertificate,
  type KeyCertificate,
  parsePrivateKey,
  reasonToReissue,
  renewalTime,
  textOf,
  tlsOfSecret,
  tlsSecretData,
} from '../lib/pki/index.ts';
import { isOurs } from './applier.ts';
import { principalHosts, principalServices, resourceProxyHosts } from './discovery.ts';
import { hubNames, keys, labelValue, managedBy } from './names.ts';
import { nodesFor } from './server-step.ts';
import { parseGitOpsCluster } from './spec.ts';
import { failed, type Step, type StepContext, type StepResult, succeeded } from './steps.ts';

/** Signs the principal's tokens. An existing Secret is used as it is. */
export const jwtStep: Step = {
  condition: 'JWTSecretReady',
  purpose: 'create JWT secret',
  run: async (context) => {
    const live = await currentSecret(context, hubNames.jwt);
    if (live === undefined || (isOurs(live) && !live.data?.['jwt.key'])) {
      const data = { 'jwt.key': Buffer.from(await generateJwtKey()).toString('base64') };
      await writeSecret(context, hubNames.jwt, 'Opaque', data);
      return succeeded('JWT secret created successfully');
    }
    const key = textOf(live.data, 'jwt.key');
    if (!key) return failed(`Secret ${nameOf(context, hubNames.jwt)} has no key jwt.key`);
    parsePrivateKey(key, `Secret ${nameOf(context, hubNames.jwt)}, key jwt.key`);
    return succeeded('JWT secret created successfully');
  },
};

/** The authority that all certificates come from, and the bundle of what to trust. */
export const authorityStep: Step = {
  condition: 'CACertificateReady',
  purpose: 'create CA certificate',
  run: async (context) => {
    const what = `Secret ${nameOf(context, hubNames.authority)}`;
    let live = await currentSecret(context, hubNames.authority);
    if (live === undefined || (isOurs(live) && mustReplaceAuthority(live, context.now))) {
      const seconds = Math.floor(context.now.getTime() / 1000);
      const made = await createAuthority({ commonName: `argocd-agent-ca@${seconds}`, now: context.now });
      context.logger.info({ namespace: context.namespace, secret: hubNames.authority }, 'made a certificate authority');
      live = await writeSecret(context, hubNames.authority, 'kubernetes.io/tls', tlsSecretData(made));
    }
    const authority = tlsOfSecret(live.data, what);
    if (!authority) return failed(`${what} must hold tls.crt and tls.key`);
    const info = inspectCertificate(authority.certificate, what);
    if (!info.isAuthority) return failed(`${what}: tls.crt is not the certificate of an authority`);
    if (info.notAfter <= context.now) return failed(`${what}: tls.crt expired at ${info.notAfter.toISOString()}`);
    context.authority = authority;
    context.authorities = authoritiesOfSecret(live.data, 'principal', what);
    await ensureBundle(context, context.authorities);
    return succeeded('CA certificate created successfully');
  },
};

/** The certificate that agents see. */
export const principalStep: Step = {
  condition: 'PrincipalCertificateReady',
  purpose: 'generate principal certificate',
  run: async (context) => {
    const { gitOpsCluster, namespace, endpoint, spec, caches } = context;
    // All GitOpsClusters of the namespace share the principal, each perhaps under an address of its own.
    const others = caches.gitOpsClusters
      .list(namespace)
      .filter(({ metadata }) => metadata.uid !== gitOpsCluster.metadata.uid && !metadata.deletionTimestamp)
      .flatMap((other) => parseGitOpsCluster(other).server.value?.address || []);
    const addresses = [endpoint?.address ?? spec.server.value?.address ?? '', ...others];
    const hosts = principalHosts(context.service, await nodesFor(context), namespace, [...new Set(addresses)].sort());
    return serverCertificate(context, hubNames.principalTls, hosts, 'Principal certificate generated successfully');
  },
};

/** The certificate that Argo CD on the hub sees. */
export const resourceProxyStep: Step = {
  condition: 'ResourceProxyCertificateReady',
  purpose: 'generate resource proxy certificate',
  run: (context) => {
    const hosts = resourceProxyHosts(context.namespace, context.service?.metadata.name ?? principalServices[0]);
    const message = 'Resource proxy certificate generated successfully';
    return serverCertificate(context, hubNames.resourceProxyTls, hosts, message);
  },
};

async function serverCertificate(
  context: StepContext,
  name: string,
  hosts: readonly string[],
  message: string,
): Promise<StepResult> {
  const { authority, authorities } = context;
  const what = `Secret ${nameOf(context, name)}`;
  let live = await currentSecret(context, name);
  if (live && !isOurs(live)) {
    if (!tlsOfSecret(live.data, what)) return failed(`${what} must hold tls.crt and tls.key`);
    return succeeded(`${message} (supplied by the user)`);
  }
  if (!authority || !authorities) return failed('the CA certificate is not ready');
  const request: CertificateRequest = { commonName: hosts[0] ?? name, hosts, usages: ['server'] };
  const reason = reasonToReissue(keyCertificateOf(live), request, authorities, context.now);
  if (reason !== undefined) {
    const made = await issueCertificate({ ...request, authority, now: context.now });
    const chain = { certificate: made.certificate + authority.certificate, key: made.key };
    context.logger.info({ namespace: context.namespace, secret: name, reason }, 'issued a server certificate');
    live = await writeSecret(context, name, 'kubernetes.io/tls', tlsSecretData(chain));
  }
  const certificate = textOf(live?.data, 'tls.crt') ?? '';
  context.renewAt = Math.min(context.renewAt, renewalTime(inspectCertificate(certificate, what)).getTime());
  return succeeded(message);
}

/** The key pair of a Secret of ours, whatever state it is in. */
export function keyCertificateOf(secret: Secret | undefined): Partial<KeyCertificate> {
  const certificate = textOf(secret?.data, 'tls.crt');
  const key = textOf(secret?.data, 'tls.key');
  return { ...(certificate ? { certificate } : {}), ...(key ? { key } : {}) };
}

function mustReplaceAuthority(secret: Secret, now: Date): boolean {
  try {
    const authority = tlsOfSecret(secret.data);
    return authority === undefined || inspectCertificate(authority.certificate).notAfter <= now;
  } catch {
    return true; // damaged beyond use: nothing it signed could be checked against it either
  }
}

async function ensureBundle(context: StepContext, authorities: string): Promise<void> {
  const key = { namespace: context.namespace, name: hubNames.authorityBundle };
  // All GitOpsClusters of the namespace share it, so it names none of them: they would write it in turns for ever.
  const desired: ConfigMap = {
    metadata: { ...key, labels: { [keys.managedBy]: managedBy, [keys.component]: 'ca-bundle' } },
    data: { 'ca-bundle.crt': authorities },
  };
  await context.applier.ensure(configMaps, desired, context.caches.bundles.get(key), {
    exact: ['data'],
    signal: context.signal,
  });
}

function currentSecret(context: StepContext, name: string): Promise<Secret | undefined> {
  const { namespace, caches, applier, signal } = context;
  return applier.current(secrets, { namespace, name }, caches.sharedSecret(namespace, name), signal);
}

async function writeSecret(
  context: StepContext,
  name: string,
  type: string,
  data: Record<string, string>,
): Promise<Secret> {
  const { namespace, caches, applier, signal } = context;
  const live = caches.sharedSecret(namespace, name);
  const desired: Secret = { metadata: { namespace, name, ...hubMetadata(context, name) }, type, data };
  if (live?.type !== undefined && live.type !== type) await applier.remove(secrets, live, signal);
  const { object } = await applier.ensure(secrets, desired, live?.type === type ? live : undefined, {
    exact: ['data'],
    signal,
  });
  return isDeepStrictEqual(object.data, data) ? object : { ...object, data };
}

function hubMetadata(context: StepContext, component: string) {
  return {
    labels: {
      [keys.managedBy]: managedBy,
      [keys.component]: component.replace(/^argocd-agent-/, ''),
      [keys.ownerName]: labelValue(context.gitOpsCluster.metadata.name),
      [keys.ownerNamespace]: labelValue(context.namespace),
    },
  };
}

function nameOf(context: StepContext, name: string): string {
  return `${context.namespace}/${name}`;
}
