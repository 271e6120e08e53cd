import { expect, test } from 'vitest';
import type { AppProject } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import type { ConfigMap, Secret } from '../../lib/kube/index.ts';
import type { ShownApplication } from '../../lib/way/index.ts';
import { changeFaults } from '../doctor/changes.ts';
import type { Facts } from '../doctor/facts.ts';
import { deliveredRepositoryFaults, repositoryFaults } from '../doctor/repositories.ts';

const now = new Date('2026-01-01T12:00:00Z');
const long = '2026-01-01T11:00:00Z';
const lately = '2026-01-01T11:59:55Z';
const url = 'https://git.example.com/shop';

function factsOf(more: Partial<Facts>): Facts {
  return {
    namespace: 'argocd',
    context: 'side',
    server: 'https://side',
    now,
    unreachable: undefined,
    skewMs: 0,
    unknown: new Map(),
    secrets: [],
    configMaps: [],
    leases: [],
    services: [],
    endpointSlices: [],
    deployments: [],
    events: [],
    namespaces: [],
    fleets: [],
    addOns: [],
    appProjects: [],
    applications: [],
    missingRights: [],
    ...more,
  };
}

const params = (data: Record<string, string>): ConfigMap[] => [
  { metadata: { name: 'argocd-agent-params', namespace: 'argocd' }, data },
];
const secretOf = (name: string, type: string, fields: Record<string, string>, time = long): Secret => ({
  metadata: { name, namespace: 'argocd', creationTimestamp: time, labels: { [wellKnown.secretTypeLabel]: type } },
  data: Object.fromEntries(Object.entries(fields).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
});
const cluster: Secret = {
  ...secretOf('cluster-east', 'cluster', { name: 'east', server: 'https://p:9090?agentName=east' }),
  metadata: {
    name: 'cluster-east',
    labels: { [wellKnown.secretTypeLabel]: 'cluster', [wellKnown.agentNameLabel]: 'east' },
  },
};
const projectFor = (agent: string, name = 'shop'): AppProject => ({
  metadata: { name, namespace: 'argocd' },
  spec: { sourceNamespaces: [agent], sourceRepos: ['*'], destinations: [{ name: agent, namespace: '*' }] },
});
const applicationOf = (metadata: Partial<ShownApplication['metadata']>, more: object = {}): ShownApplication => ({
  metadata: { name: 'shop', namespace: 'east', uid: 'u1', creationTimestamp: long, ...metadata },
  spec: { project: 'shop', source: { repoURL: url, path: '.' }, destination: { name: 'east' } } as object,
  ...more,
});
const copied = { namespace: 'argocd', uid: 'u2', annotations: { 'argocd.argoproj.io/source-uid': 'u1' } };
const ids = (findings: readonly { id: string }[]) => findings.map(({ id }) => id);
const repository = secretOf('repo', 'repository', { url, project: 'shop' });

test('a Secret is missed where its project goes, and nowhere else', () => {
  const hub = factsOf({ secrets: [cluster, repository], appProjects: [projectFor('east')] });
  expect(ids(deliveredRepositoryFaults(factsOf({}), hub, 'east'))).toEqual(['repository-not-delivered']);
  expect(deliveredRepositoryFaults(factsOf({ secrets: [repository] }), hub, 'east')).toEqual([]);
  const elsewhere = { ...hub, appProjects: [projectFor('west')] };
  expect(deliveredRepositoryFaults(factsOf({}), elsewhere, 'east')).toEqual([]);
  const young = secretOf('repo', 'repository', { url, project: 'shop' }, lately);
  expect(deliveredRepositoryFaults(factsOf({}), { ...hub, secrets: [cluster, young] }, 'east')).toEqual([]);
  const silent = factsOf({ unknown: new Map([['secrets', 'refused']]) });
  expect(deliveredRepositoryFaults(silent, hub, 'east')).toEqual([]);
  const own = factsOf({ configMaps: params({ 'agent.mode': 'autonomous' }) });
  expect(deliveredRepositoryFaults(own, hub, 'east')).toEqual([]);
  const others = { ...hub, configMaps: params({ 'principal.label-selector': 'team=a' }) };
  expect(deliveredRepositoryFaults(factsOf({}), others, 'east')).toEqual([]);
});

test('a Secret without a project is missed where it is shared and used', () => {
  const shared = secretOf('repo', 'repository', { url: `${url}.git` });
  const hub = factsOf({
    secrets: [cluster, shared],
    appProjects: [projectFor('east')],
    applications: [applicationOf({})],
    configMaps: params({ 'principal.share-repositories': 'true' }),
  });
  expect(ids(deliveredRepositoryFaults(factsOf({}), hub, 'east'))).toEqual(['repository-not-delivered']);
  expect(deliveredRepositoryFaults(factsOf({}), { ...hub, configMaps: [] }, 'east')).toEqual([]);
  expect(deliveredRepositoryFaults(factsOf({}), { ...hub, applications: [] }, 'east')).toEqual([]);
});

test('what is wrong in a Secret is told of those that go to agents, or to the agent that is named', () => {
  const bad = secretOf('bad', 'repository', { project: 'shop' });
  const hub = factsOf({ secrets: [bad, secretOf('mine', 'repository', {})], appProjects: [projectFor('east')] });
  expect(repositoryFaults(hub, '')).toMatchObject([{ id: 'repository-invalid', where: 'Secret argocd/bad' }]);
  expect(ids(repositoryFaults(hub, 'east'))).toEqual(['repository-invalid']);
  expect(repositoryFaults(hub, 'west')).toEqual([]);
  expect(ids(repositoryFaults({ ...hub, appProjects: [] }, 'west'))).toEqual(['repository-project-missing']);
});

test.each<[string, string | undefined, RegExp?]>([
  [
    'failed to list refs: authentication required: Repository not found.',
    'repository-refused',
    /on the hub: kubectl .*"password"/,
  ],
  ['git fetch https://joe:secret@git.example.com failed: HTTP Basic: Access denied', 'repository-refused', /password/],
  ['ssh: handshake failed: knownhosts: key is unknown', 'repository-refused', /argocd-ssh-known-hosts-cm/],
  ['tls: failed to verify certificate: x509: signed by unknown authority', 'repository-refused', /argocd-tls-certs-cm/],
  ['dial tcp: lookup git.example.com: no such host', 'repository-refused', /getent hosts/],
  ['rpc error: code = Unavailable desc = dial tcp 10.0.0.1:8081: connection refused', undefined],
  ['error converting YAML to JSON: line 4', undefined],
])('Argo CD says %s', (message, id, mend = /./) => {
  const copy = applicationOf(copied, { status: { conditions: [{ type: 'ComparisonError', message }] } });
  const local = { ...repository, metadata: { ...repository.metadata, annotations: copied.annotations } };
  const hub = factsOf({ secrets: [cluster, repository], appProjects: [projectFor('east')] });
  const findings = deliveredRepositoryFaults(factsOf({ secrets: [local], applications: [copy, copy] }), hub, 'east');
  expect(ids(findings)).toEqual(id === undefined ? [] : [id]);
  expect(JSON.stringify(findings)).not.toContain('secret@');
  for (const finding of findings) {
    expect(finding.mend).toMatch(mend);
    expect(finding.where).toBe('Application argocd/shop and 1 more');
  }
});

const synced = { status: { sync: { status: 'Synced' }, health: { status: 'Healthy' } } };

test('an Application that differs on both sides is told when nobody has written it for a while', () => {
  const hub = factsOf({ secrets: [cluster], applications: [applicationOf({}, synced)] });
  const found = (copy: ShownApplication | undefined, from = hub) =>
    ids(changeFaults(factsOf({ applications: copy === undefined ? [] : [copy] }), from, 'east'));
  expect(found(applicationOf(copied, synced))).toEqual([]);
  expect(found(undefined)).toEqual(['change-not-delivered']);
  const other = { ...applicationOf(copied, synced), spec: { source: { repoURL: url, path: 'old' } } as object };
  expect(found(other)).toEqual(['change-not-delivered']);
  const sick = { status: { sync: { status: 'Synced' }, health: { status: 'Degraded' } } };
  expect(found(applicationOf(copied, sick))).toEqual(['state-not-reported']);
  expect(found(applicationOf({ ...copied, managedFields: [{ time: lately }] as never }, sick))).toEqual([]);
  const young = factsOf({ secrets: [cluster], applications: [applicationOf({ creationTimestamp: lately })] });
  expect(found(undefined, young)).toEqual([]);
  const going = factsOf({ secrets: [cluster], applications: [applicationOf({ deletionTimestamp: long })] });
  expect(found(undefined, going)).toEqual([]);
  const unselected = { ...hub, configMaps: params({ 'principal.label-selector': 'team=a' }) };
  expect(found(undefined, unselected)).toEqual([]);
  const unknown = factsOf({ unknown: new Map([['applications', 'silent']]) });
  expect(changeFaults(unknown, hub, 'east')).toEqual([]);
});

test('what the principal says of an Application comes first, and those of other agents do not count', () => {
  const conditions = [{ type: 'AgentWarning', message: 'AppProject shop does not allow destination east' }];
  const applications = [applicationOf({}, { status: { conditions } }), applicationOf({ namespace: 'west', name: 'b' })];
  const [first, ...others] = changeFaults(factsOf({}), factsOf({ secrets: [cluster], applications }), 'east');
  expect(first?.what).toContain('AppProject shop does not allow destination east');
  expect(others).toEqual([]);
});

test('with destination-based mapping the destination names the agent, and copies have the namespace of the hub', () => {
  const hub = factsOf({
    secrets: [cluster],
    configMaps: params({ 'principal.destination-based-mapping': 'true' }),
    applications: [applicationOf({ namespace: 'team' }, synced)],
  });
  const copy = applicationOf({ ...copied, namespace: 'team' }, synced);
  expect(changeFaults(factsOf({ applications: [copy] }), hub, 'east')).toEqual([]);
  expect(ids(changeFaults(factsOf({}), hub, 'east'))).toEqual(['change-not-delivered']);
});

test('the mirror of an autonomous agent follows the Application of the cluster', () => {
  const annotations = { 'argocd.argoproj.io/source-uid': 'u2' };
  const hub = factsOf({ secrets: [cluster], applications: [applicationOf({ annotations }, synced)] });
  const own = applicationOf({ namespace: 'argocd', uid: 'u2' }, synced);
  const configMaps = params({ 'agent.mode': 'autonomous' });
  expect(changeFaults(factsOf({ applications: [own], configMaps }), hub, 'east')).toEqual([]);
  expect(ids(changeFaults(factsOf({ configMaps }), hub, 'east'))).toEqual(['state-not-reported']);
});
