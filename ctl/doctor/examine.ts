import { splitHostPort } from '../../lib/base/index.ts';
import { decodeSecret, FatalError } from '../../lib/ops/index.ts';
import type { Ctl } from '../ctl-command.ts';
import { agentCertificate, agentFaults, principalAddressOf } from './agent-checks.ts';
import { agentsOf, clusterFaults, clusterSecretFaults } from './cluster-checks.ts';
import { agentRights, type Facts, principalRights, readFacts } from './facts.ts';
import { type Diagnosis, inOrder } from './finding.ts';
import { authoritiesOf, hubFaults } from './hub-checks.ts';
import { networkFaults } from './network.ts';

/** What to look at. */
export interface Examination {
  /** One cluster; empty for all that the hub knows. */
  readonly cluster: string;
  /** `host:port` of the principal; empty for what the agent or the Service says. */
  readonly address: string;
}

/** All that is wrong, the cause first. @throws FatalError when the flags contradict each other */
export async function examine(ctl: Ctl, { cluster, address }: Examination): Promise<Diagnosis[]> {
  const hasAgentSide = ctl.targets.agent.context !== '';
  if (hasAgentSide && cluster === '') {
    throw new FatalError('--agent-context is the cluster of one agent: name it, as in argocd-agentctl doctor CLUSTER');
  }
  const given = address === '' ? undefined : splitHostPort(address);
  if (address !== '' && given === undefined) {
    throw new FatalError(`--principal-address ${JSON.stringify(address)} is not host:port`);
  }
  const [hub, agent] = await Promise.all([
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
  const findings = judge(hub, agent, cluster);
  const endpoint = given ?? (agent === undefined ? undefined : principalAddressOf(agent)) ?? loadBalancerOf(hub);
  if (endpoint !== undefined && hub.unreachable === undefined) {
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
  return inOrder(findings);
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
  }
  return [...findings, ...(agent === undefined ? [] : agentFaults(agent, hub, cluster))];
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
