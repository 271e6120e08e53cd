import { describe, expect, test } from 'vitest';
import { StageAgent } from '../autonomous/testing/stage.ts';
import { ApplicationMirrors, annotations, HubApplications, HubSync } from '../index.ts';
import { agentErrorCondition, agentDisconnectedCondition as type } from '../names.ts';
import { joinPeers, type RecordedSide } from '../testing/join.ts';
import { hubApplication, Lab, type LabPrincipal, sentMessages } from '../testing/lab.ts';
import { sentApplication } from './copy.ts';
import type { DisconnectionOptions } from './hub/hub-applications.ts';

const graceMs = 300_000;
const seen = new Date('2026-01-02T02:00:00.123Z');
const message = (agent: string) =>
  `agent ${agent} has not been connected since 2026-01-02T02:00:00Z: what is shown here is as of then`;

/** A principal to whose fleet these agents belong. */
function principalOf(lab: Lab, members: string[], more: Partial<DisconnectionOptions> = {}): LabPrincipal {
  return lab.principal({ disconnection: { graceMs, members: () => members, lastSeen: () => seen, ...more } });
}

function told(lab: Lab, namespace = 'a', name = 'shop'): string | undefined {
  const conditions = lab.hub.objects.get({ namespace, name })?.status?.conditions ?? [];
  return conditions.find((one) => one.type === type)?.message;
}

/** How many Applications say that their agent is not connected. */
function count(lab: Lab): number {
  return lab.hub.objects.list().filter(({ status }) => status?.conditions?.some((one) => one.type === type)).length;
}

function create(lab: Lab, namespace: string, number: number): void {
  for (let i = 0; i < number; i++) {
    lab.hub.objects.create(hubApplication({ namespace, name: `shop-${i}` }));
  }
}

test('an Application says since when its agent has not been connected, after the grace period and until it is back', async () => {
  const lab = new Lab();
  const error = { type: 'ComparisonError', message: 'm' };
  lab.hub.objects.create(hubApplication({}, { status: { conditions: [error] } }));
  const principal = principalOf(lab, ['a']);
  const connection = principal.connect('a');
  await lab.run(3_600_000);
  expect(lab.hub.writes).toBe(0);
  principal.sync.disconnected('a', connection);
  await lab.run(graceMs - 1);
  expect(told(lab)).toBeUndefined();
  await lab.run(1);
  expect(lab.hub.objects.get({ namespace: 'a', name: 'shop' })?.status?.conditions).toEqual([
    error,
    { type, message: message('a'), lastTransitionTime: '2026-01-02T03:04:05Z' },
  ]);
  expect(principal.applications.disconnectedAgents()).toEqual([{ agent: 'a', applications: 1 }]);
  await lab.run(3_600_000);
  expect(lab.hub.writes, 'it is said once').toBe(1);

  const again = principal.connect('a');
  expect(principal.applications.disconnectedAgents()).toEqual([]);
  await lab.run(1_000);
  expect(lab.hub.objects.get({ namespace: 'a', name: 'shop' })?.status?.conditions).toEqual([error]);
  principal.sync.disconnected('a', again);
  await lab.run(graceMs - 1_000);
  principal.connect('a');
  await lab.run(3_600_000);
  expect(lab.hub.writes, 'a short absence is nothing to tell of').toBe(2);
});

describe('when the principal restarts', () => {
  test('what is said stays while the agent stays away, without a write', async () => {
    const lab = new Lab();
    lab.hub.objects.create(hubApplication());
    const former = principalOf(lab, ['a']);
    await lab.run(graceMs);
    expect(told(lab)).toBe(message('a'));
    former.stop.abort();
    principalOf(lab, ['a']);
    await lab.run(3_600_000);
    expect(told(lab)).toBe(message('a'));
    expect(lab.hub.writes).toBe(1);
  });

  test('an agent that comes back at once causes no write, however long ago it was seen', async () => {
    const lab = new Lab();
    create(lab, 'a', 10);
    const principal = principalOf(lab, ['a']);
    await lab.run(10_000);
    principal.connect('a');
    await lab.run(3_600_000);
    expect(lab.hub.writes).toBe(0);
  });

  test('an agent that was away, and is back, is told of no more', async () => {
    const lab = new Lab();
    lab.hub.objects.create(hubApplication());
    const former = principalOf(lab, ['a']);
    await lab.run(graceMs);
    former.stop.abort();
    const principal = principalOf(lab, ['a']);
    await lab.run(1_000);
    principal.connect('a');
    await lab.run(1_000);
    expect(told(lab)).toBeUndefined();
    expect(lab.hub.writes).toBe(2);
  });

  test('a time that is not known any more does not replace one that was', async () => {
    const lab = new Lab();
    lab.hub.objects.create(hubApplication());
    const former = principalOf(lab, ['a']);
    await lab.run(graceMs);
    former.stop.abort();
    principalOf(lab, ['a'], { lastSeen: () => undefined });
    await lab.run(3_600_000);
    expect(told(lab)).toBe(message('a'));
    expect(lab.hub.writes).toBe(1);
  });

  test.each([
    { what: 'turned off', members: ['a'], more: { graceMs: 0 } },
    { what: 'of no agent of the fleet any more', members: [], more: {} },
  ])('what is $what is not said any more', async ({ members, more }) => {
    const lab = new Lab();
    lab.hub.objects.create(hubApplication());
    const former = principalOf(lab, ['a']);
    await lab.run(graceMs);
    expect(count(lab)).toBe(1);
    former.stop.abort();
    const principal = principalOf(lab, members, more);
    await lab.run(3_600_000);
    expect(count(lab)).toBe(0);
    expect(principal.applications.disconnectedAgents()).toEqual([]);
  });
});

describe('writes', () => {
  test('are at most 100 a second over all agents', async () => {
    const lab = new Lab();
    const agents = Array.from({ length: 200 }, (_, i) => `a${i}`);
    for (const agent of agents) {
      create(lab, agent, 10);
    }
    const principal = principalOf(lab, agents);
    const connections = agents.map((agent) => [agent, principal.connect(agent)] as const);
    await lab.run(1_000);
    for (const [agent, connection] of connections) {
      principal.sync.disconnected(agent, connection);
    }
    await lab.run(graceMs);
    for (let second = 1; second <= 19; second++) {
      const { writes } = lab.hub;
      await lab.run(1_000);
      expect(lab.hub.writes - writes).toBe(100);
    }
    await lab.run(2_000);
    expect(count(lab)).toBe(2_000);
    for (const agent of agents) {
      principal.connect(agent);
    }
    await lab.run(10_000);
    expect(count(lab), 'removals are no faster').toBeGreaterThanOrEqual(990);
    await lab.run(11_000);
    expect(count(lab)).toBe(0);
    expect(lab.hub.writes).toBe(4_000);
  });

  test('that have not had their turn when the agent is back are left out', async () => {
    const lab = new Lab();
    create(lab, 'a', 2_000);
    create(lab, 'b', 10);
    const principal = principalOf(lab, ['a', 'b']);
    await lab.run(graceMs + 1_000);
    expect(count(lab)).toBeLessThan(110);
    principal.connect('a');
    // Virtual time does not wait for long chains of promises.
    for (let step = 0; step < 200; step++) {
      await lab.run(25);
    }
    expect(count(lab), 'another agent need not wait for them').toBe(10);
    expect(told(lab, 'b', 'shop-0')).toBe(message('b'));
    expect(lab.hub.writes).toBeLessThan(250);
  });

  test('that fail are repeated, no faster', async () => {
    const lab = new Lab();
    create(lab, 'a', 200);
    principalOf(lab, ['a']);
    let calls = 0;
    let isAway = true;
    lab.hub.intercept = (call) => {
      calls += call === 'patch' ? 1 : 0;
      if (isAway) {
        throw new Error('connection reset');
      }
    };
    await lab.run(graceMs + 30_000);
    expect(calls).toBeGreaterThan(200);
    expect(calls).toBeLessThan(3_100);
    isAway = false;
    await lab.run(180_000);
    expect(count(lab)).toBe(200);
  });

  test('leave alone what was written meanwhile, although the cache does not show it yet', async () => {
    const lab = new Lab();
    lab.hub.objects.create(hubApplication());
    const principal = principalOf(lab, ['a']);
    await lab.run(graceMs);
    lab.hub.lagMs = 500;
    const ref = { namespace: 'a', name: 'shop' };
    const reported = { type: agentErrorCondition, message: 'refused' };
    const conditions = lab.hub.objects.get(ref)?.status?.conditions ?? [];
    lab.hub.objects.patch(ref, { status: { conditions: [reported, ...conditions] } });
    principal.connect('a');
    await lab.run(5_000);
    expect(lab.hub.objects.get(ref)?.status?.conditions).toEqual([reported]);
  });
});

test('Applications that come while the agent is away say so too, and those that go to another agent do not', async () => {
  const lab = new Lab();
  const principal = lab.principal({
    agentOf: ({ spec }) => spec.destination?.name,
    disconnection: { graceMs, members: () => ['a', 'b'], lastSeen: () => seen },
  });
  principal.connect('b');
  await lab.run(graceMs);
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  expect(told(lab)).toBe(message('a'));
  lab.hub.objects.patch({ namespace: 'a', name: 'shop' }, { status: { conditions: null } });
  await lab.run(1_000);
  expect(told(lab), 'somebody took it away').toBe(message('a'));
  lab.hub.objects.patch({ namespace: 'a', name: 'shop' }, { spec: { destination: { name: 'b' } } });
  await lab.run(1_000);
  expect(told(lab)).toBeUndefined();
  lab.hub.objects.patch({ namespace: 'a', name: 'shop' }, { spec: { destination: { name: 'a' } } });
  await lab.run(1_000);
  expect(told(lab)).toBe(message('a'));
  lab.hub.objects.patch({ namespace: 'a', name: 'shop' }, { spec: { destination: { name: 'in-cluster' } } });
  await lab.run(1_000);
  expect(told(lab), 'it is no agent of the fleet').toBeUndefined();
});

test('the grace period of an agent begins when it comes into the fleet, and what is said ends when it leaves', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  const principal = principalOf(lab, [], { lastSeen: () => undefined });
  await lab.run(graceMs);
  principal.applications.expect('a');
  await lab.run(graceMs - 1);
  expect(told(lab)).toBeUndefined();
  await lab.run(1);
  expect(told(lab)).toBe('agent a has not connected to this principal: what is shown here may be out of date');
  principal.sync.forgetAgent('a');
  await lab.run(1_000);
  expect(told(lab)).toBeUndefined();
  const connection = principal.connect('a');
  principal.applications.expect('a');
  await lab.run(2 * graceMs);
  expect(told(lab), 'it is connected').toBeUndefined();
  principal.sync.forgetAgent('a');
  principal.sync.disconnected('a', connection);
  principal.applications.presenceChanged('a', false);
  await lab.run(2 * graceMs);
  expect(told(lab), 'it is not of the fleet').toBeUndefined();
});

test('what the principal says is not sent to the cluster', async () => {
  const lab = new Lab();
  const error = { type: 'ComparisonError', message: 'm' };
  lab.hub.objects.create(hubApplication({}, { status: { conditions: [error] } }));
  const principal = principalOf(lab, ['a']);
  await lab.run(graceMs);
  expect(told(lab)).toBe(message('a'));
  lab.hub.intercept = (call) => {
    if (call === 'patch') {
      throw new Error('connection reset');
    }
  };
  lab.join(principal, lab.agent());
  await lab.run(1_000);
  expect(told(lab)).toBe(message('a'));
  const [sent] = sentMessages(principal, 'create');
  expect(sent?.object.status?.conditions).toEqual([error]);
  const other = hubApplication({}, { status: { conditions: [error] } });
  expect(
    sentApplication(other, () => false),
    'nothing is copied without need',
  ).toBe(other);
});

/** A principal with the mirrors of autonomous agents, where the namespace decides, or where it does not. */
function mirroringPrincipal(lab: Lab, mapping: 'namespace' | 'destination') {
  const common = lab.common('p');
  const options = { applications: lab.hub, principalUid: 'p', ...common };
  const mirrors: ApplicationMirrors = new ApplicationMirrors({
    ...options,
    presenceChanged: (agent, isThere) => managed.presenceChanged(agent, isThere),
  });
  const managed: HubApplications = new HubApplications({
    ...options,
    agentOf: ({ metadata, spec }) =>
      mapping === 'namespace'
        ? metadata.namespace
        : metadata.annotations?.[annotations.lastUpdated] === undefined
          ? spec.destination?.name
          : undefined,
    disconnection: {
      graceMs,
      members: () => ['a'],
      lastSeen: () => seen,
      agentOfMirror: ({ metadata }) =>
        metadata.annotations?.[annotations.sourceUid] === undefined ? undefined : metadata.namespace,
      ...(mapping === 'destination' ? { namesIn: (agent) => mirrors.namesIn(agent) } : {}),
    },
  });
  const sync = new HubSync({ managed: [managed], autonomous: [mirrors], ...common });
  const stop = new AbortController();
  sync.start(stop.signal);
  sync.expect('a', 'autonomous');
  const side: RecordedSide & { sync: HubSync } = { sync, sent: [], acknowledged: [] };
  return { ...side, managed, stop };
}

test.each(['namespace', 'destination'] as const)(
  'mirrors of an autonomous agent say so too, with %s-based mapping',
  async (mapping) => {
    const lab = new Lab();
    const agent = new StageAgent(lab);
    agent.cluster.objects.create({
      metadata: { namespace: 'argocd', name: 'shop' },
      spec: { project: 'default', destination: { server: 'https://kubernetes.default.svc' } },
      status: { sync: { status: 'Synced' } },
    });
    const joined = (principal: ReturnType<typeof mirroringPrincipal>) =>
      joinPeers(lab.time, principal, agent, { name: 'a', mode: 'autonomous' });
    const first = mirroringPrincipal(lab, mapping);
    const disconnect = joined(first);
    await lab.run(5_000);
    disconnect();
    await lab.run(graceMs + 1_000);
    expect(told(lab)).toBe(message('a'));
    expect(first.managed.disconnectedAgents()).toEqual([{ agent: 'a', applications: 1 }]);

    // The mirror is made again as the agent reported it, and says again that this is old.
    lab.hub.objects.delete({ namespace: 'a', name: 'shop' }, { propagation: 'Background' });
    await lab.run(5_000);
    expect(lab.hub.objects.get({ namespace: 'a', name: 'shop' })?.status?.sync?.status).toBe('Synced');
    expect(told(lab)).toBe(message('a'));

    first.stop.abort();
    const second = mirroringPrincipal(lab, mapping);
    agent.sent.length = 0;
    const { writes } = lab.hub;
    let isAway = true;
    lab.hub.intercept = (call) => {
      if (isAway && call === 'patch') {
        throw new Error('connection reset');
      }
    };
    joined(second);
    await lab.run(5_000);
    expect(told(lab)).toBe(message('a'));
    expect(
      agent.sent.filter(({ target }) => target === 'application'),
      'the mirror is as it should be',
    ).toEqual([]);
    isAway = false;
    await lab.run(60_000);
    expect(told(lab)).toBeUndefined();
    expect(lab.hub.writes - writes).toBe(1);
    expect(agent.application()?.status?.conditions).toBeUndefined();
  },
);

test('whoever writes an Application for a cluster that the project denies does not learn when it was there', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication({}));
  const said = { permits: false };
  const disconnection = { graceMs, members: () => ['a'], lastSeen: () => seen };
  const principal = lab.principal({ disconnection, permits: () => said.permits });
  principal.sync.disconnected('a', principal.connect('a'));
  await lab.run(2 * graceMs);
  expect(told(lab)).toBeUndefined();
  said.permits = true;
  principal.applications.permissionsChanged({ projects: () => true });
  await lab.run(1_000);
  expect(told(lab)).toBe(message('a'));
  said.permits = false;
  principal.applications.permissionsChanged({ projects: () => true });
  await lab.run(1_000);
  expect(told(lab)).toBeUndefined();
});
