import { hostPort, splitHostPort } from '../../lib/base/index.ts';
import { decodeSecret, FatalError } from '../../lib/ops/index.ts';
import type { Ctl } from '../ctl-command.ts';
import { agentCertificate, agentFaults, principalAddressOf } from './agent-checks.ts';
import { withApplications } from './applications.ts';
import { changeFaults } from './changes.ts';
import { agentsOf, clusterFaults, clusterSecretFaults } from './cluster-checks.ts';
import { agentRights, type Facts, principalRights, readFacts } from './facts.ts';
import { type Diagnosis, inOrder } from './finding.ts';
import { authoritiesOf, hubFaults } from './hub-checks.ts';
import { networkFaults } from './network.ts';
import { deliveredRepositoryFaults, repositoryFaults } from './repositories.ts';
import { type RoundTrip, tryRoundTrip } from './round-trip.ts';

/** What to look at. */
export interface Examination {
  /** One cluster; empty for all that the hub knows. */
  readonly cluster: string;
  /** `host:port` of the principal; empty for what the agent or the Service says. */
  readonly address: string;
}

/** What was found. */
export interface ExaminationResult {
  /** All that is wrong, the cause first. */
  readonly findings: readonly Diagnosis[];
  /** In words: a hub without findings is only well as far as somebody looked. */
  readonly lookedAt: readonly string[];
  /** What was left out, in words, with what it takes to look at it. */
  readonly notLookedAt: readonly string[];
  /** To the cluster that was named, when the hub answers. */
  readonly roundTrip?: RoundTrip;
}

/** Looks at a hub, and at a cluster. @throws FatalError when the flags contradict each other */
export async function examine(ctl: Ctl, { cluster, address }: Examination): Promise<ExaminationResult> {
  const hasAgentSide = ctl.targets.agent.context !== '';
  if (hasAgentSide && cluster === '') {
    throw new FatalError('--agent-context is the cluster of one agent: name it, as in argocd-agentctl doctor CLUSTER');
  }
  const given = address === '' ? undefined : splitHostPort(address);
  if (address !== '' && given === undefined) {
    throw new FatalError(`--principal-address ${JSON.stringify(address)} is not host:port`);
  }
  const [hubFacts, agentFacts] = await Promise.all([
    readFacts(
      ctl.principal(),
      { deployment: /^argocd-agent-principal|-principal$/, rights: principalRights, isHub: true },
      ctl.signal,
    ),
    hasAgentSide
      ? readFacts(
          ctl.agent(),
          { deployment: /agent-agent$|^argocd-agent$/, rights: agentRights, isHub: false },
          ctl.signal,
        )
      : undefined,
  ]);
  const { hub, agent } =
    agentFacts === undefined
      ? { hub: hubFacts, agent: undefined }
      : await withApplications(
          { hub: hubFacts, agent: agentFacts, cluster },
          { hub: ctl.principal(), agent: ctl.agent() },
          ctl.signal,
        );
  const findings = judge(hub, agent, cluster);
  const endpoint = given ?? (agent === undefined ? undefined : principalAddressOf(agent)) ?? loadBalancerOf(hub);
  const extent = extentOf(hub, agent, cluster, endpoint);
  if (hub.unreachable !== undefined) {
    return { findings: inOrder(findings), ...extent };
  }
  const tried = cluster === '' ? undefined : tryRoundTrip(ctl.principal(), hub, cluster, ctl.signal);
  if (endpoint !== undefined) {
    const secret = agent === undefined ? undefined : agentCertificate(agent);
    const fields = secret === undefined ? {} : decodeSecret(secret);
    const { 'tls.crt': certificate = '', 'tls.key': key = '' } = fields;
    // A pair that does not fit ends the handshake here, and has its own finding.
    const isUsable = !findings.some(({ id }) => id === 'agent-certificate-invalid');
    const own = isUsable ? { certificate, key } : { certificate: '', key: '' };
    findings.push(
      ...(await networkFaults({ ...endpoint, ...own, authorities: authoritiesOf(hub), cluster }, ctl.signal)),
    );
  }
  const { roundTrip, findings: failed = [] } = (await tried) ?? {};
  return { findings: inOrder([...findings, ...failed]), ...extent, ...(roundTrip === undefined ? {} : { roundTrip }) };
}

/** What an examination looks at and what not. */
function extentOf(
  hub: Facts,
  agent: Facts | undefined,
  cluster: string,
  endpoint: { readonly host: string; readonly port: number } | undefined,
): Pick<ExaminationResult, 'lookedAt' | 'notLookedAt'> {
  const count = agentsOf(hub).length;
  const agents = cluster === '' ? `${count} agent${count === 1 ? '' : 's'} as the hub knows them` : `agent ${cluster}`;
  const lookedAt = ['the hub', agents];
  const notLookedAt = [];
  if (agent === undefined) {
    notLookedAt.push(`the cluster itself (doctor ${cluster || 'CLUSTER'} --agent-context CONTEXT)`);
  } else {
    lookedAt.push('its cluster');
  }
  if (endpoint === undefined) {
    notLookedAt.push('the network from here to the principal (--principal-address HOST:PORT)');
  } else {
    lookedAt.push(`the network from here to ${hostPort(endpoint.host, endpoint.port)}`);
  }
  return { lookedAt, notLookedAt };
}

/** What the facts of hub and cluster say. */
export function judge(hub: Facts, agent: Facts | undefined, cluster: string): Diagnosis[] {
  const findings = hubFaults(hub);
  if (hub.unreachable === undefined) {
    const all = clusterSecretFaults(hub);
    findings.push(...(cluster === '' ? all : all.filter((one) => one.cluster === cluster)));
    for (const one of cluster === '' ? agentsOf(hub) : [cluster]) {
      findings.push(...clusterFaults(hub, one));
    }
    findings.push(...repositoryFaults(hub, cluster));
  }
  if (agent === undefined) {
    return findings;
  }
  findings.push(...agentFaults(agent, hub, cluster));
  if (hub.unreachable === undefined && agent.unreachable === undefined) {
    findings.push(...deliveredRepositoryFaults(agent, hub, cluster), ...changeFaults(agent, hub, cluster));
  }
  return findings;
}

function loadBalancerOf(hub: Facts): { readonly host: string; readonly port: number } | undefined {
  for (const { spec, status } of hub.services) {
    const port = spec?.ports?.find(({ name }) => name === 'https')?.port;
    const [ingress] = status?.loadBalancer?.ingress ?? [];
    const host = ingress?.hostname ?? ingress?.ip;
    if (
      port !== undefined &&
      host !== undefined &&
      /principal/.test(spec?.selector?.['app.kubernetes.io/name'] ?? '')
    ) {
      return { host, port };
    }
  }
  return undefined;
}
