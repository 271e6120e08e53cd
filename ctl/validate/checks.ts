import { createPrivateKey, type X509Certificate } from 'node:crypto';
import { isNotFound, type KubeObject, type ResourceType, secrets } from '../../lib/kube/index.ts';
import { describeError } from '../../lib/ops/index.ts';
import { authoritiesOfSecret, type KeyCertificate, parseCertificates, secretText } from '../../lib/pki/index.ts';
import { keyPairIn } from '../authority.ts';
import type { Side } from '../ctl-command.ts';
import { argoCdInstances, type Conditioned, redisPolicies } from '../kinds.ts';

/** The result of one check. */
export interface CheckResult {
  readonly name: string;
  /** What is wrong; undefined when nothing is. */
  readonly problem: string | undefined;
}

/** Runs checks one after the other and remembers what they found. */
export class Checklist {
  readonly results: CheckResult[] = [];

  /** A check is wrong when it throws; the message says what. */
  async check(name: string, run: () => void | Promise<void>): Promise<void> {
    try {
      await run();
      this.results.push({ name, problem: undefined });
    } catch (error) {
      this.results.push({ name, problem: describeError(error) });
    }
  }
}

/** Lists a kind that the server may not have: none then. */
export async function listIfServed<T extends KubeObject>(
  side: Pick<Side, 'client'>,
  type: ResourceType<T>,
  options: { namespace?: string; labelSelector?: string; signal: AbortSignal },
): Promise<T[]> {
  try {
    return await side.client.list(type, options);
  } catch (error) {
    if (isNotFound(error)) {
      return [];
    }
    throw error;
  }
}

/** The ArgoCD of argocd-operator in a namespace; undefined without one. */
export async function operatorInstance(side: Side, signal: AbortSignal): Promise<Conditioned | undefined> {
  return (await listIfServed(side, argoCdInstances, { namespace: side.namespace, signal }))[0];
}

/** A text in the specification of an object; undefined when there is none. */
export function textAt(object: Conditioned | undefined, ...path: readonly string[]): string | undefined {
  let value: unknown = object?.spec;
  for (const key of path) {
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  }
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The first certificate of a TLS Secret. @throws Error when there is none */
export async function leafOfSecret(side: Side, name: string, signal: AbortSignal): Promise<X509Certificate> {
  return leafOf(await existingPair(side, name, signal));
}

/** The key pair of a TLS Secret. @throws Error when there is none */
export async function existingPair(side: Side, name: string, signal: AbortSignal): Promise<KeyCertificate> {
  const pair = await keyPairIn(side, name, signal);
  if (pair === undefined) {
    throw new Error(`could not read TLS secret ${side.namespace}/${name}: secrets ${JSON.stringify(name)} not found`);
  }
  return pair;
}

function leafOf({ certificate }: KeyCertificate): X509Certificate {
  const [leaf] = parseCertificates(certificate);
  if (leaf === undefined) {
    throw new Error('holds no certificate');
  }
  return leaf;
}

/** @throws Error unless the certificate of a Secret is valid now */
export async function checkValidity(side: Side, name: string, signal: AbortSignal): Promise<void> {
  const certificate = await leafOfSecret(side, name, signal);
  const now = new Date();
  const what = `certificate in secret ${side.namespace}/${name}`;
  if (now < certificate.validFromDate) {
    throw new Error(`${what} is not yet valid (valid from ${certificate.validFromDate.toISOString()})`);
  }
  if (now > certificate.validToDate) {
    throw new Error(`${what} is expired`);
  }
}

/** @throws Error unless a Secret has an RSA key for tokens */
export async function checkSigningKey(side: Side, name: string, signal: AbortSignal): Promise<void> {
  const where = `${side.namespace}/${name}`;
  const secret = await side.client.get(secrets, { namespace: side.namespace, name }, signal);
  if (secret === undefined) {
    throw new Error(`could not read JWT secret ${where}: secrets ${JSON.stringify(name)} not found`);
  }
  const pem = secretText(secret.data, 'jwt.key');
  if (!pem) {
    throw new Error(`JWT signing key is missing in secret ${where}`);
  }
  if (!pem.includes('-----BEGIN PRIVATE KEY-----')) {
    throw new Error(`JWT signing key in secret ${where} is not PKCS#8 in PEM`);
  }
  if (createPrivateKey(pem).asymmetricKeyType !== 'rsa') {
    throw new Error('JWT signing key is not an RSA private key');
  }
}

/** @throws Error unless a Secret holds certificates of authorities, as the agent reads it */
export async function checkAuthorities(side: Side, name: string, signal: AbortSignal): Promise<void> {
  const where = `${side.namespace}/${name}`;
  const secret = await side.client.get(secrets, { namespace: side.namespace, name }, signal);
  if (secret === undefined) {
    throw new Error(`could not read secret ${where}: secrets ${JSON.stringify(name)} not found`);
  }
  if (!secret.data?.['ca.crt']) {
    throw new Error(`${where}: none of the requested fields [ca.crt] were found in secret`);
  }
  authoritiesOfSecret({ 'ca.crt': secret.data['ca.crt'] }, 'agent', `Secret ${where}`);
}

/** @throws Error unless Redis' NetworkPolicy lets a program in */
export async function checkRedisPolicy(side: Side, program: string, signal: AbortSignal): Promise<void> {
  const { namespace } = side;
  const policies = (await side.client.list(redisPolicies, { namespace, signal })).filter(
    ({ spec }) => spec?.podSelector?.matchLabels?.['app.kubernetes.io/name'] === 'argocd-redis',
  );
  if (policies.length === 0) {
    throw new Error(`network policy for argo cd redis does not exist in ${namespace}`);
  }
  const admits = policies.some(({ spec }) =>
    spec?.ingress?.some(({ from }) =>
      from?.some(({ podSelector }) => podSelector?.matchLabels?.['app.kubernetes.io/name'] === program),
    ),
  );
  if (!admits) {
    throw new Error(`network policy for argo cd redis does not allow traffic from ${program}`);
  }
}
