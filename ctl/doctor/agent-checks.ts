import { wellKnown } from '../../lib/base/index.ts';
import type { Secret } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { authoritiesOfSecret, fingerprintsOf } from '../../lib/pki/index.ts';
import { names } from '../authority.ts';
import { tlsSecretFaults } from './certificates.ts';
import { blockedFaults } from './cluster-checks.ts';
import type { Facts } from './facts.ts';
import { type Diagnosis, findingsAbout } from './finding.ts';
import { authoritiesOf, paramsOf, redisFaults, secretNamed, unknownFaults } from './hub-checks.ts';

const mostSkewMs = 60_000;
/** Names of the agent's certificate, by who makes it: this tool or `enroll`, the controller, OCM's registration agent. */
const clientSecrets = [
  names.clientTls,
  'argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert',
  'argocd-agent-addon-open-cluster-management.io-argocd-agent-addon-client-cert',
];

/** The agent's Secret with its client certificate; undefined without one. */
export function agentCertificate(facts: Facts): Secret | undefined {
  return clientSecrets.map((name) => secretNamed(facts, name)).find((secret) => secret !== undefined);
}

/** Where the agent connects to, as its ConfigMap or Deployment says; undefined when neither does. */
export function principalAddressOf(facts: Facts): { readonly host: string; readonly port: number } | undefined {
  const params = paramsOf(facts);
  const container = agentDeployment(facts)?.spec?.template?.spec?.containers[0];
  const env = (name: string) => container?.env?.find((one) => one.name === name)?.value;
  const argument = (flag: string) =>
    container?.args?.find((one) => one.startsWith(`--${flag}=`))?.slice(flag.length + 3);
  const host = params['agent.server.address'] || env('ARGOCD_AGENT_REMOTE_SERVER') || argument('server-address');
  const port = params['agent.server.port'] || env('ARGOCD_AGENT_REMOTE_PORT') || argument('server-port') || '443';
  return host ? { host, port: Number(port) } : undefined;
}

const agentDeployment = (facts: Facts) =>
  facts.deployments.find(({ metadata }) => /agent-agent$|^argocd-agent$/.test(metadata.name));

/** What is wrong on the cluster of an agent. */
export function agentFaults(facts: Facts, hub: Facts, agent: string): Diagnosis[] {
  const { namespace } = facts;
  const finding = findingsAbout(agent);
  const kubectl = `kubectl --context ${facts.context} --namespace ${namespace}`;
  if (facts.unreachable !== undefined) {
    const what = `the API server of the cluster cannot be asked: ${facts.unreachable}`;
    return [
      finding('cluster-unreachable', what, facts.server, `kubectl --context ${facts.context} get --raw /version`),
    ];
  }
  const findings: Diagnosis[] = [];
  const skewMs = (facts.skewMs ?? 0) - (hub.skewMs ?? 0);
  if (facts.skewMs !== undefined && Math.abs(skewMs) > mostSkewMs) {
    const what = `the cluster's clock is ${Math.round(Math.abs(skewMs) / 1_000)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the hub's`;
    findings.push(finding('cluster-clock-skew', what, facts.server, 'timedatectl status, on the nodes'));
  }
  findings.push(...unknownFaults(facts, agent));
  for (const { account, verb, resource } of facts.missingRights) {
    const mend = `${kubectl} auth can-i ${verb} ${resource} --as system:serviceaccount:${namespace}:${account}`;
    findings.push(
      finding(
        'agent-missing-right',
        `the agent may not ${verb} ${resource}`,
        `ServiceAccount ${namespace}/${account}`,
        mend,
      ),
    );
  }
  if (!facts.unknown.has('secrets')) {
    findings.push(...authorityFaults(facts, hub, finding), ...certificateFaultsOf(facts, hub, agent));
  }
  findings.push(...modeFaults(facts, hub, agent, finding));
  const deployment = agentDeployment(facts);
  const isWanted = deployment !== undefined && deployment.spec?.replicas !== 0;
  const isDown =
    deployment === undefined ? !facts.unknown.has('deployments') : isWanted && !deployment.status?.readyReplicas;
  if (isDown || (deployment !== undefined && !isWanted)) {
    const name = deployment?.metadata.name ?? 'argocd-agent-agent';
    const what =
      deployment === undefined
        ? 'there is no agent'
        : isWanted
          ? 'the pod of the agent is not ready'
          : 'the agent is scaled to 0';
    findings.push(
      finding(
        'agent-not-ready',
        what,
        `Deployment ${namespace}/${name}`,
        `${kubectl} logs deploy/${name}; ${kubectl} describe pods`,
      ),
    );
  }
  return [
    ...findings,
    ...redisFaults(facts, { prefix: 'agent-redis', cluster: agent, effect: 'Argo CD on the cluster does not work' }),
  ];
}

type MakeDiagnosis = (id: string, what: string, where: string, mend: string) => Diagnosis;

function authorityFaults(facts: Facts, hub: Facts, finding: MakeDiagnosis): Diagnosis[] {
  const where = `Secret ${facts.namespace}/${names.authority}`;
  const mend = `argocd-agentctl pki propagate --force --principal-context ${hub.context || 'HUB'} --agent-context ${facts.context}`;
  const secret = secretNamed(facts, names.authority);
  if (secret === undefined) {
    return [finding('agent-authority-missing', 'the agent has no authority to verify the principal with', where, mend)];
  }
  try {
    const own = new Set(fingerprintsOf(authoritiesOfSecret(secret.data, 'agent', where)));
    const wanted = authoritiesOf(hub);
    const isKnown = wanted === '' || fingerprintsOf(wanted).some((fingerprint) => own.has(fingerprint));
    const what = "the agent trusts another authority than the hub's, so it refuses the principal";
    return isKnown ? [] : [finding('agent-authority-wrong', what, where, mend)];
  } catch (error) {
    return [
      finding(
        'agent-authority-wrong',
        `the agent's authority cannot be read: ${(error as Error).message}`,
        where,
        mend,
      ),
    ];
  }
}

function certificateFaultsOf(facts: Facts, hub: Facts, agent: string): Diagnosis[] {
  const secret = agentCertificate(facts);
  const name = secret?.metadata.name ?? names.clientTls;
  const where = `Secret ${facts.namespace}/${name}`;
  const isOwn = name === names.clientTls;
  const base = {
    id: 'agent-certificate',
    cluster: agent,
    what: "the agent's client certificate",
    where,
    authorities: authoritiesOf(hub),
    mend: isOwn
      ? `argocd-agentctl pki issue agent ${agent} --upsert --principal-context ${hub.context || 'HUB'} --agent-context ${facts.context} --agent-namespace ${facts.namespace}`
      : `kubectl get csr, on the hub: one that waits must be approved; otherwise the log of OCM's registration agent on the cluster says why it is not renewed`,
  };
  const faults = tlsSecretFaults(secret, isOwn ? { ...base, commonName: agent } : base, hub.now);
  const certificate = secret === undefined ? '' : (decodeSecret(secret)['tls.crt'] ?? '');
  return [...faults, ...(certificate === '' ? [] : blockedFaults(hub, agent, certificate, where))];
}

function modeFaults(facts: Facts, hub: Facts, agent: string, finding: MakeDiagnosis): Diagnosis[] {
  const mode = paramsOf(facts)['agent.mode'];
  const secret = hub.secrets.find(({ metadata }) => metadata.labels?.[wellKnown.agentNameLabel] === agent);
  const lease = hub.leases.find(({ metadata }) => metadata.labels?.[wellKnown.agentNameLabel] === agent);
  const wanted =
    secret?.metadata.annotations?.[wellKnown.agentModeAnnotation] ??
    lease?.metadata.annotations?.[wellKnown.agentModeAnnotation];
  if (mode === undefined || wanted === undefined || mode === wanted) {
    return [];
  }
  const mend = `set agent.mode: ${wanted} there and restart the agent, or annotate the cluster Secret on the hub with ${wellKnown.agentModeAnnotation}=${mode}`;
  return [
    finding(
      'wrong-mode',
      `the agent runs in mode ${mode}; the hub takes it in mode ${wanted} only`,
      `ConfigMap ${facts.namespace}/argocd-agent-params`,
      mend,
    ),
  ];
}
