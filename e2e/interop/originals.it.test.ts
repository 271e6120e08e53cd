import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { type KubeClient, namespaces } from '../../lib/kube/index.ts';
import {
  type AgentCluster,
  application,
  namespace,
  type Pair,
  pairApplications,
  pairAppProjects,
  startPair,
} from '../pair/index.ts';

// Programs of this project with the real argocd-agent at the other end. The tests play Argo CD.

const original = process.env.ARGOCD_AGENT_BIN || undefined;
const patient = { timeoutMs: 60_000 };
const refresh = 'argocd.argoproj.io/refresh';
const operation = { sync: { revision: 'one' } };
const startedAt = '2026-01-01T00:00:00Z';
const sides = [
  { side: 'our agents, principal of argocd-agent', originals: { principal: original }, isMapped: true },
  { side: 'our agents, principal of argocd-agent', originals: { principal: original }, isMapped: false },
  { side: 'agents of argocd-agent, our principal', originals: { agent: original }, isMapped: true },
  { side: 'agents of argocd-agent, our principal', originals: { agent: original }, isMapped: false },
];

describe.skipIf(original === undefined).each(sides)(
  '$side, mapping by destination: $isMapped (ARGOCD_AGENT_BIN)',
  ({ originals, isMapped }) => {
    let pair: Pair;
    let other: AgentCluster;
    let hub: KubeClient;
    const mapping = isMapped ? ['--destination-based-mapping'] : [];

    beforeAll(async () => {
      pair = await startPair({ originals, principalArgs: mapping, agentArgs: mapping });
      hub = pair.hub.client;
      for (const name of [pair.name, 'cluster2']) {
        await hub.create(namespaces, { metadata: { name } });
      }
      other = await pair.addAgent({ name: 'cluster2', mode: 'autonomous' });
    });
    afterAll(() => pair?.stop());

    const waitFor = <T>(what: string, look: () => Promise<T>) =>
      until(what, look, {
        ...patient,
        details: () =>
          [pair.principal, pair.agent, other.agent].map(({ output }) => output.slice(-2_000)).join('\n---\n'),
      });
    const restart = async (program: Pair['principal']) => {
      await program.stop();
      program.start();
    };

    /** An Application, where users ask for something (`hub`) and where Argo CD works (`cluster`). */
    const ways = [
      {
        mode: 'managed',
        on: () => ({ name: 'shop', namespace: isMapped ? namespace : pair.name }),
        owner: () => hub,
        cluster: () => pair.managed.client,
        destination: () => ({ name: isMapped ? pair.name : 'in-cluster', namespace: 'shop' }),
      },
      {
        mode: 'autonomous',
        on: () => ({ name: 'shop', namespace: 'cluster2' }),
        owner: () => other.cluster.client,
        cluster: () => other.cluster.client,
        destination: () => ({ name: 'in-cluster', namespace: 'shop' }),
      },
    ];

    describe.each(ways)('$mode', ({ mode, on, owner, cluster, destination }) => {
      const local = { name: 'shop', namespace };
      const onHub = () => hub.get(pairApplications, on());
      const onCluster = () => cluster().get(pairApplications, local);
      const own = () => (mode === 'managed' ? on() : local);
      const far = () => (mode === 'managed' ? onCluster() : onHub());
      const phase = (found: Awaited<ReturnType<typeof onHub>>) =>
        (found?.status?.operationState as { phase?: string } | undefined)?.phase;
      const works = (fields: object) => cluster().mergePatch(pairApplications, local, fields);

      test('an Application is created, edited, and its status is reported', async () => {
        const metadata = { annotations: { note: 'x' } };
        const made = application({ ...own(), metadata, spec: { destination: destination() } });
        await owner().create(pairApplications, made);
        await waitFor('it is there', far);
        await owner().mergePatch(pairApplications, own(), { spec: { source: { path: 'blue' } } });
        await waitFor('the edit', async () => JSON.stringify((await far())?.spec.source).includes('blue'));
        await works({ status: { sync: { status: 'Synced' }, health: { status: 'Healthy' } } });
        await waitFor('the status', async () => (await onHub())?.status?.sync);
      });

      test('a change by others is undone', async () => {
        const reach = mode === 'managed' ? cluster() : hub;
        const key = mode === 'managed' ? local : on();
        await reach.mergePatch(pairApplications, key, { spec: { source: { path: 'red' } } });
        await waitFor('the revert', async () => JSON.stringify((await far())?.spec.source).includes('blue'));
      });

      test('a sync that the hub asks for runs, is shown while it runs, and is terminated', async () => {
        await hub.mergePatch(pairApplications, on(), { operation });
        await waitFor('the operation', async () => (await onCluster())?.operation);
        await works({ status: { operationState: { phase: 'Running', operation, startedAt } } });
        await waitFor('it runs', async () => phase(await onHub()) === 'Running');
        expect((await onHub())?.operation, 'what `argocd app terminate-op` needs').toMatchObject(operation);
        await hub.mergePatch(pairApplications, on(), { status: { operationState: { phase: 'Terminating' } } });
        await waitFor('it is to end', async () => phase(await onCluster()) === 'Terminating');
        await works({ operation: null, status: { operationState: { phase: 'Failed', finishedAt: startedAt } } });
        await waitFor('it has ended', async () => phase(await onHub()) === 'Failed' && !(await onHub())?.operation);
      });

      test('a refresh that the hub asks for is passed on, and is over when it is done', async () => {
        // Not `normal`: that is what an agent that has reverted a change asks for by itself.
        await hub.mergePatch(pairApplications, on(), { metadata: { annotations: { [refresh]: 'hard' } } });
        await waitFor('the refresh', async () => (await onCluster())?.metadata.annotations?.[refresh] === 'hard');
        await waitFor('its end', async () => {
          // Argo CD answers as often as it is asked: argocd-agent's agent copies the annotation with every update.
          await works({ metadata: { annotations: { [refresh]: null } } });
          return (await onHub())?.metadata.annotations?.[refresh] === undefined;
        });
      });

      test('after restarts of both sides, changes go on, and a deletion too', async () => {
        const uid = (await onCluster())?.metadata.uid;
        await restart(pair.principal);
        await owner().mergePatch(pairApplications, own(), { spec: { source: { path: 'green' } } });
        await waitFor('the edit', async () => JSON.stringify((await far())?.spec.source).includes('green'));
        await restart(mode === 'managed' ? pair.agent : other.agent);
        await owner().mergePatch(pairApplications, own(), { spec: { source: { path: 'white' } } });
        await waitFor('the edit', async () => JSON.stringify((await far())?.spec.source).includes('white'));
        expect((await onCluster())?.metadata.uid).toBe(uid);
        await owner().delete(pairApplications, own());
        await waitFor('it is gone', async () => (await far()) === undefined);
      });
    });

    test('a mirror of an AppProject that is changed while the principal is away is corrected', async () => {
      const key = { name: 'cluster2-team', namespace };
      const spec = { description: 'One', sourceRepos: ['*'], destinations: [{ server: '*', namespace: '*' }] };
      await other.cluster.client.create(pairAppProjects, { metadata: { name: 'team', namespace }, spec });
      await waitFor('the mirror', () => hub.get(pairAppProjects, key));
      await pair.principal.stop();
      await hub.mergePatch(pairAppProjects, key, { spec: { description: 'Two' } });
      pair.principal.start();
      await waitFor('it is corrected', async () => (await hub.get(pairAppProjects, key))?.spec.description === 'One');
    });
  },
);
