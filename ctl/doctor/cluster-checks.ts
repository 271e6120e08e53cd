import { wellKnown } from '../../lib/base/index.ts';
import {
  agentClusterSecretName,
  type ConnectionRecord,
  connectionRecord,
  identityIn,
} from '../../lib/clusters/index.ts';
import type { Deployment, Secret } from '../../lib/kube/index.ts';
import { isOriginalImage } from '../../lib/manifests/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { inspectCertificate } from '../../lib/pki/index.ts';
import { names } from '../authority.ts';
import { firstProblem } from '../fleet/fleet.ts';
import { certificateFaults } from './certificates.ts';
import type { Facts } from './facts.ts';
import { type Diagnosis, findingsAbout } from './finding.ts';
import { authoritiesOf, paramsOf } from './hub-checks.ts';

/** Events that are older are history. */
const recentMs = 3_600_000;

const isCluster = (secret: Secret) => secret.metadata.labels?.[wellKnown.secretTypeLabel] === 'cluster';
const agentNameOf = (secret: Secret) => secret.metadata.labels?.[wellKnown.agentNameLabel];
const isManaged = (secret: Secret) => secret.metadata.annotations?.['managed-by'] === 'argocd-agent';

/** The agents that the hub knows. */
export function agentsOf(facts: Facts): string[] {
  return [...new Set(facts.secrets.filter(isCluster).flatMap((secret) => agentNameOf(secret) ?? []))].sort();
}

/** What is wrong with the cluster Secrets as a whole: what concerns more than one agent, or none. */
export function clusterSecretFaults(facts: Facts): Diagnosis[] {
  const { namespace } = facts;
  const findings: Diagnosis[] = [];
  const add = (id: string, cluster: string, what: string, name: string, mend: string) =>
    findings.push({ id, cluster, what, where: `Secret ${namespace}/${name}`, mend });
  const clusters = facts.secrets.filter(isCluster);
  for (const secret of clusters.filter((one) => isManaged(one) && agentNameOf(one) === undefined)) {
    const { name } = secret.metadata;
    const agent = name.replace(/^cluster-/, '');
    const mend = `kubectl --namespace ${namespace} label secret ${name} ${wellKnown.agentNameLabel}=${agent}`;
    add('cluster-secret-without-agent', agent, 'the cluster Secret names no agent: its agent gets nothing', name, mend);
  }
  for (const secret of facts.secrets.filter((one) => !isCluster(one) && agentNameOf(one) !== undefined)) {
    const { name, labels = {} } = secret.metadata;
    const type = labels[wellKnown.secretTypeLabel];
    const what = `the Secret of agent ${agentNameOf(secret)} has ${type === undefined ? 'no label' : `the label ${type}`} instead of ${wellKnown.secretTypeLabel}=cluster: Argo CD does not see it`;
    const mend = `kubectl --namespace ${namespace} label --overwrite secret ${name} ${wellKnown.secretTypeLabel}=cluster`;
    if (secret.data?.server !== undefined) {
      add('cluster-secret-wrong-label', agentNameOf(secret) ?? '', what, name, mend);
    }
  }
  const twice = <K>(keyOfSecret: (secret: Secret) => K | undefined) =>
    [...Map.groupBy(clusters, keyOfSecret)].filter(([key, all]) => key !== undefined && key !== '' && all.length > 1);
  for (const [agent, all] of twice(agentNameOf)) {
    const list = all.map(({ metadata }) => metadata.name).sort();
    const mend = `kubectl --namespace ${namespace} delete secret ${list.at(-1)}`;
    add(
      'agent-mapped-twice',
      agent ?? '',
      `the Secrets ${list.join(', ')} name the same agent, ${agent}`,
      list.join(', '),
      mend,
    );
  }
  for (const [name, all] of twice((secret) => decodeSecret(secret).name)) {
    const list = all.map(({ metadata }) => metadata.name).sort();
    if (new Set(all.map(agentNameOf)).size > 1) {
      const what = `the Secrets ${list.join(', ')} give clusters the same name, ${name}: Argo CD cannot tell them apart`;
      add(
        'cluster-name-twice',
        agentNameOf(all[0] as Secret) ?? '',
        what,
        list.join(', '),
        `kubectl --namespace ${namespace} edit secret ${list.at(-1)}`,
      );
    }
  }
  return findings;
}

/** What is wrong with one agent, as far as the hub knows. */
export function clusterFaults(facts: Facts, agent: string): Diagnosis[] {
  const { namespace, now } = facts;
  const finding = findingsAbout(agent);
  const secret = facts.secrets.find((one) => isCluster(one) && agentNameOf(one) === agent);
  const params = paramsOf(facts);
  if (secret === undefined) {
    if (facts.unknown.has('secrets')) {
      return [];
    }
    const isNamed = facts.secrets.some(
      (one) => one.metadata.name === agentClusterSecretName(agent) || agentNameOf(one) === agent,
    );
    const where = `Secret ${namespace}/${agentClusterSecretName(agent)}`;
    // With a Secret of that name, its own finding says more.
    return isNamed
      ? []
      : [
          finding(
            'cluster-not-enrolled',
            `no cluster Secret names agent ${agent}`,
            where,
            `argocd-agent enroll ${agent}, or argocd-agentctl agent create ${agent}`,
          ),
        ];
  }
  const where = `Secret ${namespace}/${secret.metadata.name}`;
  const findings: Diagnosis[] = [];
  const { server = '' } = decodeSecret(secret);
  const named = URL.parse(server)?.searchParams.get('agentName');
  if (!server.startsWith('https://') || named !== agent) {
    const what = `its server is ${JSON.stringify(server)}; live access needs https://HOST:PORT?agentName=${agent}`;
    const mend = `argocd-agentctl agent reconfigure ${agent} --resource-proxy-server 'https://argocd-agent-resource-proxy:9090?agentName=${agent}'`;
    findings.push(finding('cluster-secret-wrong-server', what, where, mend));
  }
  if (isManaged(secret) && secret.metadata.annotations?.[wellKnown.skipReconcileAnnotation] !== 'true') {
    const what = `the annotation ${wellKnown.skipReconcileAnnotation} is not "true": the hub's application controller deploys there, too`;
    const mend = `kubectl --namespace ${namespace} annotate --overwrite secret ${secret.metadata.name} ${wellKnown.skipReconcileAnnotation}=true`;
    findings.push(finding('cluster-secret-reconciled', what, where, mend));
  }
  findings.push(...clientCertificateFaults(facts, agent, secret, where));
  const isByNamespace = params['principal.destination-based-mapping'] !== 'true';
  const hasNamespace = facts.namespaces.some(({ metadata }) => metadata.name === agent);
  if (Object.keys(params).length > 0 && isByNamespace && !facts.unknown.has('namespaces') && !hasNamespace) {
    const what = 'the namespace of its Applications does not exist on the hub';
    findings.push(finding('agent-namespace-missing', what, `Namespace ${agent}`, `kubectl create namespace ${agent}`));
  }
  const record = facts.leases.map(connectionRecord).find((one) => one?.agent === agent);
  const events = facts.events.filter(
    ({ regarding, series, eventTime, metadata }) =>
      regarding?.name === secret.metadata.name &&
      now.getTime() - Date.parse(series?.lastObservedTime ?? eventTime ?? metadata.creationTimestamp ?? '') < recentMs,
  );
  const refused = events.find(({ reason }) => reason === 'AgentModeRefused');
  const wanted = secret.metadata.annotations?.[wellKnown.agentModeAnnotation];
  const isOther = record?.isConnected === true && wanted !== undefined && record.mode !== '' && record.mode !== wanted;
  if (refused !== undefined || isOther) {
    const what = refused?.note ?? `it runs in mode ${record?.mode}, but must have mode ${wanted}`;
    const mode = wanted ?? record?.mode ?? 'managed';
    const mend = `run the agent with --agent-mode=${mode}; if the change is wanted: kubectl --namespace ${namespace} annotate --overwrite secret ${secret.metadata.name} ${wellKnown.agentModeAnnotation}=MODE`;
    findings.push(finding('wrong-mode', what, where, mend));
  }
  const unsteady = events.find(({ reason }) => reason === 'AgentConnectionUnsteady');
  if (unsteady !== undefined) {
    const what = unsteady.note ?? 'its connections end soon, again and again';
    const mend =
      'a shorter --keep-alive-ping-interval of the agent (agent.keep-alive.interval) than the idle limit of proxies and firewalls; on the cluster: kubectl --namespace argocd get pods';
    findings.push(finding('connection-unsteady', what, where, mend));
  }
  const quota = events.find(({ reason }) => reason === 'AgentQuotaExceeded');
  if (quota !== undefined) {
    findings.push(
      finding(
        'quota',
        quota.note ?? 'a write was refused',
        where,
        "raise the principal's --agent-max-objects or --agent-max-bytes, or remove objects on the cluster",
      ),
    );
  }
  findings.push(...versionFaults(facts, agent, record), ...connectionFaults(facts, agent, record));
  const addOn = facts.addOns.find(
    (one) => one.metadata.namespace === agent && one.metadata.name === 'argocd-agent-addon',
  );
  const problem = firstProblem(addOn?.status?.conditions);
  if (problem !== '') {
    findings.push(
      finding(
        'add-on-condition',
        problem,
        `ManagedClusterAddOn ${agent}/argocd-agent-addon`,
        `kubectl --namespace ${agent} describe managedclusteraddon argocd-agent-addon`,
      ),
    );
  }
  return findings;
}

function clientCertificateFaults(facts: Facts, agent: string, secret: Secret, where: string): Diagnosis[] {
  const { certificate, key } = identityIn(secret);
  if (certificate === '') {
    return []; // some other way in, such as a token alone
  }
  const hasToken = (decodeSecret(secret).config ?? '').includes('"bearerToken"');
  const findings = certificateFaults(
    {
      id: 'client-certificate',
      cluster: agent,
      what: 'the certificate by which Argo CD reaches the cluster',
      where,
      certificate,
      key,
      authorities: authoritiesOf(facts),
      // A token names the agent; the certificate is then the same for all.
      ...(hasToken || !certificateIsOfTool(certificate) ? {} : { commonName: agent }),
      mend: `argocd-agentctl agent reconfigure ${agent} --reissue-client-cert`,
    },
    facts.now,
  );
  return [...findings, ...blockedFaults(facts, agent, certificate, where)];
}

/** Certificates of the controller have other subjects. */
function certificateIsOfTool(certificate: string): boolean {
  try {
    return !inspectCertificate(certificate).commonName.includes(':');
  } catch {
    return false; // its own finding
  }
}

/** Whether a certificate is on the hub's blocklist. */
export function blockedFaults(facts: Facts, agent: string, certificate: string, where: string): Diagnosis[] {
  const list = facts.configMaps.find(({ metadata }) => metadata.name === names.blocklist);
  const blocked = new Set(Object.keys(list?.data ?? {}).map((one) => one.replaceAll(':', '').toUpperCase()));
  try {
    const { fingerprint } = inspectCertificate(certificate);
    const what = `the certificate with the fingerprint ${fingerprint} is blocked`;
    const mend = `argocd-agentctl blocklist tls remove ${fingerprint}, or give the agent another certificate`;
    return blocked.has(fingerprint) ? [{ id: 'certificate-blocked', cluster: agent, what, where, mend }] : [];
  } catch {
    return []; // its own finding
  }
}

function versionFaults(facts: Facts, agent: string, record: ConnectionRecord | undefined): Diagnosis[] {
  const principal = facts.deployments.find(({ metadata }) => /principal/.test(metadata.name));
  const version = principal === undefined ? '' : versionOf(principal);
  const numbers = (text: string) => /(\d+)\.(\d+)\.\d+/.exec(text)?.slice(1, 3).join('.');
  const [own, other] = [numbers(version), numbers(record?.version ?? '')];
  if (record?.isConnected !== true || own === undefined || other === undefined || own === other) {
    return [];
  }
  const what = `the agent has version ${record.version}, the principal ${version}`;
  return [
    {
      id: 'version-skew',
      cluster: agent,
      what,
      where: `Lease ${facts.namespace}/argocd-agent-${agent}`,
      mend: 'upgrade the older one',
    },
  ];
}

/** The tag of a program's image. An image with a digest has none that counts: then what the chart says of its version. */
function versionOf({ metadata, spec }: Deployment): string {
  const image = spec?.template?.spec?.containers[0]?.image ?? '';
  return image.includes('@') ? (metadata.labels?.['app.kubernetes.io/version'] ?? '') : image.replace(/^.*:/, '');
}

function connectionFaults(facts: Facts, agent: string, record: ConnectionRecord | undefined): Diagnosis[] {
  const where = `Lease ${facts.namespace}/argocd-agent-${agent}`;
  const mend = `argocd-agentctl doctor ${agent} --agent-context CONTEXT; on the cluster: kubectl --namespace argocd logs deploy/argocd-agent-agent`;
  const principal = facts.deployments.find(({ metadata }) => /principal/.test(metadata.name));
  // argocd-agent's own principal records no connections.
  const isSilent = record === undefined && isOriginalImage(principal?.spec?.template?.spec?.containers[0]?.image ?? '');
  if (facts.unknown.has('leases') || record?.isConnected === true || isSilent) {
    return [];
  }
  if (record === undefined) {
    return [{ id: 'never-connected', cluster: agent, what: 'the agent has never connected', where, mend }];
  }
  const seen = record.lastSeen === undefined ? '' : ` since ${record.lastSeen}`;
  return [{ id: 'disconnected', cluster: agent, what: `the agent is not connected${seen}`, where, mend }];
}
