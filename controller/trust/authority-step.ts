import { type ConfigMap, configMaps, rfc3339, type Secret } from '../../lib/kube/index.ts';
import {
  authoritiesOfSecret,
  createAuthority,
  fingerprintsOf,
  inspectCertificate,
  joinCertificates,
  renewalTime,
  textOf,
  tlsOfSecret,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import { failed, type Step, type StepContext, type StepResult, succeeded } from '../fleet/steps.ts';
import { namesText } from '../fleet/summary-steps.ts';
import { isOurs } from '../hub/applier.ts';
import { hubNames, keys, managedBy } from '../hub/names.ts';
import { planTrust, type Rotation, type TrustRecord } from './rotation.ts';
import { currentSecret, nameOf, rotationRequest, writeSecret } from './shared-secrets.ts';

/**
 * The authority that all certificates come from, and everything that is trusted beside it.
 *
 * Another authority, made here or put there by the user, is trusted beside the former one before anything comes from it.
 * All that has to be remembered stands in two Secrets that are each written at once: whenever the controller is
 * stopped, the next one goes on from there.
 */
export const authorityStep: Step = {
  condition: 'CACertificateReady',
  purpose: 'create CA certificate',
  run: (context) => context.inTurn(context.namespace, () => ensureAuthority(context)),
};

async function ensureAuthority(context: StepContext): Promise<StepResult> {
  const { now } = context;
  const what = `Secret ${nameOf(context, hubNames.authority)}`;
  let live = await currentSecret(context, hubNames.authority);
  let known = trustRecord(await currentSecret(context, hubNames.authorityTrust));
  const reason = live === undefined || isOurs(live) ? reasonToReplace(live, now) : undefined;
  if (reason !== undefined) {
    known = await rememberFormer(context, live, known);
    live = await makeAuthority(context, live, reason);
  }
  const authority = tlsOfSecret(live?.data, what);
  if (!authority || !live) {
    return failed(`${what} must hold tls.crt and tls.key`);
  }
  const info = inspectCertificate(authority.certificate, what);
  if (!info.isAuthority) {
    return failed(`${what}: tls.crt is not the certificate of an authority`);
  }
  if (info.notAfter <= now) {
    return failed(`${what}: tls.crt expired at ${info.notAfter.toISOString()}`);
  }
  const { record, rotation } = planTrust({
    authority: authority.certificate,
    wanted: authoritiesOfSecret(live.data, 'principal', what),
    known,
    servers: await serverCertificates(context),
    clusters: context.clusterCertificates,
    now,
  });
  await writeTrust(context, record, known);
  context.authority = authority;
  context.authorities = record.authorities;
  context.rotation = rotation;
  if (isOurs(live)) {
    context.renewAt = Math.min(context.renewAt, renewalTime(info).getTime());
  }
  if (rotation) {
    context.renewAt = Math.min(context.renewAt, rotation.until.getTime());
  }
  await ensureBundle(context, record.authorities);
  return succeeded(`CA certificate created successfully${rotation ? `; ${rotationText(rotation)}` : ''}`);
}

/** Why an authority of ours has to make room for another one. */
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
    if (info.notAfter <= now) {
      return 'it has expired';
    }
    if (renewalTime(info) <= now) {
      return 'two thirds of its life are over';
    }
  } catch {
    return 'it is damaged'; // nothing that it signed could be checked against it either
  }
  return rotationRequest(secret).pending ? 'an operator has asked for it' : undefined;
}

/** What is about to be replaced must have been written down as trusted before it goes. */
async function rememberFormer(
  context: StepContext,
  live: Secret | undefined,
  known: TrustRecord | undefined,
): Promise<TrustRecord | undefined> {
  let former: string;
  try {
    former = authoritiesOfSecret(live?.data, 'principal');
  } catch {
    return known; // it is replaced because it cannot be used
  }
  const authorities = joinCertificates(known?.authorities ?? '', former);
  if (authorities === known?.authorities) {
    return known;
  }
  const record = { authority: fingerprintsOf(former)[0] ?? '', since: context.now, ...known, authorities };
  await writeTrust(context, record, known);
  return record;
}

async function makeAuthority(context: StepContext, live: Secret | undefined, reason: string): Promise<Secret> {
  const { now, namespace, logger, events, gitOpsCluster } = context;
  const seconds = Math.floor(now.getTime() / 1000);
  const made = await createAuthority({ commonName: `argocd-agent-ca@${seconds}`, now });
  logger.info({ namespace, secret: hubNames.authority, reason }, 'made a certificate authority');
  if (live) {
    events.normal(gitOpsCluster, 'AuthorityReplaced', `${nameOf(context, hubNames.authority)}: ${reason}`);
  }
  const { annotations } = rotationRequest(live);
  return writeSecret(context, hubNames.authority, 'kubernetes.io/tls', tlsSecretData(made), annotations);
}

/** The certificates of principal and resource proxy, whoever made them. */
async function serverCertificates(context: StepContext): Promise<string[]> {
  const live = await Promise.all(
    [hubNames.principalTls, hubNames.resourceProxyTls].map((name) => currentSecret(context, name)),
  );
  return live.flatMap((secret) => textOf(secret?.data, 'tls.crt') ?? []);
}

function trustRecord(secret: Secret | undefined): TrustRecord | undefined {
  const authorities = textOf(secret?.data, 'ca.crt');
  const { [keys.authority]: authority = '', [keys.since]: since = '' } = secret?.metadata.annotations ?? {};
  const time = new Date(since);
  if (!secret || !isOurs(secret) || authorities === undefined || Number.isNaN(time.getTime())) {
    return undefined;
  }
  try {
    return { authorities: joinCertificates(authorities), authority, since: time };
  } catch {
    return undefined; // written anew
  }
}

async function writeTrust(context: StepContext, record: TrustRecord, known: TrustRecord | undefined): Promise<void> {
  const { authorities, authority, since } = record;
  const data = { 'ca.crt': Buffer.from(authorities).toString('base64') };
  const annotations = { [keys.authority]: authority, [keys.since]: rfc3339(since) };
  await writeSecret(context, hubNames.authorityTrust, 'Opaque', data, annotations);
  const { logger, namespace, events, gitOpsCluster } = context;
  const [before, after] = [countOf(known?.authorities), countOf(authorities)];
  if (known === undefined || before === after) {
    return;
  }
  const what = before > after ? 'former authorities are no longer trusted' : 'another authority is trusted, too';
  logger.info({ namespace, authorities: after }, what);
  events.normal(gitOpsCluster, before > after ? 'AuthorityRetired' : 'AuthorityAdded', what);
}

const countOf = (authorities = '') => (authorities === '' ? 0 : fingerprintsOf(authorities).length);

function rotationText({ untrusting, unswitched, until }: Rotation): string {
  const limit = `${rfc3339(until)} at the latest`;
  if (untrusting.length > 0) {
    return `the former authority is in use until clusters ${namesText(untrusting)} report that they trust the new one`;
  }
  if (unswitched.length === 0) {
    return 'the former authority is given up next';
  }
  return `the former authority is trusted until clusters ${namesText(unswitched)} use certificates of the new one, ${limit}`;
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
