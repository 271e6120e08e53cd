import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps, type KubeClient } from '../../lib/kube/index.ts';
import { type ArgoObject, application, namespace, pairApplications } from '../pair/index.ts';
import { type EnrolledFleet, type FleetVersions, startEnrolledFleet } from './enrolled-fleet.ts';
import { noPrevious, sincePrevious, type Version } from './previous.ts';

// A fleet that the chart enrolls, of every combination of versions of controller, principal and agents: one after the other,
// so that each step is an upgrade or a rollback of one of them.

const steps: readonly (readonly [Version, Version, Version])[] = [
  ['previous', 'previous', 'previous'],
  ['current', 'previous', 'previous'],
  ['current', 'current', 'previous'],
  ['current', 'current', 'current'],
  ['current', 'previous', 'current'],
  ['previous', 'previous', 'current'],
  ['previous', 'current', 'current'],
  ['previous', 'current', 'previous'],
  ['previous', 'previous', 'previous'],
];
const combinations = steps.map(
  ([controller, principal, agent], index) =>
    [
      index,
      `controller ${controller}, principal ${principal}, agents ${agent}`,
      { controller, principal, agent },
    ] as const,
);
const patient = { timeoutMs: 90_000 };
const lasting = 'lasting';
const tracked = { name: 'tracked', namespace: 'default' };

describe.skipIf(noPrevious !== undefined)(`an enrolled fleet ${sincePrevious}`, () => {
  let fleet: EnrolledFleet;
  /** UIDs of the lasting Applications and their copies. */
  let uids: Record<string, string | undefined>;

  beforeAll(async () => {
    fleet = await startEnrolledFleet();
  });
  afterAll(async () => {
    await fleet?.stop();
  });
  beforeEach(() => onTestFailed(async () => console.error(await fleet.troubles())));

  /** Where an Application of a mode is: its owner's side, the hub, the cluster. */
  const sides = {
    managed: () => ({
      owner: fleet.hub.client,
      hub: fleet.hub.client,
      onHub: namespace,
      cluster: fleet.managed.client,
      destination: { name: fleet.managed.name, namespace: 'shop' },
    }),
    autonomous: () => ({
      owner: fleet.autonomous.client,
      hub: fleet.hub.client,
      onHub: fleet.autonomous.name,
      cluster: fleet.autonomous.client,
      destination: { name: 'in-cluster', namespace: 'shop' },
    }),
  };
  const modes = ['managed', 'autonomous'] as const;
  type Mode = (typeof modes)[number];
  const get = (client: KubeClient, where: string, name: string) =>
    client.get(pairApplications, { namespace: where, name });
  const both = async (mode: Mode, name: string) => {
    const { hub, onHub, cluster } = sides[mode]();
    return await Promise.all([get(hub, onHub, name), get(cluster, namespace, name)]);
  };
  const pathOf = (found: ArgoObject | undefined) => (found?.spec.source as { path?: string } | undefined)?.path;
  const create = (mode: Mode, name: string) => {
    const { owner, destination } = sides[mode]();
    return owner.create(pairApplications, application({ name, namespace, spec: { destination } }));
  };
  const edit = (mode: Mode, name: string, path: string) =>
    sides[mode]().owner.mergePatch(pairApplications, { namespace, name }, { spec: { source: { path } } });
  const uidsNow = async () => {
    const found = await Promise.all(modes.map((mode) => both(mode, lasting)));
    return Object.fromEntries(
      modes.map((mode, index) => [mode, found[index]?.map((one) => one?.metadata.uid).join(' and ')]),
    );
  };

  /** What users do with Applications, end to end. */
  async function checkApplications(mode: Mode, step: number): Promise<void> {
    const name = `step-${step}`;
    await create(mode, name);
    await until('it is on both sides', async () => (await both(mode, name)).every(Boolean), patient);
    for (const each of [name, lasting]) {
      await edit(mode, each, `step-${step}`);
      await until(
        'the edit',
        async () => (await both(mode, each)).every((one) => pathOf(one) === `step-${step}`),
        patient,
      );
      await until(
        'the status on the hub',
        async () => {
          const [onHub, onCluster] = await both(mode, each);
          const status = (onCluster?.status?.sync ?? {}) as {
            comparedTo?: { source?: { path?: string } };
            status?: string;
          };
          expect(status.comparedTo?.source?.path).toBe(`step-${step}`);
          expect((onHub?.status?.sync as { status?: string } | undefined)?.status).toBe(status.status);
        },
        patient,
      );
    }
    const { hub, onHub, owner } = sides[mode]();
    const id = `${mode}-${step}`;
    const operation = { info: [{ name: 'id', value: id }], sync: { revision: 'HEAD' } };
    await hub.mergePatch(pairApplications, { namespace: onHub, name }, { operation });
    await until(
      'the sync has run',
      async () => {
        const states = (await both(mode, name)).map(
          (one) => one?.status?.operationState as { phase?: string } | undefined,
        );
        expect(states).toEqual([
          expect.objectContaining({ phase: 'Succeeded', operation: expect.objectContaining(operation) }),
          expect.objectContaining({ phase: 'Succeeded' }),
        ]);
      },
      patient,
    );
    expect(fleet.controllers[mode].runs.filter((run) => run.id === id)).toHaveLength(1);
    await owner.delete(pairApplications, { namespace, name });
    await until('it is gone', async () => (await both(mode, name)).every((one) => one === undefined), patient);
  }

  async function checkLive(mode: Mode, step: number): Promise<void> {
    const cluster = fleet[mode];
    await cluster.client.mergePatch(configMaps, tracked, { data: { step: String(step) } });
    await until(
      'the object is read',
      async () => {
        const { status, text } = await fleet.readLive(
          cluster.name,
          `/api/v1/namespaces/default/configmaps/${tracked.name}`,
        );
        expect({ status, text }).toEqual({ status: 200, text: expect.stringContaining(`"step":"${step}"`) });
      },
      patient,
    );
  }

  test.each(combinations)('%i: %s', async (step, _, versions: FleetVersions) => {
    const began = performance.now();
    await fleet.become(versions);
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    if (step === 0) {
      for (const mode of modes) {
        await create(mode, lasting);
        const annotations = { 'argocd.argoproj.io/tracking-id': `${lasting}:/ConfigMap:default/${tracked.name}` };
        await fleet[mode].client.create(configMaps, { metadata: { ...tracked, annotations }, data: {} });
      }
      await until('the copies', async () => {
        for (const mode of modes) {
          expect((await both(mode, lasting)).every(Boolean)).toBe(true);
        }
      });
      uids = await uidsNow();
    }
    await Promise.all(modes.map((mode) => checkApplications(mode, step)));
    await Promise.all(modes.map((mode) => checkLive(mode, step)));
    expect(await uidsNow()).toEqual(uids);
    console.log(`${JSON.stringify(versions)}: all is the version that it is to be, and connected, after ${seconds} s`);
  });
});
