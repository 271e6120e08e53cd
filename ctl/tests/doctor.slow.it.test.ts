import { writeFile } from 'node:fs/promises';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { argoAppProjects } from '../../lib/bridge/index.ts';
import { clusterConfigIn } from '../../lib/clusters/index.ts';
import {
  clusterRoleBindings,
  configMaps,
  endpointSlices,
  events,
  leases,
  namespaces,
  roleBindings,
  type Secret,
  secrets,
  services,
} from '../../lib/kube/index.ts';
import { createAuthority, issueCertificate, type KeyCertificate, tlsSecretData } from '../../lib/pki/index.ts';
import { shownApplications } from '../../lib/way/index.ts';
import { type CtlLab, labAgentNamespace, startLab } from '../testing/lab.ts';
import { type RelayFault, startRelay } from '../testing/relay.ts';
import { runCtl } from '../testing/run-ctl.ts';

let cluster: SharedCluster;
let lab: CtlLab;
let other: KeyCertificate;
beforeAll(async () => {
  cluster = await borrowCluster({ name: 'doctor' });
  lab = await startLab(cluster);
  other = await createAuthority({ commonName: 'other' });
});
afterAll(async () => {
  await lab?.stop();
  await cluster?.stop();
});

const hub = (name: string) => ({ namespace: 'argocd', name });
const east = (name: string) => ({ namespace: labAgentNamespace, name });
const encode = (text: string) => Buffer.from(text).toString('base64');
const both = ['doctor', 'east', '--agent-context=east'];
const day = 24 * 3_600_000;

/** No kubelet runs the pod of the lab's principal. */
const notTaken = 'no pod of the principal is ready';
const toNetwork = 'the network from here to the principal (--principal-address HOST:PORT)';
const lookedAt = ['the hub', '1 agent as the hub knows them'];
const notLookedAt = ['the cluster itself (doctor CLUSTER --agent-context CONTEXT)', toNetwork];

test('a healthy hub, and a healthy cluster: nothing, in less than 5 s', async () => {
  const began = performance.now();
  const said = `Nothing found. Looked at: ${lookedAt.join(', ')}.\nNot looked at: ${notLookedAt.join(', ')}.\n`;
  expect(await lab.ctl('doctor')).toEqual({ code: 0, out: '', err: said });
  await expectHealthy();
  expect(JSON.parse((await lab.ctl('doctor', '-o', 'json')).out)).toEqual({ findings: [], lookedAt, notLookedAt });
  // Three runs; a busy machine has its part in it.
  expect(performance.now() - began).toBeLessThan(15_000);
});

async function expectHealthy() {
  const { code, out, err } = await lab.ctl(...both);
  expect([code, out]).toEqual([0, '']);
  expect(err).toMatch(/^Nothing found\. Looked at: the hub, agent east, its cluster/);
  expect(err).toContain(`east: no request went to the cluster and back: ${notTaken}\n`);
}

/** A certificate of the lab's authority. */
async function certificate(
  authority: 'own' | 'other',
  commonName: string,
  usage: 'server' | 'client',
  options: { lifetimeMs?: number; now?: Date } = {},
): Promise<KeyCertificate> {
  const { data = {} } = (await cluster.client.get(secrets, hub('argocd-agent-ca'))) as Secret;
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
  const own = { certificate: text('tls.crt'), key: text('tls.key') };
  return issueCertificate({
    commonName,
    usages: [usage],
    hosts: usage === 'server' ? ['localhost'] : [],
    authority: authority === 'own' ? own : other,
    algorithm: 'p256',
    ...options,
  });
}

const expired = { now: new Date(Date.now() - 2 * day), lifetimeMs: day };

/** Puts a key pair into a TLS Secret. */
const withPair = (pair: KeyCertificate) => (secret: Secret) => {
  secret.data = { ...secret.data, ...tlsSecretData(pair) };
};

/** Puts a client certificate into a cluster Secret. */
const withClient = (pair: KeyCertificate) => (secret: Secret) => {
  const config = structuredClone(clusterConfigIn(secret)) as { tlsClientConfig: Record<string, unknown> };
  Object.assign(config.tlsClientConfig, { certData: encode(pair.certificate), keyData: encode(pair.key) });
  secret.data = { ...secret.data, config: encode(JSON.stringify(config)) };
};

/** Sets fields of a Secret. */
const withText = (fields: Readonly<Record<string, string>>) => (secret: Secret) => {
  const data = Object.entries(fields).map(([name, text]) => [name, encode(text)]);
  secret.data = { ...secret.data, ...Object.fromEntries(data) };
};

/** Removes a field of a Secret. */
const without = (field: string) => (secret: Secret) => {
  delete secret.data?.[field];
};

const alter: CtlLab['alter'] = (...args) => lab.alter(...args);
type Undo = () => Promise<void>;

/** Sends the agent to a server with another certificate, which is for localhost. */
async function serve({ certificate: cert, key }: KeyCertificate): Promise<Undo> {
  const server = createSecureServer({ cert, key });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const undo = await alter(configMaps, east('argocd-agent-params'), (map) =>
    Object.assign(map.data ?? {}, { 'agent.server.port': String(port) }),
  );
  return async () => {
    await undo();
    await new Promise((resolve) => server.close(resolve));
  };
}

const quotaEvent = 'east.quota';

/** As a principal says that it has refused a write. */
async function refuseWrite(): Promise<void> {
  const now = new Date().toISOString().replace('Z', '000Z');
  await cluster.client.create(events, {
    metadata: hub(quotaEvent),
    eventTime: now,
    reportingController: 'argocd-agent/principal',
    reportingInstance: 'principal-0',
    action: 'Reconcile',
    reason: 'AgentQuotaExceeded',
    note: 'agent east would have 5,001 objects on the hub, and may have 5,000',
    type: 'Warning',
    regarding: { kind: 'Secret', apiVersion: 'v1', namespace: 'argocd', name: 'cluster-east' },
  });
}

/** Faults, each with the first finding. They are put in one at a time. */
const faults: readonly (readonly [
  what: string,
  first: string,
  putIn: () => Promise<Undo>,
  args?: readonly string[],
])[] = [
  ['no authority', 'authority-missing', () => alter(secrets, hub('argocd-agent-ca'), 'delete')],
  [
    'an authority that cannot be read',
    'authority-invalid',
    () =>
      alter(secrets, hub('argocd-agent-ca'), (secret) => Object.assign(secret.data ?? {}, { 'tls.crt': encode('x') })),
  ],
  [
    "the principal's certificate expired",
    'principal-certificate-expired',
    async () =>
      alter(secrets, hub('argocd-agent-principal-tls'), withPair(await certificate('own', 'p', 'server', expired))),
  ],
  [
    "the principal's certificate of another authority",
    'principal-certificate-wrong-authority',
    async () => alter(secrets, hub('argocd-agent-principal-tls'), withPair(await certificate('other', 'p', 'server'))),
  ],
  [
    "the principal's certificate missing",
    'principal-certificate-missing',
    () => alter(secrets, hub('argocd-agent-principal-tls'), 'delete'),
  ],
  [
    "the resource proxy's certificate expired",
    'proxy-certificate-expired',
    async () =>
      alter(
        secrets,
        hub('argocd-agent-resource-proxy-tls'),
        withPair(await certificate('own', 'p', 'server', expired)),
      ),
  ],
  ['no key for tokens', 'jwt-key-missing', () => alter(secrets, hub('argocd-agent-jwt'), 'delete')],
  [
    'a key for tokens that is none',
    'jwt-key-invalid',
    () =>
      alter(secrets, hub('argocd-agent-jwt'), (secret) => Object.assign(secret.data ?? {}, { 'jwt.key': encode('x') })),
  ],
  [
    'a right of the principal missing',
    'principal-right-missing',
    () => alter(roleBindings, hub('argocd-agent-principal'), 'delete'),
  ],
  [
    'a right of the principal in all namespaces missing',
    'principal-right-missing',
    () => alter(clusterRoleBindings, { name: 'argocd-agent-principal' }, 'delete'),
  ],
  [
    'a principal without endpoints',
    'principal-not-ready',
    () => alter(endpointSlices, hub('argocd-agent-principal-1'), (slice) => Object.assign(slice, { endpoints: [] })),
  ],
  ['Redis gone', 'redis-missing', () => alter(services, hub('argocd-redis'), 'delete')],
  ['Redis not ready', 'redis-not-ready', () => alter(endpointSlices, hub('argocd-redis-1'), 'delete')],
  [
    'a cluster Secret without the name of its agent',
    'cluster-secret-without-agent',
    () => alter(secrets, hub('cluster-east'), (secret) => delete secret.metadata.labels?.[wellKnown.agentNameLabel]),
  ],
  [
    'a cluster Secret with a wrong label',
    'cluster-secret-wrong-label',
    () =>
      alter(secrets, hub('cluster-east'), (secret) =>
        Object.assign(secret.metadata.labels ?? {}, { [wellKnown.secretTypeLabel]: 'repository' }),
      ),
  ],
  ['an agent that is not enrolled', 'cluster-not-enrolled', () => alter(secrets, hub('cluster-east'), 'delete'), both],
  [
    'an agent that two Secrets name',
    'agent-mapped-twice',
    async () => {
      const live = (await cluster.client.get(secrets, hub('cluster-east'))) as Secret;
      const { labels = {}, annotations = {} } = live.metadata;
      const metadata = { ...hub('cluster-east-2'), labels, annotations };
      await cluster.client.create(secrets, { metadata, data: live.data ?? {} });
      return () => cluster.client.delete(secrets, hub('cluster-east-2'));
    },
  ],
  [
    'a cluster name that two agents have',
    'cluster-name-twice',
    async () => {
      await cluster.client.create(namespaces, { metadata: { name: 'west' } }).catch(() => undefined);
      await lab.ctl('agent', 'create', 'west', '--key-algorithm=ecdsa-p256');
      const patch = { data: { name: encode('east') } };
      await cluster.client.mergePatch(secrets, hub('cluster-west'), patch);
      return () => cluster.client.delete(secrets, hub('cluster-west'));
    },
  ],
  [
    'a server without the name of the agent',
    'cluster-secret-wrong-server',
    () =>
      alter(secrets, hub('cluster-east'), (secret) =>
        Object.assign(secret.data ?? {}, { server: encode('https://x:1') }),
      ),
  ],
  [
    'a cluster that the hub deploys to itself',
    'cluster-secret-reconciled',
    () =>
      alter(
        secrets,
        hub('cluster-east'),
        (secret) => delete secret.metadata.annotations?.[wellKnown.skipReconcileAnnotation],
      ),
  ],
  [
    "Argo CD's certificate expired",
    'client-certificate-expired',
    async () => alter(secrets, hub('cluster-east'), withClient(await certificate('own', 'east', 'client', expired))),
  ],
  [
    "Argo CD's certificate of another authority",
    'client-certificate-wrong-authority',
    async () => alter(secrets, hub('cluster-east'), withClient(await certificate('other', 'east', 'client'))),
  ],
  [
    "Argo CD's certificate for another agent",
    'client-certificate-wrong-name',
    async () => alter(secrets, hub('cluster-east'), withClient(await certificate('own', 'west', 'client'))),
  ],
  [
    'a certificate that is blocked',
    'certificate-blocked',
    async () => {
      const { fingerprint } = JSON.parse((await lab.ctl('agent', 'inspect', 'east')).out);
      await lab.ctl('blocklist', 'tls', 'add', fingerprint);
      return async () => void (await lab.ctl('blocklist', 'tls', 'remove', fingerprint));
    },
  ],
  [
    'the namespace of the agent missing',
    'agent-namespace-missing',
    async () => {
      await lab.ctl('agent', 'create', 'north', '--key-algorithm=ecdsa-p256');
      return () => cluster.client.delete(secrets, hub('cluster-north'));
    },
  ],
  [
    'an agent that is not connected',
    'disconnected',
    () =>
      alter(leases, hub('argocd-agent-east'), (lease) =>
        Object.assign(lease.metadata.annotations ?? {}, { 'argocd-agent.argoproj-labs.io/connected': 'false' }),
      ),
  ],
  ['an agent that never connected', 'never-connected', () => alter(leases, hub('argocd-agent-east'), 'delete')],
  [
    'another version',
    'version-skew',
    () =>
      alter(leases, hub('argocd-agent-east'), (lease) =>
        Object.assign(lease.metadata.annotations ?? {}, {
          'argocd-agent.argoproj-labs.io/agent-version': 'argocd-agent-9.9.0',
        }),
      ),
  ],
  [
    'another mode than the hub wants',
    'wrong-mode',
    () =>
      alter(secrets, hub('cluster-east'), (secret) =>
        Object.assign(secret.metadata.annotations ?? {}, { [wellKnown.agentModeAnnotation]: 'autonomous' }),
      ),
  ],
  [
    'the agent configured for another mode',
    'wrong-mode',
    () =>
      alter(configMaps, east('argocd-agent-params'), (map) =>
        Object.assign(map.data ?? {}, { 'agent.mode': 'autonomous' }),
      ),
    both,
  ],
  [
    'an agent that has as much on the hub as it may',
    'quota',
    async () => {
      await refuseWrite();
      return () => cluster.client.delete(events, hub(quotaEvent));
    },
  ],
  [
    "no authority on the agent's side",
    'agent-authority-missing',
    () => alter(secrets, east('argocd-agent-ca'), 'delete'),
    both,
  ],
  [
    "another authority on the agent's side",
    'agent-authority-wrong',
    () =>
      alter(secrets, east('argocd-agent-ca'), (secret) =>
        Object.assign(secret, { data: { 'ca.crt': encode(other.certificate) } }),
      ),
    both,
  ],
  [
    "the agent's certificate expired",
    'agent-certificate-expired',
    async () =>
      alter(secrets, east('argocd-agent-client-tls'), withPair(await certificate('own', 'east', 'client', expired))),
    both,
  ],
  [
    "the agent's certificate for another agent",
    'agent-certificate-wrong-name',
    async () => alter(secrets, east('argocd-agent-client-tls'), withPair(await certificate('own', 'west', 'client'))),
    both,
  ],
  [
    "the agent's certificate missing",
    'agent-certificate-missing',
    () => alter(secrets, east('argocd-agent-client-tls'), 'delete'),
    both,
  ],
  [
    'an agent that is not ready',
    'agent-not-ready',
    async () => {
      await lab.agentPod(false);
      return () => lab.agentPod(true);
    },
    [...both, '--principal-address=ADDRESS'],
  ],
  [
    'Redis of the cluster not ready',
    'agent-redis-not-ready',
    () => alter(endpointSlices, east('argocd-redis-1'), 'delete'),
    both,
  ],
  [
    'a closed port',
    'port-closed',
    () =>
      alter(configMaps, east('argocd-agent-params'), (map) =>
        Object.assign(map.data ?? {}, { 'agent.server.port': '1' }),
      ),
    both,
  ],
  [
    'a name that nobody knows',
    'dns',
    () =>
      alter(configMaps, east('argocd-agent-params'), (map) =>
        Object.assign(map.data ?? {}, { 'agent.server.address': 'hub.invalid' }),
      ),
    both,
  ],
  [
    'an address that the certificate is not for',
    'server-certificate-wrong-host',
    async () => serve(await certificate('own', 'p', 'server')),
    both,
  ],
  [
    'a server with a certificate of somebody else',
    'server-certificate-wrong-authority',
    async () => serve(await certificate('other', 'p', 'server')),
    both,
  ],
  [
    'a server whose certificate expired',
    'server-certificate-expired',
    async () => serve(await certificate('own', 'p', 'server', expired)),
    both,
  ],
  [
    'a repository of a project that does not exist',
    'repository-project-missing',
    () => alter(argoAppProjects, hub('shop'), 'delete'),
  ],
  ['a repository without an address', 'repository-invalid', () => alter(secrets, hub('repo-shop'), without('url'))],
  [
    'a repository with an address that is none',
    'repository-invalid',
    () => alter(secrets, hub('repo-shop'), withText({ url: 'git.example.com/shop' })),
  ],
  [
    'a repository over SSH without a key',
    'repository-incomplete',
    () => alter(secrets, hub('repo-shop'), withText({ url: 'git@git.example.com:shop.git' })),
  ],
  [
    'a repository with a user and no password',
    'repository-incomplete',
    () => alter(secrets, hub('repo-shop'), without('password')),
  ],
  [
    'a repository that has not arrived',
    'repository-not-delivered',
    () => alter(secrets, east('repo-shop'), 'delete'),
    both,
  ],
  [
    'a repository with a password of yesterday on the cluster',
    'repository-outdated',
    () => alter(secrets, east('repo-shop'), withText({ password: 'yesterday' })),
    both,
  ],
  [
    'a Secret of the cluster in the place of a repository',
    'repository-name-taken',
    () => alter(secrets, east('repo-shop'), (secret) => Object.assign(secret.metadata, { labels: {} })),
    both,
  ],
  [
    'a repository whose password is refused',
    'repository-refused',
    () =>
      alter(shownApplications, east('shop'), (application) =>
        Object.assign(application.status ?? {}, {
          conditions: [{ type: 'ComparisonError', message: 'failed to list refs: authentication required: no' }],
        }),
      ),
    both,
  ],
  [
    'a change that does not reach the cluster',
    'change-not-delivered',
    () =>
      alter(shownApplications, east('shop'), (application) =>
        Object.assign((application.spec as { source?: object }).source ?? {}, { path: 'yesterday' }),
      ),
    both,
  ],
  [
    'an Application that does not reach the cluster',
    'change-not-delivered',
    () => alter(shownApplications, east('shop'), 'delete'),
    both,
  ],
  [
    'a state that does not reach the hub',
    'state-not-reported',
    () =>
      alter(shownApplications, east('shop'), (application) =>
        Object.assign(application.status ?? {}, { health: { status: 'Degraded' } }),
      ),
    both,
  ],
  ['no namespace', 'namespace-missing', async () => async () => undefined, ['doctor', '--namespace=nowhere']],
  ['no hub', 'hub-unreachable', async () => async () => undefined, ['doctor', 'CLOSED']],
];

test.for(faults)('%s: the first finding is %s', async ([, expected, putIn, args = ['doctor']]) => {
  const undo = await putIn();
  const line = args.map((arg) => arg.replace('ADDRESS', lab.address));
  try {
    // The API server's own caches of rights follow a moment later.
    await until(async () => {
      const run = args.includes('CLOSED') ? await closedHub() : await lab.ctl(...line, '-o', 'json');
      expect(run.err).toBe('');
      const { findings } = JSON.parse(run.out) as { findings: { id: string; mend: string; where: string }[] };
      expect(findings.map(({ id }) => id)[0], run.out).toBe(expected);
      expect(findings.every(({ mend, where }) => mend !== '' && where !== '')).toBe(true);
      expect(run.code).toBe(1);
    });
  } finally {
    await undo();
  }
  await until(async () => expect((await lab.ctl(...both)).out).toBe(''));
});

async function closedHub() {
  const path = `${cluster.dir}/closed`;
  const config = {
    'current-context': 'a',
    clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'a', user: {} }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  };
  await writeFile(path, JSON.stringify(config));
  return runCtl(['doctor', '-o', 'json', '--kubeconfig', path]);
}

const slow = (ms: number) => ({ delayMs: () => ms });

test.each<[what: string, first: string, side: 'hub' | 'east', fault: RelayFault]>([
  ["the hub's clock is an hour ahead", 'clock-skew', 'hub', { aheadMs: 3_600_000 }],
  ["the cluster's clock is an hour behind", 'cluster-clock-skew', 'east', { aheadMs: -3_600_000 }],
  ['the API server of the hub answers after seconds', 'no-answer', 'hub', slow(2_000)],
  ['the API server of the hub does not answer', 'hub-unreachable', 'hub', slow(60_000)],
  ['the API server of the cluster does not answer', 'cluster-unreachable', 'east', slow(60_000)],
])('%s: the first finding is %s', async (_, expected, side, fault) => {
  const relay = await startRelay(cluster, side, fault);
  try {
    const sides = ['--principal-context=hub', '--agent-context=east', `--agent-namespace=${labAgentNamespace}`];
    const began = performance.now();
    const { code, out, err } = await runCtl([
      ...['doctor', 'east', '-o', 'json', '--kubeconfig', relay.kubeconfig],
      ...sides,
    ]);
    expect([code, err]).toEqual([1, '']);
    expect((JSON.parse(out) as { findings: { id: string }[] }).findings[0]?.id, out).toBe(expected);
    // Less than 5 s, and a busy machine has its part in it.
    expect(performance.now() - began).toBeLessThan(15_000);
  } finally {
    await relay.close();
  }
});

test('who may not see Secrets is told so', async () => {
  const kubeconfig = await cluster.kubeconfigFor({ user: 'nobody' });
  const { code, out } = await runCtl(['doctor', '--kubeconfig', kubeconfig]);
  expect(out).toContain('you may not list secrets: what they would tell is not known (missing-right)');
  expect(out).toContain('mend:  kubectl --namespace argocd auth can-i list secrets');
  expect(code).toBe(1);
});

test('all is well again', async () => {
  await expectHealthy();
  expect(JSON.parse((await lab.ctl(...both, '-o', 'json')).out)).toMatchObject({
    findings: [],
    roundTrip: { notTaken },
  });
});
