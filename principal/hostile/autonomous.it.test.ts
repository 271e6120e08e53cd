import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  type AttackCall,
  eventBytes,
  evil,
  frame,
  mutated,
  neighbour,
  other,
  rogue,
  Stage,
} from '../../e2e/hostile/index.ts';
import { application, namespace, pairApplications, pairAppProjects } from '../../e2e/pair/index.ts';
import { Random } from '../../e2e/random/index.ts';
import { effort, until } from '../../lib/base/testing.ts';
import {
  agentSource,
  eventTypes,
  messageEvent,
  objectEvent,
  targets,
  type WireEvent,
  type WireTarget,
} from '../../lib/wire/index.ts';

let stage: Stage;
/** The neighbour, an autonomous agent that behaves. */
let honest: AttackCall;

beforeAll(async () => {
  stage = await Stage.open();
  const { client } = stage.hub.hub;
  // Of the hub's own, under names that the attacker's could become.
  await client.create(pairAppProjects, {
    metadata: { name: `${rogue}-own`, namespace },
    spec: { sourceRepos: ['hub'] },
  });
  await client.create(pairApplications, application({ name: 'own', namespace: neighbour }));
  honest = await stage.agent({ name: neighbour, mode: 'autonomous' });
  await honest.sendAll([
    objectEvent(targets.appProject, eventTypes.create, project('team'), { source: agentSource }),
    objectEvent(targets.application, eventTypes.create, app('mirrored'), { source: agentSource }),
  ]);
  await until("the neighbour's are mirrored", async () => {
    const mirror = await client.get(pairApplications, { namespace: neighbour, name: 'mirrored' });
    return mirror && (await client.get(pairAppProjects, { namespace, name: `${neighbour}-team` }));
  });
  await stage.takeStock();
});
afterAll(() => stage?.close());
afterEach(() => stage.expectPeace());

function app(name: string, fields: { namespace?: string; uid?: string; spec?: Record<string, unknown> } = {}) {
  const { uid = randomUUID(), spec, namespace: home = 'argocd' } = fields;
  return {
    ...application({ name, namespace: home, ...(spec === undefined ? {} : { spec }) }),
    metadata: { name, namespace: home, uid, resourceVersion: '1' },
    status: { health: { status: 'Healthy' } },
  };
}

function project(name: string, spec: Record<string, unknown> = {}) {
  return {
    metadata: { name, namespace: 'argocd', uid: randomUUID(), resourceVersion: '1' },
    spec: { sourceRepos: ['*'], destinations: [{ server: '*', namespace: '*' }], ...spec },
  };
}

const types = [eventTypes.create, eventTypes.specUpdate, eventTypes.statusUpdate, eventTypes.delete];
const about = (target: typeof targets.application | typeof targets.appProject, object: object): WireEvent[] =>
  types.map((type) =>
    objectEvent(
      target,
      type,
      object as Parameters<typeof objectEvent>[2],
      { source: agentSource },
      {
        resourceId: randomUUID(),
        eventId: randomUUID(),
      },
    ),
  );

test('an autonomous agent writes only into its own namespace, whatever it sends', async () => {
  const { client } = stage.hub.hub;
  const victims = (await client.list(pairApplications)).filter(({ metadata }) => metadata.namespace !== rogue);
  const call = await stage.agent({ name: rogue, mode: 'autonomous' });
  const events = victims.flatMap(({ metadata }) =>
    [metadata.namespace ?? '', neighbour, namespace, ''].flatMap((home) =>
      about(targets.application, {
        ...app(metadata.name, { namespace: home, uid: metadata.uid ?? '', spec: { project: 'taken' } }),
        metadata: {
          ...metadata,
          namespace: home,
          annotations: {
            'argocd.argoproj.io/source-uid': metadata.uid ?? '',
            'argocd.argoproj.io/namespace-remapped': 'true',
            'argocd.argoproj.io/principal-uid': 'forged',
          },
        },
      }),
    ),
  );
  await call.sendAll(events);
});

test('defect 31: its projects and those of the hub, or of a neighbour, are not confused', async () => {
  const call = await stage.agent({ name: rogue, mode: 'autonomous' });
  // "rogue" and "next-team" make the same name as "rogue-next" and "team".
  const names = ['next-team', 'own', 'guarded', `../${namespace}`];
  await call.sendAll(names.flatMap((name) => about(targets.appProject, project(name, { sourceRepos: ['evil'] }))));
  const { client } = stage.hub.hub;
  const mirror = await client.get(pairAppProjects, { namespace, name: `${neighbour}-team` });
  expect(mirror?.spec.sourceNamespaces).toEqual([neighbour]);
});

test('the destinations, projects and namespaces that it sends for its mirrors are ignored', async () => {
  const call = await stage.agent({ name: rogue, mode: 'autonomous' });
  const spec = {
    project: 'guarded',
    destination: { name: other, server: 'https://kubernetes.default.svc', namespace: 'x' },
  };
  const grasping = project('mine', {
    sourceNamespaces: [other, '*'],
    destinations: [{ name: other, server: '*', namespace: '*' }],
  });
  await call.sendAll([
    objectEvent(targets.application, eventTypes.create, app('mine', { spec }), { source: agentSource }),
    objectEvent(targets.appProject, eventTypes.create, grasping, { source: agentSource }),
  ]);
  const { client } = stage.hub.hub;
  const mirror = await until('it is mirrored', () => client.get(pairApplications, { namespace: rogue, name: 'mine' }));
  expect(mirror.spec).toMatchObject({ project: `${rogue}-guarded`, destination: { name: rogue, namespace: 'x' } });
  expect(mirror.spec.destination).not.toHaveProperty('server');
  const projectMirror = await until('so is the project', () =>
    client.get(pairAppProjects, { namespace, name: `${rogue}-mine` }),
  );
  expect(projectMirror.spec).toMatchObject({
    sourceNamespaces: [rogue],
    destinations: [
      { name: rogue, server: `https://argocd-agent-resource-proxy:9090\\?agentName=${rogue}`, namespace: '*' },
    ],
  });
});

test('kinds that an autonomous agent does not own are refused', async () => {
  const call = await stage.agent({ name: rogue, mode: 'autonomous' });
  const secret = { metadata: { name: `cluster-${other}`, namespace, uid: 'u' }, data: { server: 'eA==' }, spec: {} };
  const resync = [eventTypes.requestUpdate, eventTypes.requestSyncedResourceList];
  await call.sendAll([
    ...types.flatMap((type) =>
      ['repository', 'gpgkey', 'applicationset', 'redis', 'resource'].map((target) =>
        messageEvent(target as WireTarget, type, secret, { source: agentSource }),
      ),
    ),
    ...resync.map((type) =>
      messageEvent(
        targets.resourceResync,
        type,
        { kind: 'Repository', name: `cluster-${other}`, namespace, uid: 'u', checksum: null },
        { source: agentSource },
      ),
    ),
  ]);
});

test('defect 44: an agent cannot change its mode by itself', async () => {
  for (const [name, was, wanted] of [
    [evil, 'managed', 'autonomous'],
    [rogue, 'autonomous', 'managed'],
  ] as const) {
    await stage.agent({ name, mode: was });
    const attacker = await stage.attacker({ name });
    const { code, message } = await attacker.login(wanted);
    expect([code, message]).toEqual([16, expect.stringContaining(`pinned to ${was}`)]);
  }
  for (const mode of ['', 'Managed', 'principal', '__proto__', 'x'.repeat(10_000)]) {
    const attacker = await stage.attacker();
    expect((await attacker.login(mode)).code).not.toBe(0);
  }
});

test('a flood of requests whose answers it never reads', async () => {
  const call = await stage.agent({ name: rogue, mode: 'autonomous' });
  call.isPolite = false;
  for (let index = 0; index < 20_000; index++) {
    const told = { kind: 'Application', name: `made-up-${index}`, namespace: rogue, uid: `u${index}` };
    await call.send(
      messageEvent(targets.resourceResync, eventTypes.responseSyncedResource, told, { source: agentSource }),
    );
  }
  await call.settle();
});

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

const spoilt = effort(1_000, 5_000);

test(`${spoilt} spoilt messages of an autonomous agent (SEED=${seed})`, async () => {
  const random = new Random(seed);
  const origin = { source: agentSource };
  const operated = { ...app('mine'), operation: { sync: {} } };
  const told = { kind: 'Application', name: 'mine', namespace: rogue, uid: 'u', checksum: null };
  const messages = [
    ...types.flatMap((type) => [
      objectEvent(targets.application, type, operated, origin),
      objectEvent(targets.application, type, app('other'), origin),
      objectEvent(targets.appProject, type, project('mine'), origin),
    ]),
    messageEvent(targets.resourceResync, eventTypes.responseSyncedResource, told, origin),
    messageEvent(targets.resourceResync, eventTypes.requestResourceResync, {}, origin),
    messageEvent(targets.resourceResync, eventTypes.requestUpdate, told, origin),
  ].map(eventBytes);
  const words = [
    ...Object.values(targets),
    ...types,
    ...['mine', 'own', 'next-team', 'guarded', neighbour, other, namespace, '', '__proto__'],
    ...['metadata', 'annotations', 'finalizers', 'deletionTimestamp', 'spec', 'destination', 'project', 'status'],
    ...['argocd.argoproj.io/source-uid', 'argocd.argoproj.io/refresh', 'resources-finalizer.argocd.argoproj.io'],
  ];
  let call = await stage.agent({ name: rogue, mode: 'autonomous' });
  for (let count = 0; count < spoilt; count++) {
    if (call.isOver) {
      call = await stage.agent({ name: rogue, mode: 'autonomous' });
    }
    await call.write(frame(mutated(messages, words, random)));
  }
  await Promise.race([call.end, call.settle()]);
});
