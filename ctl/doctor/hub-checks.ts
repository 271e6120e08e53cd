import { createPrivateKey } from 'node:crypto';
import type { Deployment, EndpointSlice, Secret, Service } from '../../lib/kube/index.ts';
import { decodeSecret } from '../../lib/ops/index.ts';
import { authoritiesOfSecret, inspectCertificate } from '../../lib/pki/index.ts';
import { names } from '../authority.ts';
import { firstProblem } from '../fleet/fleet.ts';
import { tlsSecretFaults } from './certificates.ts';
import type { Facts } from './facts.ts';
import type { Diagnosis } from './finding.ts';

/** A clock that is wrong by more makes new certificates invalid. */
const mostSkewMs = 60_000;

/** The Secret of a name. */
export const secretNamed = (facts: Facts, name: string): Secret | undefined =>
  facts.secrets.find(({ metadata }) => metadata.name === name);

/** The principal's settings; empty when there is no ConfigMap. */
export function paramsOf(facts: Facts): Readonly<Record<string, string>> {
  const found = facts.configMaps.find(({ data = {}, metadata }) =>
    metadata.name === 'argocd-agent-params' ? true : Object.keys(data).some((key) => /^(principal|agent)\./.test(key)),
  );
  return found?.data ?? {};
}

/** Certificates of the hub's authorities, PEM; empty when they cannot be read. */
export function authoritiesOf(facts: Facts): string {
  // The controller's bundle has former authorities, too.
  return ['argocd-agent-ca-trust', names.authority]
    .map((name) => {
      try {
        return authoritiesOfSecret(secretNamed(facts, name)?.data, 'principal');
      } catch {
        return ''; // authorityFaults says so
      }
    })
    .join('');
}

/** What is wrong with a hub as a whole. */
export function hubFaults(facts: Facts): Diagnosis[] {
  const { namespace } = facts;
  const finding = (id: string, what: string, where: string, mend: string): Diagnosis => ({
    id,
    cluster: '',
    what,
    where,
    mend,
  });
  if (facts.unreachable !== undefined) {
    const what = `the API server of the hub cannot be asked: ${facts.unreachable}`;
    return [finding('hub-unreachable', what, facts.server, 'kubectl config view --minify; kubectl get --raw /version')];
  }
  const findings: Diagnosis[] = [];
  if (facts.skewMs !== undefined && Math.abs(facts.skewMs) > mostSkewMs) {
    const seconds = Math.round(facts.skewMs / 1_000);
    const what = `the clock of the hub's API server is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} this machine's`;
    findings.push(finding('clock-skew', what, facts.server, 'timedatectl status, on both machines'));
  }
  findings.push(...unknownFaults(facts, ''));
  if (!facts.unknown.has('namespaces') && !facts.namespaces.some(({ metadata }) => metadata.name === namespace)) {
    const mend = `kubectl create namespace ${namespace}, or give --principal-namespace`;
    findings.push(
      finding('namespace-missing', 'the namespace of the principal does not exist', `Namespace ${namespace}`, mend),
    );
    return findings;
  }
  if (!facts.unknown.has('secrets')) {
    findings.push(...secretFaults(facts));
  }
  for (const { account, verb, resource } of facts.missingRights) {
    const where = `ServiceAccount ${namespace}/${account}`;
    const mend = `kubectl auth can-i ${verb} ${resource} --as system:serviceaccount:${namespace}:${account} --namespace ${namespace}; helm upgrade installs the rights`;
    findings.push(finding('principal-right-missing', `the principal may not ${verb} ${resource}`, where, mend));
  }
  findings.push(...workloadFaults(facts));
  for (const fleet of facts.fleets) {
    const problem = firstProblem(fleet.status?.conditions);
    if (problem !== '') {
      const { name, namespace: place } = fleet.metadata;
      const mend = `kubectl --namespace ${place} describe gitopscluster ${name}`;
      findings.push(finding('fleet-condition', problem, `GitOpsCluster ${place}/${name}`, mend));
    }
  }
  return findings;
}

/** Kinds of a side that could not be listed: nothing that they would tell is known, so nothing is said of them. */
export function unknownFaults({ unknown, namespace, context }: Facts, cluster: string): Diagnosis[] {
  const kubectl = `kubectl${context === '' ? '' : ` --context ${context}`} --namespace ${namespace}`;
  const where = `namespace ${namespace}`;
  return [...unknown].map(([plural, why]) =>
    why === 'refused'
      ? {
          id: 'missing-right',
          cluster,
          what: `you may not list ${plural}: what they would tell is not known`,
          where,
          mend: `${kubectl} auth can-i list ${plural}`,
        }
      : {
          id: 'no-answer',
          cluster,
          what: `the API server did not list ${plural} in time: what they would tell is not known`,
          where,
          mend: `again, when it has less to do; ${kubectl} get ${plural}`,
        },
  );
}

function secretFaults(facts: Facts): Diagnosis[] {
  const { namespace, now } = facts;
  const at = (name: string) => `Secret ${namespace}/${name}`;
  const base = { cluster: '', authorities: authoritiesOf(facts) };
  const renew = (command: string) =>
    `argocd-agent pki --namespace ${namespace} renews what it made; argocd-agentctl pki issue ${command} --upsert`;
  const principal = tlsSecretFaults(
    secretNamed(facts, names.principalTls),
    {
      ...base,
      id: 'principal-certificate',
      what: "the principal's certificate",
      where: at(names.principalTls),
      mend: renew('principal --dns HOST'),
    },
    now,
  );
  const proxy = tlsSecretFaults(
    secretNamed(facts, names.resourceProxyTls),
    {
      ...base,
      id: 'proxy-certificate',
      what: "the resource proxy's certificate",
      where: at(names.resourceProxyTls),
      mend: renew('resource-proxy --dns argocd-agent-resource-proxy'),
    },
    now,
  );
  return [...authorityFaults(facts), ...principal, ...proxy, ...tokenKeyFaults(facts)];
}

function authorityFaults(facts: Facts): Diagnosis[] {
  const where = `Secret ${facts.namespace}/${names.authority}`;
  const mend = `argocd-agentctl pki init, or argocd-agent pki --namespace ${facts.namespace}`;
  const fault = (id: string, what: string): Diagnosis[] => [{ id, cluster: '', what, where, mend }];
  const secret = secretNamed(facts, names.authority);
  if (secret === undefined) {
    return fault('authority-missing', 'the certificate authority of the hub does not exist');
  }
  try {
    const info = inspectCertificate(authoritiesOfSecret(secret.data, 'principal', where));
    if (!info.isAuthority) {
      return fault('authority-invalid', 'tls.crt is not the certificate of an authority');
    }
    return info.notAfter < facts.now
      ? fault('authority-expired', `the certificate authority of the hub expired at ${info.notAfter.toISOString()}`)
      : [];
  } catch (error) {
    return fault(
      'authority-invalid',
      `the certificate authority of the hub cannot be read: ${(error as Error).message}`,
    );
  }
}

function tokenKeyFaults(facts: Facts): Diagnosis[] {
  const where = `Secret ${facts.namespace}/${names.jwt}`;
  const fault = (id: string, what: string): Diagnosis[] => [
    { id, cluster: '', what, where, mend: 'argocd-agentctl jwt create-key --upsert' },
  ];
  const secret = secretNamed(facts, names.jwt);
  const pem = secret === undefined ? '' : (decodeSecret(secret)['jwt.key'] ?? '');
  if (pem === '') {
    return fault('jwt-key-missing', 'the key that signs the tokens of agents does not exist');
  }
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa'
      ? []
      : fault('jwt-key-invalid', 'the key that signs the tokens of agents is not RSA');
  } catch (error) {
    return fault(
      'jwt-key-invalid',
      `the key that signs the tokens of agents cannot be read: ${(error as Error).message}`,
    );
  }
}

function workloadFaults(facts: Facts): Diagnosis[] {
  const { namespace } = facts;
  const findings: Diagnosis[] = [];
  const principal =
    facts.services.find(
      ({ metadata, spec }) =>
        metadata.labels?.['app.kubernetes.io/name'] === 'argocd-agent-principal' &&
        spec?.ports?.some(({ name }) => name === 'https'),
    ) ?? facts.services.find(({ metadata }) => metadata.name === 'argocd-agent-principal');
  if (principal !== undefined && !hasEndpoints(facts, principal)) {
    findings.push({
      id: 'principal-not-ready',
      cluster: '',
      what: 'no pod of the principal is ready, so no agent can connect',
      where: `Service ${namespace}/${principal.metadata.name}`,
      mend: `kubectl --namespace ${namespace} get pods; kubectl --namespace ${namespace} logs deploy/argocd-agent-principal`,
    });
  }
  return [
    ...findings,
    ...redisFaults(facts, { prefix: 'redis', cluster: '', effect: "Argo CD's UI shows no clusters" }),
  ];
}

/** What is wrong with the Redis of a side. It is looked for only where Argo CD is. */
export function redisFaults(
  facts: Facts,
  { prefix, cluster, effect }: { readonly prefix: string; readonly cluster: string; readonly effect: string },
): Diagnosis[] {
  const { namespace } = facts;
  const redis = facts.services.find(({ metadata }) => /^argocd-redis(-ha-haproxy)?$/.test(metadata.name));
  const address = paramsOf(facts)['principal.redis.server.address'] ?? '';
  const isElsewhere = address !== '' && !address.startsWith('argocd-redis');
  if (facts.unknown.has('services') || isElsewhere || !hasArgoCd(facts.deployments)) {
    return [];
  }
  const mend = `kubectl --namespace ${namespace} get pods,services -l app.kubernetes.io/part-of=argocd`;
  if (redis === undefined) {
    const what = `there is no Service of Redis: ${effect}`;
    return [{ id: `${prefix}-missing`, cluster, what, where: `Service ${namespace}/argocd-redis`, mend }];
  }
  if (!hasEndpoints(facts, redis)) {
    const what = `no pod of Redis is ready: ${effect}`;
    return [{ id: `${prefix}-not-ready`, cluster, what, where: `Service ${namespace}/${redis.metadata.name}`, mend }];
  }
  return [];
}

const hasArgoCd = (all: readonly Deployment[]) =>
  all.some(({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'argocd');

function hasEndpoints({ endpointSlices: slices, unknown }: Facts, { metadata }: Service): boolean {
  const own = (slice: EndpointSlice) => slice.metadata.labels?.['kubernetes.io/service-name'] === metadata.name;
  return (
    unknown.has('endpointslices') ||
    slices.some((slice) => own(slice) && slice.endpoints?.some(({ conditions }) => conditions?.ready !== false))
  );
}
