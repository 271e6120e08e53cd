import { expect, test } from 'vitest';
import type { MergePatch } from '../../base/index.ts';
import { type Application, annotations, type Message, type OperationRevisions } from '../index.ts';
import { Lab } from '../testing/lab.ts';
import { join, ownApplication, StageAgent, StagePrincipal } from './testing/stage.ts';

const local = { namespace: 'argocd', name: 'shop' };
const hubRef = { namespace: 'a', name: 'shop' };
const source = { repoURL: 'https://git/shop', path: 'p', targetRevision: 'main' };
const former = { repoURL: 'https://git/shop', path: 'former', targetRevision: 'v1' };
const commit = 'c0ffee'.padEnd(40, '0');
const deployed = 'deed'.padEnd(40, '0');
const unseen = 'beef'.padEnd(40, '0');
const destination = { server: 'https://kubernetes.default.svc', namespace: 'shop' };

async function fleet(
  spec: object = { source },
  status: object = {
    sync: { status: 'Synced', revision: commit },
    history: [{ id: 1, revision: deployed, source: former }],
  },
  revisions: OperationRevisions = 'known',
) {
  const lab = new Lab();
  const principal = new StagePrincipal(lab);
  const agent = new StageAgent(lab, undefined, undefined, revisions);
  join(lab, principal, agent);
  agent.cluster.objects.create(
    ownApplication({}, { spec: { project: 'default', destination, ...spec }, status } as Partial<Application>),
  );
  await lab.run(5_000);
  const ask = async (operation: object, forMs = 120_000) => {
    lab.hub.objects.patch(hubRef, { operation } as MergePatch);
    await lab.run(forMs);
  };
  return { lab, principal, agent, ask, conditions: () => principal.mirror()?.status?.conditions ?? [] };
}

const plain = { initiatedBy: { username: 'admin' }, info: [{ name: 'why', value: 'x' }], retry: { limit: 2 } };

test.each<[string, object]>([
  ['with nothing but a strategy', { sync: { syncStrategy: { hook: {} } }, initiatedBy: { username: 'e2e' } }],
  [
    'of some resources, with prune',
    { ...plain, sync: { prune: true, dryRun: true, resources: [{ kind: 'Pod', name: 'x' }] } },
  ],
  ['with options', { sync: { syncOptions: ['ServerSideApply=true'], autoHealAttemptsCount: 1 } }],
  [
    'as argocd-server asks for it',
    { ...plain, sync: { source: { ...source, directory: { jsonnet: {} } }, revision: commit } },
  ],
  ['to the target revision', { sync: { revision: 'main' } }],
  ['that is a rollback', { sync: { revision: deployed, source: former, syncStrategy: { apply: {} } } }],
  [
    'that is tried often',
    { sync: {}, retry: { limit: 50, backoff: { duration: '5s', factor: 2, maxDuration: '3m' } } },
  ],
  ['without a retry', { sync: {}, retry: {} }],
  ['with 32 KiB', { sync: {}, info: [{ name: 'why', value: 'x'.repeat(32_000) }] }],
])('a sync %s is carried out', async (_, operation) => {
  const { agent, ask, conditions } = await fleet({ source: { ...source, directory: { recurse: false } } });
  await ask(operation);
  expect(agent.application()?.operation).toEqual(operation);
  expect(conditions()).toEqual([]);
});

const endless = { limit: -1, backoff: { duration: '5s', factor: 2, maxDuration: '3m' } };

test('a retry without end is carried out if the spec says the same', async () => {
  const { agent, ask, conditions } = await fleet({ source, syncPolicy: { retry: endless } });
  await ask({ sync: {}, retry: { ...endless, backoff: { duration: '1ns' } } });
  expect(agent.application()?.operation).toBeUndefined();
  expect(conditions()).toHaveLength(1);
  await ask({ sync: {}, retry: endless });
  expect(agent.application()?.operation).toEqual({ sync: {}, retry: endless });
});

test('the values in the source of the spec may be long, and the operation repeats them', async () => {
  const values = { ...source, helm: { values: 'v'.repeat(100_000) } };
  const { agent, ask } = await fleet({ source: values });
  await ask({ sync: { source: values }, info: [{ name: 'why', value: 'x'.repeat(30_000) }] });
  expect(agent.application()?.operation).toBeDefined();
});

const several = [source, { ...source, ref: 'values' }];

test.each<[string, object, object]>([
  ['a plain one', { sources: several }, { sources: several, revisions: [commit, 'main'] }],
  ['a rollback', { sources: several }, { source: { repoURL: '' }, sources: [former], revisions: [deployed] }],
  [
    'one of a hydrator',
    { sourceHydrator: { drySource: source, syncSource: { targetBranch: 'env/prod', path: 'out' } } },
    { source: { repoURL: source.repoURL, path: 'out', targetRevision: 'env/prod' }, revision: commit },
  ],
])('a sync of other kinds of sources is carried out: %s', async (_, spec, sync) => {
  const status = {
    sync: { status: 'Synced', revision: commit, revisions: [commit] },
    history: [{ sources: [former], revisions: [deployed] }],
  };
  const { agent, ask } = await fleet(spec, status);
  await ask({ sync });
  expect(agent.application()?.operation).toEqual({ sync });
});

test.each<[string, object, string]>([
  [
    'manifests of its own',
    { sync: { manifests: ['{"kind":"ClusterRoleBinding"}'] } },
    'takes no operation.sync.manifests',
  ],
  ['another repository', { sync: { source: { ...source, repoURL: 'https://evil' } } }, 'takes no other source'],
  ['another path', { sync: { source: { ...source, path: 'other' } } }, 'takes no other source'],
  [
    'other Helm values',
    { sync: { source: { ...source, helm: { valuesObject: { a: null } } } } },
    'takes no other source',
  ],
  ['several other sources', { sync: { sources: [source] } }, 'takes no other source'],
  ['an unknown revision', { sync: { revision: 'refs/pull/666/head' } }, 'names revision "refs/pull/666/head"'],
  ['an unknown one of several revisions', { sync: { revisions: ['main', 'x'] } }, 'names revision "x"'],
  ['a field that this version does not know', { sync: { novelty: 1 } }, 'takes no operation.sync.novelty'],
  ['an unknown part', { novelty: 1 }, 'takes no operation.novelty'],
  ['no sync at all', { sync: 'x' }, 'operation.sync is not an object'],
  ['a revision that is a list', { sync: { revision: ['main'] } }, 'operation.sync.revision is not a text'],
  ['revisions that are a text', { sync: { revisions: 'main' } }, 'operation.sync.revisions is not a list of texts'],
  ['a revision among others that is none', { sync: { revisions: ['main', {}] } }, 'is not a list of texts'],
  ['a retry without end', { sync: {}, retry: endless }, 'operation.retry.limit is no number from 0 to 50'],
  ['more attempts than a person waits for', { sync: {}, retry: { limit: 51 } }, 'operation.retry.limit is no number'],
  ['a retry of another kind', { sync: {}, retry: [1] }, 'operation.retry.limit is no number'],
  [
    'a megabyte of text',
    { sync: {}, info: [{ name: 'why', value: 'x'.repeat(1_000_000) }] },
    'and this cluster takes 32768 from the hub',
  ],
  [
    'a megabyte of nothing in a known source',
    { sync: { source: { ...source, ...Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`f${i}`, {}])) } } },
    'and this cluster takes 32768 from the hub',
  ],
])('an operation with %s is not carried out, and the mirror says why', async (_, operation, why) => {
  const { lab, principal, agent, ask, conditions } = await fleet();
  await ask(operation);
  expect(agent.application()?.operation).toBeUndefined();
  expect(conditions()).toMatchObject([{ type: 'AgentError', message: expect.stringContaining(why) }]);
  expect(principal.mirror()?.operation, 'the hub can ask for another').toBeUndefined();
  const next = { sync: { revision: 'main' } };
  await ask(next);
  expect(agent.application()?.operation).toEqual(next);
  expect(conditions()).toEqual([]);
  await lab.run(1_000);
});

test('people hear of it for an hour', async () => {
  const { lab, ask, conditions } = await fleet();
  await ask({ sync: { manifests: ['{}'] } });
  expect(conditions()).toHaveLength(1);
  await lab.run(3_600_000);
  expect(conditions()).toEqual([]);
});

test('a commit that Argo CD has not seen yet is synced to when it has compared', async () => {
  const { lab, agent, ask, conditions } = await fleet();
  const operation = { sync: { source, revision: unseen } };
  await ask(operation, 1_000);
  expect(agent.application()?.operation).toBeUndefined();
  expect(agent.application()?.metadata.annotations?.[annotations.refresh]).toBe('normal');
  agent.cluster.objects.patch(local, {
    metadata: { annotations: { [annotations.refresh]: null } },
    status: { sync: { status: 'OutOfSync', revision: unseen } },
  });
  await lab.run(30_000);
  expect(agent.application()?.operation).toEqual(operation);
  expect(conditions()).toEqual([]);
});

test('any revision may be permitted, but no other source', async () => {
  const { agent, ask } = await fleet(undefined, undefined, 'any');
  await ask({ sync: { manifests: ['{}'], revision: 'x' } });
  expect(agent.application()?.operation).toBeUndefined();
  await ask({ sync: { source: { ...source, targetRevision: 'x' }, revision: 'x' } });
  expect(agent.application()?.operation).toBeUndefined();
  await ask({ sync: { revision: 'x' } });
  expect(agent.application()?.operation).toEqual({ sync: { revision: 'x' } });
});

test.each(['create', 'delete', 'spec-update', 'update'])(
  'a %s of the hub changes nothing on the cluster',
  async (type) => {
    const { lab, agent } = await fleet();
    const before = agent.application();
    const uid = { [annotations.sourceUid]: before?.metadata.uid ?? '' };
    const [{ spec }, object] = [before, { metadata: { ...hubRef, uid: 'm', annotations: uid } }] as [
      Application,
      object,
    ];
    const messages = [
      { target: 'application', object: { ...object, spec: { ...spec, source: { repoURL: 'https://evil' } } } },
      { target: 'application', object: { ...object, metadata: { name: 'new', uid: 'n' }, spec } },
      { target: 'appproject', object: { metadata: { name: 'default', uid: 'x' }, spec: {} } },
      { target: 'repository', object: { metadata: { name: 'repo', uid: 'x' }, data: {} } },
      { target: 'gpgkey', object: { metadata: { name: 'argocd-gpg-keys-cm', uid: 'x' }, data: {} } },
    ];
    const writes = agent.cluster.writes;
    for (const [index, message] of messages.entries()) {
      agent.receive({ type, resourceId: `r${index}`, eventId: `e${index}`, ...message } as unknown as Message);
    }
    await lab.run(60_000);
    expect(agent.application()).toEqual(before);
    expect(agent.application('new')).toBeUndefined();
    expect(agent.cluster.writes).toBe(writes);
  },
);

test('a long or strange name in an operation does not fill the status', async () => {
  const { ask, conditions } = await fleet();
  await ask({ sync: { revision: `${'x'.repeat(50_000)}\n` } });
  expect(conditions()[0]?.message.length).toBeLessThan(500);
  await ask({ ['y'.repeat(50_000)]: 1 });
  expect(conditions()[0]?.message.length).toBeLessThan(500);
});
