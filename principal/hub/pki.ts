import { backoffDelay, sleep, wellKnown } from '../../lib/base/index.ts';
import { identityIn, withIdentity } from '../../lib/clusters/index.ts';
import { isAlreadyExists, isConflict, type KubeClient, type Secret, secrets } from '../../lib/kube/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import {
  authoritiesOfSecret,
  type CertificateRequest,
  createAuthority,
  generateJwtKey,
  inspectCertificate,
  issueCertificate,
  type KeyCertificate,
  loopbackHosts,
  PkiError,
  reasonToReissue,
  resourceProxyHosts,
  secretText,
  serviceHosts,
  tlsOfSecret,
  tlsSecretData,
} from '../../lib/pki/index.ts';

/** Value of `app.kubernetes.io/managed-by` on the Secrets that this file makes. It never changes others. */
export const pkiManager = 'argocd-agent-pki';

const day = 24 * 3_600_000;
/** Of the authority that `argocd-agentctl` makes. Nothing replaces it by itself. */
const authorityMs = 3_650 * day;
/** Certificates are renewed after two thirds of it, which leaves a month to notice that nothing renews them. */
export const certificateMs = 90 * day;
/** Other programs may make or renew the same Secrets at the same time. */
const attempts = 5;

/** What {@link ensurePki} works with. */
export interface PkiOptions {
  readonly client: Pick<KubeClient, 'get' | 'list' | 'create' | 'mergePatch'>;
  /** Argo CD's namespace on the hub. */
  readonly namespace: string;
  /** Names of the Secrets. */
  readonly names: {
    readonly authority: string;
    readonly principal: string;
    readonly resourceProxy: string;
    readonly tokenKey: string;
  };
  /** Name of the Service of the principal. */
  readonly service: string;
  /** Hosts at which agents reach the principal. */
  readonly addresses: readonly string[];
  /** Gets a line about each Secret, and whether it was written. */
  readonly report: (line: string, isChange: boolean) => void;
  readonly signal: AbortSignal;
  readonly now?: Date;
}

/** The authority of a hub. */
export interface Pki {
  /** Undefined when its private key is not on the hub. */
  readonly authority: KeyCertificate | undefined;
  /** Certificates of the trusted authorities, PEM. */
  readonly authorities: string;
  /** The principal's certificate, PEM. */
  readonly principalCertificate: string;
}

/**
 * Makes what a principal needs and does not have yet: authority, certificates of principal and resource proxy, key of the
 * tokens. Renews the certificates that it made, also those in the cluster Secrets of enrolled agents. Secrets of others are
 * used and never changed.
 *
 * A certificate keeps the names that it has: agents at a former address stay connected.
 * @throws FatalError when something is missing that cannot be made
 */
export async function ensurePki(options: PkiOptions): Promise<Pki> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await makeOrRenew(options);
    } catch (error) {
      if (error instanceof PkiError) {
        throw new FatalError(`${error.message}. Correct the Secret, or delete it to have it made anew`, {
          cause: error,
        });
      }
      if (attempt === attempts || !(isConflict(error) || isAlreadyExists(error))) {
        throw error;
      }
      await sleep(backoffDelay(attempt), options.signal);
    }
  }
}

async function makeOrRenew(options: PkiOptions): Promise<Pki> {
  const { namespace, names, service, addresses } = options;
  const { authority, authorities } = await ensureAuthority(options);
  const principalCertificate = await ensureServer(options, { authority, authorities }, names.principal, {
    commonName: 'argocd-agent-principal',
    hosts: [...addresses, ...serviceHosts(service, namespace), ...loopbackHosts],
    // A principal that follows another one shows it.
    usages: ['server', 'client'],
  });
  await ensureServer(options, { authority, authorities }, names.resourceProxy, {
    commonName: 'argocd-agent-resource-proxy',
    hosts: resourceProxyHosts(namespace, service),
    usages: ['server'],
  });
  await ensureTokenKey(options);
  if (authority !== undefined) {
    await renewClusterSecrets(options, authority, authorities);
  }
  return { authority, authorities, principalCertificate };
}

type Authority = Omit<Pki, 'principalCertificate'>;

async function ensureAuthority(options: PkiOptions): Promise<Authority> {
  const { namespace, names, now = new Date(), report } = options;
  const what = `Secret ${namespace}/${names.authority}`;
  const live = await read(options, names.authority);
  if (live === undefined) {
    const commonName = `argocd-agent-ca@${Math.floor(now.getTime() / 1000)}`;
    const made = await createAuthority({ commonName, lifetimeMs: authorityMs, now });
    await write(options, undefined, names.authority, 'kubernetes.io/tls', tlsSecretData(made));
    report(`${what}: made a certificate authority`, true);
    return { authority: made, authorities: made.certificate };
  }
  const authorities = authoritiesOfSecret(live.data, 'principal', what);
  const authority = tlsOfSecret(live.data, what);
  const { notBefore, notAfter, isAuthority } = inspectCertificate(authority?.certificate ?? authorities, what);
  if (!isAuthority) {
    throw new PkiError('NOT_AN_AUTHORITY', what, 'tls.crt is not the certificate of an authority');
  }
  const life =
    notBefore > now
      ? `valid only from ${notBefore.toISOString()}: correct the clock of this machine, or have the Secret made anew`
      : `valid until ${notAfter.toISOString()}`;
  report(`${what}: ${isOwn(live) ? 'kept' : 'yours, kept'}, ${life}`, false);
  return { authority, authorities };
}

/** Makes or renews a server's certificate. @returns the certificate in use */
async function ensureServer(
  options: PkiOptions,
  { authority, authorities }: Authority,
  name: string,
  request: CertificateRequest & { readonly hosts: readonly string[] },
): Promise<string> {
  const { namespace, now = new Date(), report } = options;
  const what = `Secret ${namespace}/${name}`;
  const live = await read(options, name);
  const current = secretText(live?.data, 'tls.crt') ?? '';
  if (live !== undefined && !isOwn(live)) {
    const { notAfter } = inspectCertificate(current, `${what}, key tls.crt`);
    report(`${what}: yours, kept, valid until ${notAfter.toISOString()}`, false);
    return current;
  }
  const pair = { certificate: current, key: secretText(live?.data, 'tls.key') ?? '' };
  const wanted = { ...request, hosts: [...new Set([...request.hosts, ...hostsOf(current)])] };
  const reason = reasonToReissue(pair, wanted, authorities, now);
  if (reason === undefined) {
    report(`${what}: kept, valid until ${inspectCertificate(current).notAfter.toISOString()}`, false);
    return current;
  }
  if (authority === undefined) {
    const needed = `Secret ${namespace}/${options.names.authority} has no tls.key`;
    throw new FatalError(
      `${what}: ${reason}, and ${needed}: add the authority's key, or issue this certificate yourself`,
    );
  }
  const made = await issueCertificate({ ...wanted, authority, lifetimeMs: certificateMs, now });
  const certificate = made.certificate + authority.certificate;
  await write(options, live, name, 'kubernetes.io/tls', tlsSecretData({ certificate, key: made.key }));
  report(`${what}: issued, because ${reason}`, true);
  return certificate;
}

async function ensureTokenKey(options: PkiOptions): Promise<void> {
  const { namespace, names, report } = options;
  const what = `Secret ${namespace}/${names.tokenKey}`;
  const live = await read(options, names.tokenKey);
  if (live === undefined) {
    const key = Buffer.from(await generateJwtKey(4096)).toString('base64');
    await write(options, undefined, names.tokenKey, 'Opaque', { 'jwt.key': key });
    report(`${what}: made a key for tokens`, true);
    return;
  }
  if (!secretText(live.data, 'jwt.key')) {
    throw new FatalError(`${what} has no key jwt.key: add it, or delete the Secret to have it made anew`);
  }
  report(`${what}: ${isOwn(live) ? 'kept' : 'yours, kept'}`, false);
}

/** Renews the certificates by which Argo CD reaches the clusters of enrolled agents. */
async function renewClusterSecrets(options: PkiOptions, authority: KeyCertificate, authorities: string): Promise<void> {
  const { client, namespace, now = new Date(), signal, report } = options;
  const labelSelector = `${wellKnown.managedByLabel}=${pkiManager},${wellKnown.secretTypeLabel}=cluster`;
  for (const secret of await client.list(secrets, { namespace, labelSelector, signal })) {
    const agent = secret.metadata.labels?.[wellKnown.agentNameLabel] ?? '';
    const { ca, ...pair } = identityIn(secret);
    const known = ca === authorities ? undefined : 'the authorities have changed';
    const reason = reasonToReissue(pair, clientRequest(agent), authorities, now) ?? known;
    if (reason !== undefined && agent !== '') {
      const made = await issueClient(authority, agent, now);
      const { name, uid, resourceVersion } = secret.metadata;
      const data = withIdentity(secret, { cert: made.certificate, key: made.key, ca: authorities });
      const patch = { metadata: { uid, resourceVersion }, data };
      await client.mergePatch(secrets, { namespace, name }, patch, { fieldManager: pkiManager, signal });
      report(`Secret ${namespace}/${name}: certificate renewed, because ${reason}`, true);
    }
  }
}

const clientRequest = (agent: string): CertificateRequest => ({ commonName: agent, usages: ['client'] });

/** Issues a client certificate whose common name is an agent's, as `argocd-agentctl` does. */
export function issueClient(authority: KeyCertificate, agent: string, now?: Date): Promise<KeyCertificate> {
  const life = { lifetimeMs: certificateMs, ...(now === undefined ? {} : { now }) };
  return issueCertificate({ ...clientRequest(agent), authority, algorithm: 'p256', ...life });
}

function hostsOf(certificate: string): readonly string[] {
  try {
    const { dnsNames, ipAddresses } = inspectCertificate(certificate);
    return [...dnsNames, ...ipAddresses];
  } catch (error) {
    if (error instanceof PkiError) {
      return []; // it is issued anew
    }
    throw error;
  }
}

const isOwn = (secret: Secret) => secret.metadata.labels?.[wellKnown.managedByLabel] === pkiManager;

function read({ client, namespace, signal }: PkiOptions, name: string): Promise<Secret | undefined> {
  return client.get(secrets, { namespace, name }, signal);
}

async function write(
  { client, namespace, signal }: PkiOptions,
  live: Secret | undefined,
  name: string,
  type: string,
  data: Readonly<Record<string, string>>,
): Promise<void> {
  const options = { fieldManager: pkiManager, signal };
  if (live === undefined) {
    const labels = { [wellKnown.managedByLabel]: pkiManager, [wellKnown.partOfLabel]: 'argocd-agent' };
    await client.create(secrets, { metadata: { namespace, name, labels }, type, data }, options);
    return;
  }
  const { uid, resourceVersion } = live.metadata;
  await client.mergePatch(secrets, { namespace, name }, { metadata: { uid, resourceVersion }, data }, options);
}
