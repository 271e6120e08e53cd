import { expect, test } from 'vitest';
import { processRuntime } from '../../../sync/index.ts';
import type { Application, ApplicationMessage, Message } from '../../index.ts';
import { Lab, type LabCluster, sentMessages } from '../../testing/lab.ts';
import { join, joined, ownApplication, StageAgent, StagePrincipal } from '../testing/stage.ts';
import { MirrorRequests } from './mirror-requests.ts';

const local = { namespace: 'argocd', name: 'shop' };
const hubRef = { namespace: 'a', name: 'shop' };
const operation = { sync: { revision: '1' } };
const nothing = () => undefined;
const running = { phase: 'Running', operation, startedAt: 't1' };

let events = 0;
function incoming(type: ApplicationMessage['type'], rest: Partial<Application> = {}): Message {
  const object = ownApplication({ uid: 'u', resourceVersion: '7' }, rest);
  return { target: 'application', type, resourceId: 'shop_u', eventId: `shop_u_${++events}`, object };
}

async function alone() {
  const lab = new Lab();
  const principal = new StagePrincipal(lab);
  const connection = principal.connect();
  principal.receive(incoming('create'));
  await lab.run();
  return { lab, principal, connection };
}

/** Both sides, and an Application of the agent's that the hub shows. */
async function shown() {
  const both = joined();
  both.agent.cluster.objects.create(ownApplication());
  await both.lab.run(3_000);
  return both;
}

/** Requests on one mirror, alone. */
function requestsOn(read: () => Application, sourceUid: () => string | undefined = () => 'u'): MirrorRequests {
  const runtime = processRuntime({ debug: nothing, info: nothing, warn: nothing, error: nothing });
  const view = { versionOf: ({ metadata }: Application) => metadata.resourceVersion ?? '' };
  return new MirrorRequests({ agent: 'a', principalUid: 'p', view, read, sourceUid, runtime });
}

test('an operation whose setting had no answer, and that has ended since, is not set again', async () => {
  const { lab, agent } = await shown();
  const { objects } = agent.cluster;
  let times = 0;
  agent.cluster.intercept = (call, ref) => {
    if (call !== 'patch' || ++times > 1) {
      return;
    }
    objects.patch(ref, { operation, status: { operationState: running } });
    objects.patch(ref, { operation: null, status: { operationState: { phase: 'Succeeded' } } });
    throw new Error('connection reset');
  };
  lab.hub.objects.patch(hubRef, { operation });
  await lab.run(60_000);
  expect(agent.application()?.operation).toBeUndefined();
  expect(times).toBe(1);
  expect(lab.hub.objects.get(hubRef)?.operation).toBeUndefined();
});

/** Argo CD carries out what an Application of the agent asks for. */
function carryOut(objects: LabCluster['objects'], startedAt: string): void {
  const state = { phase: 'Succeeded', operation, startedAt, finishedAt: startedAt };
  objects.patch(local, { operation: null, status: { operationState: state } });
}

test.each([
  ['goes on', (_: Lab, agent: StageAgent) => agent],
  [
    'was restarted',
    (lab: Lab, agent: StageAgent) => {
      agent.stop.abort();
      return new StageAgent(lab, agent.cluster);
    },
  ],
])(
  'an operation that has run does not run again for a principal that lacks its end, if its agent %s',
  async (_, after) => {
    const { lab, agent: first, principal, disconnect } = await shown();
    const { objects } = first.cluster;
    // The hub's API server takes no write of a principal for a while.
    lab.hub.intercept = (call) => {
      if (call === 'patch') {
        throw new Error('no answer');
      }
    };
    lab.hub.objects.patch(hubRef, { operation });
    await lab.run(1_000);
    expect(first.application()?.operation).toEqual(operation);
    carryOut(objects, 't1');
    await lab.run(5_000);
    disconnect();
    principal.stop.abort();
    const agent = after(lab, first);
    // Somebody has written the mirror since: the request that is sent again is the message of another version of it.
    lab.hub.objects.patch(hubRef, { status: { health: { status: 'Progressing' } } });
    let times = 0;
    agent.cluster.intercept = (call) => {
      times += call === 'patch' ? 1 : 0;
    };
    const next = new StagePrincipal(lab, lab.common('next'));
    join(lab, next, agent);
    await lab.run(2_000);
    lab.hub.intercept = () => undefined;
    await lab.run(60_000);
    expect(sentMessages(next, 'set-operation')).toHaveLength(1);
    expect(times, 'it was set again').toBe(0);
    expect(next.mirror()?.operation).toBeUndefined();
    expect(next.mirror()?.status?.operationState).toMatchObject({ phase: 'Succeeded' });

    // The same once more, as argocd-server asks for it, is a new request.
    lab.hub.objects.patch(hubRef, { operation, status: { operationState: null } });
    await lab.run(5_000);
    expect(agent.application()?.operation).toEqual(operation);
  },
);

test.each([
  ['it is over', { phase: 'Succeeded' }, null],
  ['another one runs', { phase: 'Running', startedAt: 't2' }, { sync: { revision: '2' } }],
])('the wish to end an operation does nothing when %s by then', async (_, operationState, next) => {
  const { lab, agent } = await shown();
  const { objects } = agent.cluster;
  objects.patch(local, { operation, status: { operationState: running } });
  await lab.run(100);
  let times = 0;
  agent.cluster.intercept = (call, ref) => {
    if (call === 'patch' && ++times === 1) {
      objects.patch(ref, { operation: next, status: { operationState } });
    }
  };
  lab.hub.objects.patch(hubRef, { status: { operationState: { phase: 'Terminating' } } });
  await lab.run(60_000);
  expect(agent.application()?.status?.operationState).toMatchObject(operationState);
});

test('what an agent says of an operation, or of its end, is no request', async () => {
  const { lab, principal } = await alone();
  principal.receive(incoming('spec-update', { operation }));
  await lab.run(100);
  principal.receive(
    incoming('spec-update', { operation, status: { operationState: { ...running, phase: 'Terminating' } } }),
  );
  await lab.run(60_000);
  expect(principal.mirror()?.status?.operationState).toMatchObject({ phase: 'Terminating' });
  expect([sentMessages(principal, 'set-operation'), sentMessages(principal, 'terminate-operation')]).toEqual([[], []]);
});

test('an operation that the hub sees in progress is not asked for again by a principal that starts', async () => {
  const { lab, principal } = await alone();
  principal.receive(incoming('spec-update', { operation, status: { operationState: running } }));
  await lab.run(100);
  principal.stop.abort();
  const next = new StagePrincipal(lab);
  next.connect();
  await lab.run(60_000);
  expect(next.mirror()?.operation).toEqual(operation);
  expect(sentMessages(next, 'set-operation')).toEqual([]);
});

test('what was asked for on a mirror that is gone is not asked for any more', async () => {
  const { lab, principal, connection } = await alone();
  principal.sync.disconnected('a', connection);
  lab.hub.objects.patch(hubRef, { operation });
  await lab.run(100);
  expect(principal.sync.stats('a').pending).toBeGreaterThan(0);
  principal.sync.connected('a', 'autonomous', { send: () => false, acknowledge: () => undefined });
  principal.receive(incoming('delete'));
  await lab.run(100);
  expect(principal.mirror()).toBeUndefined();
  principal.connect();
  await lab.run(60_000);
  expect(sentMessages(principal, 'set-operation')).toEqual([]);
  expect(principal.sync.stats('a').pending).toBe(0);
});

test('a refresh that was requested before it is known whose mirror it is has not been received', () => {
  let sourceUid: string | undefined;
  const mirror = {
    metadata: { ...hubRef, uid: 'm', annotations: { 'argocd.argoproj.io/refresh': 'normal' } },
    spec: {},
  };
  const requests = requestsOn(
    () => mirror,
    () => sourceUid,
  );
  requests.follow('shop', mirror);
  expect(requests.context(mirror, requests.received('shop')).triggersDelivered).toBe(false);
  sourceUid = 'u';
  requests.follow('shop', mirror);
  expect(requests.context(mirror, requests.received('shop')).triggersDelivered).toBe(false);
  const sent: Message[] = [];
  requests.connected({ send: (message) => sent.push(message) > 0, acknowledge: nothing });
  expect(sent.map(({ type }) => type)).toEqual(['spec-update']);
  requests.acknowledged(sent[0] as { resourceId: string; eventId: string });
  expect(requests.context(mirror, requests.received('shop')).triggersDelivered).toBe(true);
  requests.close();
});

test('a refresh that looks like the one before, whose removal had no answer, is asked for again', () => {
  const refresh = { 'argocd.argoproj.io/refresh': 'normal' };
  const updated = 'argocd-agent.argoproj.io/last-updated';
  const at = (time: string, more = {}) => ({
    metadata: { ...hubRef, uid: 'm', annotations: { [updated]: time, ...more } },
    spec: {},
  });
  let mirror: Application = at('t0', refresh);
  const requests = requestsOn(() => mirror);
  const sent: Message[] = [];
  requests.connected({ send: (message) => sent.push(message) > 0, acknowledge: nothing });
  const isAnswered = () => {
    requests.follow('shop', mirror);
    requests.acknowledged(sent.at(-1) as { resourceId: string; eventId: string });
    return requests.received('shop');
  };
  const first = isAnswered();
  expect(requests.context(mirror, first).triggersDelivered).toBe(true);
  for (const time of ['t1', 't2']) {
    // What is written is the same for each attempt, except for the time.
    requests.expect('shop', mirror, at(''), {
      metadata: { annotations: { 'argocd.argoproj.io/refresh': null, [updated]: time } },
    });
  }
  requests.follow('shop', mirror);
  expect(requests.context(mirror, first).triggersDelivered, 'it is to be removed still').toBe(true);
  expect(sent).toHaveLength(1);
  // No watch has shown the mirror without it.
  mirror = at('t1', refresh);
  const second = isAnswered();
  expect(requests.context(mirror, first).triggersDelivered).toBe(false);
  expect(sent).toHaveLength(2);
  expect(requests.context(mirror, second).triggersDelivered).toBe(true);
  requests.close();
});

test('a report that came before an operation of its agent stood on the mirror answers that, and no request of a user', () => {
  let mirror: Application = { metadata: { ...hubRef, uid: 'm' }, spec: {} };
  const requests = requestsOn(() => mirror);
  requests.follow('shop', mirror);
  const early = requests.received('shop');
  requests.expect('shop', mirror, { ...mirror, operation }, { operation });
  mirror = { ...mirror, operation };
  requests.follow('shop', mirror);
  expect(requests.context(mirror, early).operationDelivered).toBe(true);
  mirror = { ...mirror, operation: { sync: { revision: 'of a user' } } };
  requests.follow('shop', mirror);
  expect(requests.context(mirror, early).operationDelivered).toBe(false);
  requests.close();
});

test.each([
  ['a refresh', { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } }, 'triggersDelivered'],
  ['an operation', { metadata: {}, operation }, 'operationDelivered'],
] as const)('%s that is asked for again is not answered by a report about the first time', (_, asked, isDelivered) => {
  const without: Application = { metadata: { ...hubRef, uid: 'm' }, spec: {} };
  const withIt = { ...without, ...asked, metadata: { ...without.metadata, ...asked.metadata } };
  let mirror: Application = without;
  const requests = requestsOn(() => mirror);
  const sent: Message[] = [];
  requests.connected({ send: (message) => sent.push(message) > 0, acknowledge: nothing });
  const show = (next: Application) => {
    mirror = next;
    requests.follow('shop', next);
  };
  show(withIt);
  requests.acknowledged(sent.at(-1) as { resourceId: string; eventId: string });
  const first = requests.received('shop');
  expect(requests.context(mirror, first)[isDelivered]).toBe(true);
  show(without);
  show({ ...withIt, metadata: { ...withIt.metadata, resourceVersion: '3' } });
  expect(requests.context(mirror, first)[isDelivered]).toBe(false);
  expect(sent).toHaveLength(2);
  requests.acknowledged(sent.at(-1) as { resourceId: string; eventId: string });
  expect(requests.context(mirror, requests.received('shop'))[isDelivered]).toBe(true);
  requests.close();
});
