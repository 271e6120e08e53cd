import { annotations, clusterUrl, routingUrl } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { type ConnectionRecord, connectionRecord, identityIn } from '../../lib/clusters/index.ts';
import { type Condition, keyOf, type Lease, type Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { inspectCertificate } from '../../lib/pki/index.ts';
import type { ShownApplication } from '../../lib/way/index.ts';
import { names } from '../authority.ts';
import type { Conditioned } from '../kinds.ts';

/** The objects of a hub from which the state of the fleet is told. */
export interface FleetObjects {
  readonly secrets: readonly Secret[];
  readonly leases: readonly Lease[];
  readonly fleets: readonly Conditioned[];
  readonly addOns: readonly Conditioned[];
  readonly applications: readonly ShownApplication[];
}

/** One cluster of the fleet. */
export type ClusterState = {
  readonly cluster: string;
  readonly state: 'connected' | 'disconnected' | 'never connected';
  readonly mode: string;
  readonly version: string;
  /** RFC 3339: connected since, or last seen; empty for never. */
  readonly since: string;
  readonly applications: number;
  readonly outOfSync: number;
  readonly unhealthy: number;
  readonly failing: number;
  /** RFC 3339: end of the certificate by which Argo CD reaches the cluster; empty when there is none. */
  readonly certificateExpires: string;
  readonly holder: string;
  readonly server: string;
  /** What is wrong first; empty when nothing is. */
  readonly problem: string;
};

/** A fleet at one moment. */
export type FleetState = {
  readonly clusters: readonly ClusterState[];
  readonly fleets: readonly { readonly name: string; readonly ready: string; readonly problem: string }[];
  readonly certificates: readonly { readonly secret: string; readonly expires: string }[];
};

/** The state of a fleet. */
export function fleetOf(objects: FleetObjects): FleetState {
  const records = new Map<string, ConnectionRecord>();
  for (const lease of objects.leases) {
    const record = connectionRecord(lease);
    if (record !== undefined) {
      records.set(record.agent, record);
    }
  }
  const secrets = new Map<string, Secret>();
  for (const secret of objects.secrets) {
    const agent = secret.metadata.labels?.[wellKnown.agentNameLabel];
    if (agent !== undefined && secret.metadata.labels?.[wellKnown.secretTypeLabel] === 'cluster') {
      secrets.set(agent, secret);
    }
  }
  const agents = hubAgents(objects.secrets);
  const byAgent = Map.groupBy(objects.applications, (application) => agentOf(application, agents));
  const addOns = new Map(objects.addOns.map((addOn) => [addOn.metadata.namespace ?? '', addOn]));
  const clusters = [...secrets]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([agent, secret]) =>
      clusterState(agent, secret, records.get(agent), byAgent.get(agent) ?? [], addOns.get(agent)),
    );
  const fleets = objects.fleets.map((fleet) => ({
    name: keyOf(fleet),
    ready: fleet.status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'Unknown',
    problem: firstProblem(fleet.status?.conditions),
  }));
  const certificates = [names.authority, names.principalTls, names.resourceProxyTls].flatMap((name) => {
    const secret = objects.secrets.find(({ metadata }) => metadata.name === name);
    const expires = secret === undefined ? '' : expiryOf(decodeSecret(secret)['tls.crt'] ?? '');
    return secret === undefined ? [] : [{ secret: name, expires }];
  });
  return { clusters, fleets, certificates };
}

/** What cluster Secrets tell of agents. */
export interface HubAgents {
  readonly has: (agent: string) => boolean;
  /** The agent whose cluster alone has this URL. */
  readonly agentOfUrl: (url: string) => string | undefined;
}

/** The agents of a hub. @param all among them all its cluster Secrets */
export function hubAgents(all: readonly Secret[]): HubAgents {
  const clusters = all.filter(({ metadata }) => metadata.labels?.[wellKnown.secretTypeLabel] === 'cluster');
  const agentIn = ({ metadata }: Secret) => metadata.labels?.[wellKnown.agentNameLabel] ?? '';
  const names = new Set(clusters.map(agentIn).filter((name) => name !== ''));
  const byUrl = Map.groupBy(clusters, (secret) => clusterUrl(decodeSecret(secret).server ?? ''));
  return {
    has: (agent) => names.has(agent),
    agentOfUrl: (url) => {
      const [secret, other] = byUrl.get(url) ?? [];
      return secret === undefined || other !== undefined ? undefined : agentIn(secret) || undefined;
    },
  };
}

/** The agent of a hub Application: of a mirror, by its namespace, or by its destination's name or URL. */
export function agentOf(application: ShownApplication, agents: HubAgents): string | undefined {
  const { metadata, spec } = application;
  const candidates = [metadata.annotations?.[annotations.mirrorOf], metadata.namespace, spec?.destination?.name];
  const url = routingUrl(application);
  return (
    candidates.find((name) => name !== undefined && agents.has(name)) ??
    (url === undefined ? undefined : agents.agentOfUrl(url))
  );
}

function clusterState(
  agent: string,
  secret: Secret,
  record: ConnectionRecord | undefined,
  applications: readonly ShownApplication[],
  addOn: Conditioned | undefined,
): ClusterState {
  const count = (test: (application: ShownApplication) => boolean) => applications.filter(test).length;
  const failed = ({ status }: ShownApplication) => ['Failed', 'Error'].includes(status?.operationState?.phase ?? '');
  const state = record === undefined ? 'never connected' : record.isConnected ? 'connected' : 'disconnected';
  const certificateExpires = expiryOf(identityIn(secret).certificate);
  const isExpired = certificateExpires !== '' && Date.parse(certificateExpires) < Date.now();
  const own = isExpired ? 'certificate expired' : state === 'connected' ? '' : state;
  return {
    cluster: agent,
    state,
    mode: record?.mode || (secret.metadata.annotations?.[wellKnown.agentModeAnnotation] ?? ''),
    version: record?.version ?? '',
    since: withoutFraction(record?.since ?? record?.lastSeen ?? ''),
    applications: applications.length,
    outOfSync: count(({ status }) => status?.sync?.status !== 'Synced'),
    unhealthy: count(({ status }) => !['Healthy', 'Suspended'].includes(status?.health?.status ?? '')),
    failing: count(failed),
    certificateExpires,
    holder: record?.holder ?? '',
    server: decodeSecret(secret).server ?? '',
    problem: isExpired ? own : firstProblem(addOn?.status?.conditions) || own,
  };
}

/** The condition that says first what is wrong; empty without one. */
export function firstProblem(conditions: readonly Condition[] | undefined): string {
  const bad = (conditions ?? []).filter(({ type, status }) =>
    ['Progressing', 'Degraded', 'HubArgoCDProgressing'].includes(type) ? false : status === 'False',
  );
  // Ready and Available repeat what another condition says better.
  const [first] = bad.sort((a, b) => Number(isSummary(a)) - Number(isSummary(b)));
  return first === undefined ? '' : `${first.type}: ${first.message}`;
}

const isSummary = ({ type }: Condition) => ['Ready', 'Available'].includes(type);

function expiryOf(pem: string): string {
  try {
    return withoutFraction(inspectCertificate(pem).notAfter.toISOString());
  } catch {
    return ''; // not a certificate: doctor says so
  }
}

/** A time of Kubernetes without fractions of a second. */
function withoutFraction(time: string): string {
  return time.replace(/\.\d+Z$/, 'Z');
}
