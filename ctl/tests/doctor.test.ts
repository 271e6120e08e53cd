import { beforeAll, expect, test } from 'vitest';
import { wellKnown } from '../../lib/base/index.ts';
import { clusterSecret } from '../../lib/clusters/index.ts';
import type { EndpointSlice, Secret, Service } from '../../lib/kube/index.ts';
import {
  createAuthority,
  generateJwtKey,
  issueCertificate,
  type KeyCertificate,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import { judge } from '../doctor/examine.ts';
import type { Facts } from '../doctor/facts.ts';
import { inOrder } from '../doctor/finding.ts';

const namespace = 'argocd';
const day = 24 * 3_600_000;
const encode = (text: string) => Buffer.from(text).toString('base64');

/** Facts whose lists can be changed. */
type Changeable = { -readonly [K in keyof Facts]: Facts[K] extends readonly (infer T)[] ? T[] : Facts[K] };

let authority: KeyCertificate;
let other: KeyCertificate;
let healthy: Facts;

function issue(signer: KeyCertificate, commonName: string, now = new Date()): Promise<KeyCertificate> {
  return issueCertificate({
    commonName,
    usages: ['client'],
    authority: signer,
    algorithm: 'p256',
    now,
    lifetimeMs: 30 * day,
  });
}
const tls = (name: string, pair: KeyCertificate): Secret => ({
  metadata: { namespace, name },
  data: tlsSecretData(pair),
});
const cluster = (agent: string, pair: KeyCertificate, name = `cluster-${agent}`): Secret => {
  const identity = { cert: pair.certificate, key: pair.key, ca: authority.certificate };
  const made = clusterSecret(namespace, { agent, address: 'p:9090', identity }, { labels: {} });
  return { ...made, metadata: { ...made.metadata, name } };
};
const service = (name: string): Service => ({
  metadata: { namespace, name },
  spec: { ports: [{ name: 'https', port: 443 }] },
});
const slice = (name: string): EndpointSlice => ({
  metadata: { namespace, name, labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
});

beforeAll(async () => {
  authority = await createAuthority({ commonName: 'hub', algorithm: 'p256' });
  other = await createAuthority({ commonName: 'other', algorithm: 'p256' });
  const jwt = {
    metadata: { namespace, name: 'argocd-agent-jwt' },
    data: { 'jwt.key': encode(await generateJwtKey()) },
  };
  healthy = {
    namespace,
    context: 'hub',
    server: 'https://hub',
    now: new Date(),
    unreachable: undefined,
    skewMs: 100,
    unknown: new Map(),
    secrets: [
      tls('argocd-agent-ca', authority),
      tls('argocd-agent-principal-tls', await issue(authority, 'principal')),
      tls('argocd-agent-resource-proxy-tls', await issue(authority, 'proxy')),
      jwt,
      cluster('east', await issue(authority, 'east')),
    ],
    configMaps: [
      {
        metadata: { namespace, name: 'argocd-agent-params' },
        data: { 'principal.destination-based-mapping': 'false' },
      },
    ],
    leases: [
      {
        metadata: {
          name: 'argocd-agent-east',
          labels: { [wellKnown.agentNameLabel]: 'east' },
          annotations: {
            'argocd-agent.argoproj-labs.io/connected': 'true',
            [wellKnown.agentModeAnnotation]: 'managed',
          },
        },
      },
    ],
    services: [service('argocd-agent-principal'), service('argocd-redis')],
    endpointSlices: [slice('argocd-agent-principal'), slice('argocd-redis')],
    deployments: [{ metadata: { name: 'argocd-redis', labels: { [wellKnown.partOfLabel]: 'argocd' } } }],
    events: [],
    namespaces: [{ metadata: { name: namespace } }, { metadata: { name: 'east' } }],
    fleets: [],
    addOns: [],
    appProjects: [],
    applications: [],
    missingRights: [],
  };
});

const idsOf = (facts: Facts) => inOrder(judge(facts, undefined, '')).map(({ id }) => id);
const named = (facts: Changeable, name: string) =>
  facts.secrets.find(({ metadata }) => metadata.name === name) as Secret;
const without = (name: string) => (facts: Changeable) => {
  facts.secrets = facts.secrets.filter(({ metadata }) => metadata.name !== name);
};
const replaced = (secret: Secret) => (facts: Changeable) => {
  facts.secrets = [...facts.secrets.filter(({ metadata }) => metadata.name !== secret.metadata.name), secret];
};

test('a healthy hub has no finding', () => {
  expect(judge(healthy, undefined, '')).toEqual([]);
});

test('a certificate ends soon when nobody renewed it in the last tenth of its time', () => {
  const after = (days: number) => new Set(idsOf({ ...healthy, now: new Date(Date.now() + days * day) }));
  expect(after(25)).toEqual(new Set());
  expect(after(28)).toEqual(new Set(['certificate-ends-soon']));
});

test.each([
  ['0.2.0', 'registry.example/argocd-fleet:0.2.0', 'another chart'],
  ['0.2.0', `registry.example/argocd-fleet@sha256:${'7'.repeat(64)}`, '0.2.0'],
])('an agent of another version than the principal %s with image %s is found', (version, image, label) => {
  const principal = {
    metadata: { name: 'argocd-agent-principal', labels: { 'app.kubernetes.io/version': label } },
    spec: { selector: {}, template: { spec: { containers: [{ name: 'principal', image }] } } },
  };
  const skew = (agentVersion: string) => {
    const facts = structuredClone(healthy) as Changeable;
    facts.deployments = [...facts.deployments, principal];
    Object.assign(facts.leases[0]?.metadata.annotations ?? {}, {
      'argocd-agent.argoproj-labs.io/agent-version': `argocd-agent-${agentVersion}`,
    });
    return judge(facts, undefined, '').filter(({ id }) => id === 'version-skew');
  };
  expect(skew('0.2.7')).toEqual([]);
  expect(skew('0.1.0').map(({ what }) => what)).toEqual([expect.stringContaining(`the principal ${version}`)]);
});

const past = new Date(Date.now() - 60 * day);

test.each<[string, (facts: Changeable) => void | Promise<void>]>([
  ['hub-unreachable', (facts) => void Object.assign(facts, { unreachable: 'refused' })],
  ['clock-skew', (facts) => void Object.assign(facts, { skewMs: 3_600_000 })],
  ['missing-right', (facts) => void Object.assign(facts, { unknown: new Map([['secrets', 'refused']]), secrets: [] })],
  ['no-answer', (facts) => void Object.assign(facts, { unknown: new Map([['secrets', 'silent']]), secrets: [] })],
  ['namespace-missing', (facts) => void Object.assign(facts, { namespaces: [] })],
  ['authority-missing', without('argocd-agent-ca')],
  [
    'authority-invalid',
    (facts) => void Object.assign(named(facts, 'argocd-agent-ca'), { data: { 'tls.crt': encode('x') } }),
  ],
  ['principal-certificate-missing', without('argocd-agent-principal-tls')],
  [
    'principal-certificate-expired',
    async (facts) => replaced(tls('argocd-agent-principal-tls', await issue(authority, 'p', past)))(facts),
  ],
  [
    'principal-certificate-wrong-authority',
    async (facts) => replaced(tls('argocd-agent-principal-tls', await issue(other, 'p')))(facts),
  ],
  ['proxy-certificate-missing', without('argocd-agent-resource-proxy-tls')],
  ['jwt-key-missing', without('argocd-agent-jwt')],
  [
    'jwt-key-invalid',
    (facts) => void Object.assign(named(facts, 'argocd-agent-jwt'), { data: { 'jwt.key': encode('x') } }),
  ],
  [
    'principal-right-missing',
    (facts) => void Object.assign(facts, { missingRights: [{ account: 'p', verb: 'list', resource: 'secrets' }] }),
  ],
  ['principal-not-ready', (facts) => void Object.assign(facts, { endpointSlices: [slice('argocd-redis')] })],
  ['redis-missing', (facts) => void Object.assign(facts, { services: [service('argocd-agent-principal')] })],
  ['redis-not-ready', (facts) => void Object.assign(facts, { endpointSlices: [slice('argocd-agent-principal')] })],
  [
    'cluster-secret-without-agent',
    (facts) => void delete named(facts, 'cluster-east').metadata.labels?.[wellKnown.agentNameLabel],
  ],
  [
    'cluster-secret-wrong-label',
    (facts) => void delete named(facts, 'cluster-east').metadata.labels?.[wellKnown.secretTypeLabel],
  ],
  [
    'agent-mapped-twice',
    async (facts) => void facts.secrets.push(cluster('east', await issue(authority, 'east'), 'again')),
  ],
  [
    'cluster-secret-wrong-server',
    (facts) => void Object.assign(named(facts, 'cluster-east').data ?? {}, { server: encode('https://x') }),
  ],
  [
    'cluster-secret-reconciled',
    (facts) => void delete named(facts, 'cluster-east').metadata.annotations?.[wellKnown.skipReconcileAnnotation],
  ],
  [
    'client-certificate-expired',
    async (facts) => replaced(cluster('east', await issue(authority, 'east', past)))(facts),
  ],
  ['client-certificate-wrong-authority', async (facts) => replaced(cluster('east', await issue(other, 'east')))(facts)],
  ['client-certificate-wrong-name', async (facts) => replaced(cluster('east', await issue(authority, 'west')))(facts)],
  ['agent-namespace-missing', (facts) => void facts.namespaces.pop()],
  [
    'wrong-mode',
    (facts) =>
      void Object.assign(named(facts, 'cluster-east').metadata.annotations ?? {}, {
        [wellKnown.agentModeAnnotation]: 'autonomous',
      }),
  ],
  ['never-connected', (facts) => void Object.assign(facts, { leases: [] })],
])('%s is the first finding, with what mends it', async (id, put) => {
  const facts = structuredClone(healthy) as Changeable;
  await put(facts);
  expect(idsOf(facts)[0]).toBe(id);
  expect(judge(facts, undefined, '').every(({ where, mend }) => where !== '' && mend !== '')).toBe(true);
});
