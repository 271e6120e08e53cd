import { get, type IncomingMessage } from 'node:http';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { AppProject } from '../../lib/argocd/index.ts';
import { until } from '../../lib/base/testing.ts';
import { PageAccess } from './access/page-access.ts';
import { streamCluster, streamOverview } from './fleet-streams.ts';
import { FleetLens } from './model/fleet-lens.ts';
import { FleetModel } from './model/fleet-model.ts';
import { heldViewer } from './testing/held-viewer.ts';
import { type MadeUpFleet, madeUpExtensionKeys, serveMadeUpFleet } from './testing/made-up-fleet.ts';

describe('viewers at once', () => {
  let fleet: MadeUpFleet;
  const open: IncomingMessage[] = [];
  afterEach(async () => {
    for (const viewer of open.splice(0)) {
      viewer.destroy();
    }
    await fleet.close();
  });
  /** A fleet before which a proxy of this machine says who comes. */
  const start = async () => {
    fleet = await serveMadeUpFleet(
      { one: {} },
      { policy: { 'policy.default': 'role:readonly' }, proxies: { loopback: true, names: new Set() } },
    );
  };
  const visit = (name: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const url = `${fleet.url}events?since=${fleet.model.revision}`;
      get(url, { headers: { 'x-forwarded-user': name }, agent: false }, (viewer) => {
        open.push(viewer.on('error', () => undefined).resume());
        resolve(viewer);
      }).on('error', reject);
    });
  const statuses = async (names: readonly string[]) =>
    (await Promise.all(names.map(visit))).map(({ statusCode }) => statusCode);

  test('20 of one name; others are not kept out, and whoever leaves makes room', async () => {
    await start();
    const [first] = await Promise.all(Array.from({ length: 20 }, () => visit('ann')));
    const refused = await visit('ann');
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '30']);
    expect(await statuses(['ben'])).toEqual([200]);
    first?.destroy();
    await until('there is room', async () => (await visit('ann')).statusCode === 200);
    expect(await statuses(['ann'])).toEqual([503]);
  });

  test('200 of all', async () => {
    await start();
    const names = Array.from({ length: 200 }, (_, index) => `viewer-${index % 10}`);
    expect(new Set(await statuses(names))).toEqual(new Set([200]));
    expect(await statuses(['somebody'])).toEqual([503]);
    open[0]?.destroy();
    await until('there is room', async () => (await visit('somebody')).statusCode === 200);
  });
});

describe('a change of rights', () => {
  const closing: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) {
      await close();
    }
  });
  const project = (index: number): AppProject => ({
    metadata: { name: 'tenant', namespace: 'argocd' },
    spec: { roles: [{ name: `r${index}`, policies: [`p, proj:tenant:r${index}, clusters, get, x${index}, deny`] }] },
  });
  const start = async (policy: Record<string, string>) => {
    const fleet = await serveMadeUpFleet({ one: {}, two: {} }, { policy });
    closing.push(() => fleet.close());
    const open = async (account: string, path = 'events', headers: Record<string, string> = {}) => {
      const session = await fleet.session(account);
      const ending = new AbortController();
      closing.push(() => ending.abort());
      const answer = await fetch(`${fleet.url}${path}?since=${fleet.model.revision}`, {
        headers: { authorization: `Bearer ${session}`, ...headers },
        signal: ending.signal,
      });
      const seen = { text: '', hasEnded: false };
      void (async () => {
        for await (const chunk of answer.body ?? []) {
          seen.text += Buffer.from(chunk).toString();
        }
        seen.hasEnded = true;
      })().catch(() => undefined);
      return seen;
    };
    return { fleet, open };
  };
  const extension = (of: string) => ({
    'x-fleet-page-key': madeUpExtensionKeys.clusters,
    'argocd-application-name': `argocd:${of}`,
    'argocd-project-name': of,
  });

  test('ends the streams of those who see something else now, and no others', async () => {
    const { fleet, open } = await start({ 'policy.csv': 'p, alice, clusters, get, *one*, allow' });
    const admin = await open('admin');
    const alice = await open('alice');
    const tenants = await open('admin', 'extension/clusters', extension('tenant'));
    const others = await open('admin', 'extension/clusters', extension('other'));
    for (let index = 0; index < 50; index++) {
      fleet.project(project(index));
    }
    await until('whom it may concern has been told', () => tenants.hasEnded);
    expect([admin, alice, others].map(({ hasEnded }) => hasEnded)).toEqual([false, false, false]);
    expect(tenants.text).toContain('event: reload');
  });

  test('is looked at once at first, then every five seconds at most', async () => {
    const { fleet, open } = await start({ 'policy.csv': 'p, alice, clusters, get, *one*, allow' });
    const identified = vi.spyOn(PageAccess.prototype, 'identify');
    closing.push(() => identified.mockRestore());
    await open('alice');
    await until('the stream is there', () => identified.mock.calls.length === 1);
    for (let index = 0; index < 50; index++) {
      fleet.project(project(index));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(identified.mock.calls.length).toBe(2);
  });

  test('that takes a cluster away ends the stream at once', async () => {
    const { fleet, open } = await start({ 'policy.csv': 'p, alice, clusters, get, *one*, allow' });
    const alice = await open('alice');
    fleet.policy({ 'policy.csv': 'p, alice, clusters, get, *two*, allow' });
    await until('it has ended', () => alice.hasEnded);
    expect(alice.text).toContain('event: reload');
  });
});

describe('messages', () => {
  const ending = new AbortController();
  afterEach(() => void vi.useRealTimers());

  /** A fleet of this size with a stream to a viewer of it. */
  async function watched(size: number) {
    const viewer = await heldViewer();
    vi.useFakeTimers();
    const agents = Array.from({ length: size }, (_, index) => `agent-${index}`);
    let pending = 0;
    const model = new FleetModel({
      agents: () => agents,
      messages: async () => 0,
      signs: (agent) => ({
        agent,
        title: agent,
        mode: 'managed',
        version: '1',
        connectedSince: new Date(0),
        lastSeen: undefined,
        pending,
        certificate: undefined,
        applications: { total: 0, health: {}, sync: {} },
      }),
    });
    const lens = new FleetLens(model, { isWhole: true, sees: () => true });
    const change = (agent = 'agent-0') => {
      pending += 1;
      model.touch(agent);
    };
    const entries = () => viewer.messages().flatMap(({ body }) => Object.keys(body.entries as object));
    return { agents, model, lens, viewer, change, entries };
  }
  const overview = ({ viewer, lens, model }: Awaited<ReturnType<typeof watched>>) =>
    streamOverview({
      response: viewer.response,
      lens,
      content: { entry: ({ facts }) => ({ ...facts, filling: 'x'.repeat(1_000) }), regions: {} },
      since: model.revision,
      signal: ending.signal,
    });

  test('ten a second on the first page, however fast the fleet changes', async () => {
    const fleet = await watched(3);
    overview(fleet);
    await vi.advanceTimersByTimeAsync(1_000);
    const before = fleet.viewer.messages().length;
    for (let ms = 0; ms < 3_000; ms++) {
      fleet.change();
      await vi.advanceTimersByTimeAsync(1);
    }
    const sent = fleet.viewer.messages().length - before;
    expect(sent).toBeLessThanOrEqual(31);
    expect(sent).toBeGreaterThan(25);
  });

  test('one a second on the page of a cluster, and none for the others', async () => {
    const fleet = await watched(3);
    const { viewer, lens, model } = fleet;
    const regions = () => ({ facts: String(model.get('agent-0')?.facts.pending) });
    streamCluster({ response: viewer.response, lens, agent: 'agent-0', regions, signal: ending.signal });
    for (let ms = 0; ms < 5_000; ms += 10) {
      fleet.change();
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(viewer.messages().length).toBeLessThanOrEqual(6);
    expect(viewer.messages().length).toBeGreaterThanOrEqual(4);
    await vi.advanceTimersByTimeAsync(2_000);
    const settled = viewer.messages();
    expect(settled.at(-1)?.body).toMatchObject({ regions: regions() });
    fleet.change('agent-1');
    await vi.advanceTimersByTimeAsync(5_000);
    expect(viewer.messages()).toEqual(settled);
  });

  test('a hundred clusters in one, all of them in the end', async () => {
    const fleet = await watched(250);
    overview(fleet);
    for (const agent of fleet.agents) {
      fleet.change(agent);
    }
    await vi.advanceTimersByTimeAsync(1_000);
    const sizes = fleet.viewer.messages().map(({ body }) => Object.keys(body.entries as object).length);
    expect(Math.max(...sizes)).toBe(100);
    expect(new Set(fleet.entries())).toEqual(new Set(fleet.agents));
    expect(fleet.entries().length).toBe(250);
  });

  test('a slow viewer gets each cluster once, as it is then', async () => {
    const fleet = await watched(300);
    overview(fleet);
    await vi.advanceTimersByTimeAsync(0);
    fleet.viewer.hold();
    for (let round = 0; round < 50; round++) {
      for (const agent of fleet.agents) {
        fleet.change(agent);
      }
      await vi.advanceTimersByTimeAsync(100);
    }
    fleet.viewer.take();
    await vi.advanceTimersByTimeAsync(100);
    // What had been written before it became slow, and then each once.
    expect(fleet.entries().length).toBeLessThanOrEqual(100 + 300);
    expect(new Set(fleet.entries())).toEqual(new Set(fleet.agents));
  });
});
