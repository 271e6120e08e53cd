import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { matchesAny } from '../../lib/argocd/index.ts';
import type { AgentMode } from '../../lib/auth/index.ts';
import { splitHostPort, wellKnown, withoutBrackets } from '../../lib/base/index.ts';
import { agentClusterSecretName, enrolledClusterSecret } from '../../lib/clusters/index.ts';
import { isAlreadyExists, namespaces, type Secret, secrets } from '../../lib/kube/index.ts';
import { agentContextOf, isOriginalImage, Templates } from '../../lib/manifests/index.ts';
import {
  FatalError,
  type FlagValues,
  formatDuration,
  printableLines,
  printYaml,
  UsageError,
  versionInfo,
} from '../../lib/ops/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import { newToken, storeToken } from '../enrolment/tokens.ts';
import { parseClusterLabels } from './cluster-labels.ts';
import type { enrollFlags } from './enroll-flags.ts';
import { explained, type OperatorHub, openHub, type PrincipalAddress, principalParams } from './hub-access.ts';
import { isHost } from './hub-flags.ts';
import { issueClient, type Pki, pkiManager } from './pki.ts';

type Flags = FlagValues<typeof enrollFlags>;

const fieldManager = 'argocd-agent-enroll';
/** Secret where the agent looks for its client certificate. */
const clientSecretName = 'argocd-agent-client-tls';
/** Without Argo CD's project `default`, which is the cluster's own. */
const templateFiles = ['10-namespace', '20-credentials', '30-rbac', '35-live-access', '40-agent'].map(
  (name) => `agent/${name}.yaml.hbs`,
);

/**
 * Enrolls an agent: makes on the hub what it needs, and returns the manifest for its cluster. What is worth knowing besides is
 * written to standard error.
 * @throws UsageError for flags that contradict each other
 * @throws FatalError that says what is missing
 */
export async function enrollAgent(name: string, flags: Flags, signal: AbortSignal): Promise<string> {
  const isTokenWanted = flags.certificate === 'token';
  if (isTokenWanted && isOriginalImage(flags.image)) {
    throw new UsageError(`${flags.image} cannot use a token: add --certificate=generate`);
  }
  const given = flags['principal-address'] === '' ? undefined : parseAddress(flags['principal-address']);
  const hub = openHub(flags, { signal, report: (line, isChange) => isChange && say(line) });
  return explained(hub.client, async () => {
    const known = await knownClusterSecret(hub, name, flags, signal);
    const address = given ?? (await hub.address());
    if (address === undefined) {
      throw new FatalError(
        `the principal's Service in namespace ${flags.namespace} has no address of a load balancer: give --principal-address`,
      );
    }
    const pki = await hub.ensurePki([address.host]);
    const authority = checkedAuthority(pki, address, flags);
    const image = flags.image || (await defaultImage(hub));
    const params = await principalParams(hub, flags.namespace, signal);
    const isMappedByDestination =
      flags['destination-based-mapping'] || params['principal.destination-based-mapping'] === 'true';
    const mode = flags.mode as AgentMode;
    if (mode === 'autonomous' || !isMappedByDestination) {
      await ensureNamespace(hub, name, signal);
    }
    if (!isMappedByDestination && !isHandled(params, name)) {
      const hint = 'add it to principal.allowed-namespaces, or set principal.destination-based-mapping';
      say(`the principal does not handle Applications in namespace ${name}: ${hint}`);
    }
    const token = isTokenWanted ? newToken(name) : undefined;
    if (token !== undefined) {
      const expires = new Date(Date.now() + flags['token-ttl']);
      await storeToken(hub.client, flags.namespace, { agent: name, token, expires, signal });
      if (params['principal.enrolment.enable'] !== 'true') {
        say('the principal takes tokens only with --enable-enrolment (ConfigMap key principal.enrolment.enable)');
      }
    }
    // Last: it is the mark of an agent that is enrolled.
    await writeClusterSecret(hub, known, { name, mode, flags, pki, authority, signal });
    const context = agentContextOf({
      namespace: flags['agent-namespace'],
      mode,
      serverAddress: address.host,
      serverPort: String(address.port),
      authorities: pki.authorities,
      clientSecretName,
      clientCertificate: isTokenWanted ? undefined : await issueClient(authority, name),
      enrolmentToken: token,
      isAddOn: false,
      agentImage: image,
      pullPolicy: 'IfNotPresent',
      liveAccess: flags['live-access'],
      destinationBasedMapping: isMappedByDestination,
    });
    const life = isTokenWanted ? `; its token can be used once, within ${formatDuration(flags['token-ttl'])}` : '';
    say(`agent ${name} is enrolled. Apply the manifest to its cluster with kubectl apply -f -${life}`);
    return new Templates().render('agent', context, templateFiles).map(printYaml).join('---\n');
  });
}

/** What the principal runs, by the same digest if it has one; with a principal of argocd-agent, the image of this version. */
async function defaultImage(hub: OperatorHub): Promise<string> {
  const ofPrincipal = await hub.principalImage();
  return ofPrincipal === undefined || isOriginalImage(ofPrincipal)
    ? `quay.io/open-cluster-management/argocd-fleet:${versionInfo().version}`
    : ofPrincipal;
}

/** @throws UsageError for an address that cannot be one */
function parseAddress(text: string): PrincipalAddress {
  const address = splitHostPort(text) ?? { host: withoutBrackets(text), port: 443 };
  if (!isHost(address.host) || address.port === 0) {
    throw new UsageError(`--principal-address ${JSON.stringify(text)} is not host or host:port`);
  }
  return address;
}

/** The present cluster Secret of the agent. @throws FatalError unless it may be enrolled */
async function knownClusterSecret(
  hub: OperatorHub,
  name: string,
  flags: Flags,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  const { namespace } = flags;
  const own = { namespace, name: agentClusterSecretName(name) };
  const labelSelector = `${wellKnown.secretTypeLabel}=cluster,${wellKnown.agentNameLabel}=${name}`;
  const [mapped] = await hub.client.list(secrets, { namespace, labelSelector, signal });
  if (mapped !== undefined && !flags.again) {
    const what = `Secret ${namespace}/${mapped.metadata.name}`;
    throw new FatalError(`agent ${name} is enrolled already (${what}): add --again for a new manifest`);
  }
  if (mapped === undefined && (await hub.client.get(secrets, own, signal)) !== undefined) {
    throw new FatalError(
      `Secret ${namespace}/${own.name} is not the cluster Secret of agent ${name}: rename or delete it, or choose another name`,
    );
  }
  return mapped;
}

/** @throws FatalError when the agent would not trust the principal, or nobody could issue its certificate */
function checkedAuthority(pki: Pki, { host }: PrincipalAddress, flags: Flags): KeyCertificate {
  const { namespace } = flags;
  const certificate = new X509Certificate(pki.principalCertificate);
  const isNamed = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  if (isNamed === undefined) {
    throw new FatalError(
      `the certificate in Secret ${namespace}/${flags['tls-secret-name']}, which you made, is not for ${host}: issue one that is, or give another --principal-address`,
    );
  }
  if (pki.authority === undefined) {
    throw new FatalError(
      `Secret ${namespace}/${flags['tls-ca-secret-name']} has no tls.key, so no certificate can be issued: add the authority's key`,
    );
  }
  return pki.authority;
}

/** Whether the principal handles Applications in a namespace; true when its settings are not known. */
function isHandled(params: Readonly<Record<string, string>>, namespace: string): boolean {
  const allowed = (params['principal.allowed-namespaces'] ?? '').split(',').map((entry) => entry.trim());
  return Object.keys(params).length === 0 || matchesAny(allowed, namespace);
}

async function ensureNamespace({ client }: OperatorHub, name: string, signal: AbortSignal): Promise<void> {
  if ((await client.get(namespaces, { name }, signal)) !== undefined) {
    return;
  }
  try {
    await client.create(namespaces, { metadata: { name } }, { fieldManager, signal });
    say(`made namespace ${name} for the Applications of the agent`);
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
  }
}

async function writeClusterSecret(
  { client }: OperatorHub,
  known: Secret | undefined,
  enrolment: { name: string; mode: AgentMode; flags: Flags; pki: Pki; authority: KeyCertificate; signal: AbortSignal },
): Promise<void> {
  const { name, mode, flags, pki, authority, signal } = enrolment;
  const { namespace } = flags;
  const labels = parseClusterLabels(flags.label);
  const isLabelled = Object.keys(labels).length > 0;
  if (known !== undefined && known.metadata.labels?.[wellKnown.managedByLabel] !== pkiManager) {
    if (isLabelled) {
      const key = { namespace, name: known.metadata.name };
      await client.mergePatch(
        secrets,
        key,
        { metadata: { uid: known.metadata.uid, labels } },
        { fieldManager, signal },
      );
    }
    const but = isLabelled ? ', but for its labels' : '';
    say(`Secret ${namespace}/${known.metadata.name} is not from this command, kept${but}`);
    return;
  }
  const { certificate, key } = await issueClient(authority, name);
  const desired = enrolledClusterSecret(
    namespace,
    {
      agent: name,
      address: flags['resource-proxy-address'],
      identity: { cert: certificate, key, ca: pki.authorities },
    },
    { mode, labels, managedBy: pkiManager },
  );
  if (known === undefined) {
    await client.create(secrets, desired, { fieldManager, signal });
    return;
  }
  const { uid, resourceVersion } = known.metadata;
  const { annotations = {} } = desired.metadata;
  const patch = { metadata: { uid, resourceVersion, annotations, labels }, data: desired.data ?? {} };
  await client.mergePatch(secrets, { namespace, name: known.metadata.name }, patch, { fieldManager, signal });
}

function say(line: string): void {
  process.stderr.write(printableLines(`${line}\n`));
}
