import { wellKnown } from '../../lib/base/index.ts';
import { type ConfigMap, configMaps, rfc3339, type Secret } from '../../lib/kube/index.ts';
import {
  authoritiesOfSecret,
  createAuthority,
  fingerprintsOf,
  inspectCertificate,
  joinCertificates,
  type KeyCertificate,
  renewalTime,
  secretText,
  tlsOfSecret,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import {
  failed,
  hubNames,
  isGuest,
  isOurs,
  keys,
  managedBy,
  namesText,
  type StepReport,
  succeeded,
} from '../hub/index.ts';
import { planTrust, type Rotation, type TrustRecord } from './rotation.ts';
import { currentSecret, rotationRequest, writeSecret } from './shared-secrets.ts';
import type { TrustDeps, TrustScope } from './trust-deps.ts';

/** The issuing authority of a principal, and all trusted authorities. */
export interface HubAuthority {
  /** Certificate and key of the issuing authority. */
  readonly authority: KeyCertificate;
  /** Certificates of all trusted authorities, PEM. */
  readonly authorities: string;
  /** The rotation of the authority, while one is in progress. */
  readonly rotation: Rotation | undefined;
}

/**
 * Makes the authority that issues all certificates, and records the trusted authorities.
 *
 * A new authority, made here or supplied by the user, is trusted beside the former one before it issues anything. The state
 * of a rotation is in two Secrets, each written atomically. After a crash at any point another controller continues.
 */
export function ensureAuthority(deps: TrustDeps, scope: TrustScope): Promise<StepReport<HubAuthority>> {
  return deps.mutex.run(scope.namespace, () => makeOrKeep(deps, scope));
}

async function makeOrKeep(deps: TrustDeps, scope: TrustScope): Promise<StepReport<HubAuthority>> {
  const { now, namespace } = scope;
  const what = `Secret ${namespace}/${hubNames.authority}`;
  let live = await currentSecret(deps, scope, hubNames.authority);
  let known = trustRecord(await currentSecret(deps, scope, hubNames.authorityTrust));
  const reason = live === undefined || isOurs(live) ? reasonToReplace(live, now) : undefined;
  if (reason !== undefined) {
    known = await recordFormer(deps, scope, live, known);
    live = await makeAuthority(deps, scope, live, reason);
  }
  const authority = tlsOfSecret(live?.data, what);
  if (!authority || !live) {
    return { result: failed(`${what} must hold tls.crt and tls.key`) };
  }
  const info = inspectCertificate(authority.certificate, what);
  if (!info.isAuthority) {
    return { result: failed(`${what}: tls.crt is not the certificate of an authority`) };
  }
  if (info.notBefore > now) {
    return {
      result: failed(`${what}: tls.crt is valid from ${rfc3339(info.notBefore)}`),
      renewAt: info.notBefore.getTime(),
    };
  }
  if (info.notAfter <= now) {
    return { result: failed(`${what}: tls.crt expired at ${info.notAfter.toISOString()}`) };
  }
  const { record, rotation } = planTrust({
    authority: authority.certificate,
    inSecret: authoritiesOfSecret(live.data, 'principal', what),
    known,
    servers: await serverCertificates(deps, scope),
    clusters: () => deps.clusterCertificates(namespace),
    now,
  });
  await writeTrust(deps, scope, record, known);
  const result = succeeded(
    `CA certificate created successfully${rotation ? `; ${rotationText(rotation, clustersText(scope))}` : ''}`,
  );
  const found: HubAuthority = { authority, authorities: record.authorities, rotation };
  const renewAt = Math.min(
    isOurs(live) ? renewalTime(info).getTime() : Number.POSITIVE_INFINITY,
    rotation?.until.getTime() ?? Number.POSITIVE_INFINITY,
  );
  try {
    await ensureBundle(deps, scope, record.authorities);
  } catch (error) {
    return { result, found, renewAt, error };
  }
  return { result, found, renewAt };
}

/** Why an authority made by this controller must be replaced; undefined when it is kept. */
function reasonToReplace(secret: Secret | undefined, now: Date): string | undefined {
  if (secret === undefined) {
    return 'there is none';
  }
  try {
    const authority = tlsOfSecret(secret.data);
    if (authority === undefined) {
      return 'it is incomplete';
    }
    const info = inspectCertificate(authority.certificate);
    if (info.notBefore > now) {
      return 'its life has not begun: a clock was ahead when it was made';
    }
    if (info.notAfter <= now) {
      return 'it has expired';
    }
    if (renewalTime(info) <= now) {
      return 'two thirds of its life are over';
    }
  } catch {
    return 'it is damaged'; // certificates that it signed could not be verified either
  }
  return rotationRequest(secret).pending ? 'an operator has asked for it' : undefined;
}

/** Records an authority as trusted before it is replaced. */
async function recordFormer(
  deps: TrustDeps,
  scope: TrustScope,
  live: Secret | undefined,
  known: TrustRecord | undefined,
): Promise<TrustRecord | undefined> {
  let former: string;
  try {
    former = authoritiesOfSecret(live?.data, 'principal');
  } catch {
    return known; // the authority is replaced because it cannot be used
  }
  const authorities = joinCertificates(known?.authorities ?? '', former);
  if (authorities === known?.authorities) {
    return known;
  }
  const record = { authority: fingerprintsOf(former)[0] ?? '', since: scope.now, ...known, authorities };
  await writeTrust(deps, scope, record, known);
  return record;
}

async function makeAuthority(
  deps: TrustDeps,
  scope: TrustScope,
  live: Secret | undefined,
  reason: string,
): Promise<Secret> {
  const { logger, events } = deps;
  const { now, namespace, gitOpsCluster } = scope;
  const seconds = Math.floor(now.getTime() / 1000);
  const made = await createAuthority({ commonName: `argocd-agent-ca@${seconds}`, now });
  logger.info({ namespace, secret: hubNames.authority, reason }, 'made a certificate authority');
  if (live) {
    events.normal(gitOpsCluster, 'AuthorityReplaced', `${namespace}/${hubNames.authority}: ${reason}`);
  }
  const { annotations } = rotationRequest(live);
  const content = { type: 'kubernetes.io/tls', data: tlsSecretData(made) };
  return writeSecret(deps, scope, hubNames.authority, content, annotations);
}

/** The certificates of principal and resource proxy, PEM, also when a user supplied them. */
async function serverCertificates(deps: TrustDeps, scope: TrustScope): Promise<string[]> {
  const live = await Promise.all(
    [hubNames.principalTls, hubNames.resourceProxyTls].map((name) => currentSecret(deps, scope, name)),
  );
  return live.flatMap((secret) => secretText(secret?.data, 'tls.crt') ?? []);
}

function trustRecord(secret: Secret | undefined): TrustRecord | undefined {
  const authorities = secretText(secret?.data, 'ca.crt');
  const { [keys.authority]: authority = '', [keys.since]: since = '' } = secret?.metadata.annotations ?? {};
  const time = new Date(since);
  if (!secret || !isOurs(secret) || authorities === undefined || Number.isNaN(time.getTime())) {
    return undefined;
  }
  try {
    return { authorities: joinCertificates(authorities), authority, since: time };
  } catch {
    return undefined; // written again
  }
}

async function writeTrust(
  deps: TrustDeps,
  scope: TrustScope,
  record: TrustRecord,
  known: TrustRecord | undefined,
): Promise<void> {
  const { authorities, authority, since } = record;
  const data = { 'ca.crt': Buffer.from(authorities).toString('base64') };
  const annotations = { [keys.authority]: authority, [keys.since]: rfc3339(since) };
  await writeSecret(deps, scope, hubNames.authorityTrust, { type: 'Opaque', data }, annotations);
  const { logger, events } = deps;
  const { namespace, gitOpsCluster } = scope;
  const [before, after] = [countOf(known?.authorities), countOf(authorities)];
  if (known === undefined || before === after) {
    return;
  }
  const what = before > after ? 'former authorities are no longer trusted' : 'another authority is trusted, too';
  logger.info({ namespace, authorities: after }, what);
  events.normal(gitOpsCluster, before > after ? 'AuthorityRetired' : 'AuthorityAdded', what);
}

const countOf = (authorities = '') => (authorities === '' ? 0 : fingerprintsOf(authorities).length);

/** Clusters in a message. A guest is not told the names of others' clusters. */
function clustersText({ gitOpsCluster, namespace }: TrustScope): (clusters: readonly string[]) => string {
  return isGuest(gitOpsCluster, namespace)
    ? ({ length }) => `(${length} of this principal)`
    : (clusters) => namesText(clusters);
}

function rotationText(
  { untrusting, unswitched, isServerLeft, until }: Rotation,
  textOf: ReturnType<typeof clustersText>,
): string {
  const limit = `${rfc3339(until)} at the latest`;
  if (untrusting.length > 0) {
    return `the former authority is in use until clusters ${textOf(untrusting)} report that they trust the new one`;
  }
  if (unswitched.length === 0 && isServerLeft) {
    return `the former authority is trusted until no server shows a certificate of it any more, ${limit}`;
  }
  if (unswitched.length === 0) {
    return 'the former authority is given up next';
  }
  return `the former authority is trusted until clusters ${textOf(unswitched)} use certificates of the new one, ${limit}`;
}

async function ensureBundle(
  { applier, caches }: TrustDeps,
  { namespace, signal }: TrustScope,
  authorities: string,
): Promise<void> {
  const key = { namespace, name: hubNames.authorityBundle };
  // All GitOpsClusters of the principal share it. It has no owner, so that they do not overwrite each other.
  const desired: ConfigMap = {
    metadata: { ...key, labels: { [wellKnown.managedByLabel]: managedBy, [keys.component]: 'ca-bundle' } },
    data: { 'ca-bundle.crt': authorities },
  };
  await applier.ensure(configMaps, desired, caches.bundles.get(key), { exact: ['data'], signal });
}
