import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { effort, until } from '../../lib/base/testing.ts';
import { configMaps, type KubeClient } from '../../lib/kube/index.ts';
import { fleetGitOpsClusters } from '../fleet/index.ts';
import { ocmPlacements } from '../ocm/index.ts';
import { namespace } from '../pair/index.ts';
import { ApplicationCheck, type ApplicationPlaces } from './application-check.ts';
import { type EnrolledFleet, modeLabel, startEnrolledFleet } from './enrolled-fleet.ts';
import { sincePrevious, type TestedVersion, versionRepository } from './previous.ts';

// A fleet that the chart enrolls, of combinations of versions of controller, principal and agents: one after the other, so that each
// step is an upgrade or a rollback of one of them. The first four are an upgrade in its order; every other one is there with THOROUGH=1.

const steps: readonly (readonly [TestedVersion, TestedVersion, TestedVersion])[] = [
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
const combinations = steps
  .slice(0, effort(4, steps.length))
  .map(
    ([controller, principal, agent], index) =>
      [
        index,
        `controller ${controller}, principal ${principal}, agents ${agent}`,
        { controller, principal, agent },
      ] as const,
  );

/** Which version each part of a fleet is. The controller's is that of the chart, too. */
interface FleetVersions {
  readonly controller: TestedVersion;
  readonly principal: TestedVersion;
  readonly agent: TestedVersion;
}

const modes = ['managed', 'autonomous'] as const;
type Mode = (typeof modes)[number];
const patient = { timeoutMs: 90_000 };
const tracked = { name: 'tracked', namespace: 'default' };

describe(`an enrolled fleet ${sincePrevious}`, { tags: 'version-before' }, () => {
  let fleet: EnrolledFleet;
  let checks: ReadonlyMap<Mode, ApplicationCheck>;

  beforeAll(async () => {
    fleet = await startEnrolledFleet({ modes, isArgoCdPlayed: true });
    checks = new Map(modes.map((mode) => [mode, new ApplicationCheck(placesOf(mode))]));
  });
  afterAll(async () => {
    await fleet?.stop();
  });
  beforeEach(() => onTestFailed(async () => console.error(await fleet.troubles())));

  const clusterOf = (mode: Mode) => {
    const found = fleet.clusters.get(mode);
    if (found?.controller === undefined) {
      throw new Error(`there is no ${mode} cluster`);
    }
    return { ...found, controller: found.controller };
  };
  const placesOf = (mode: Mode): ApplicationPlaces => {
    const { cluster, controller } = clusterOf(mode);
    const { name, client } = cluster;
    const there =
      mode === 'managed'
        ? { onHub: namespace, destination: { name, namespace: 'shop' } }
        : { onHub: name, destination: { name: 'in-cluster', namespace: 'shop' } };
    return { mode, hub: fleet.hub.client, cluster: client, controller, ...there };
  };

  async function checkLive(mode: Mode, step: number): Promise<void> {
    const { cluster } = clusterOf(mode);
    await cluster.client.mergePatch(configMaps, tracked, { data: { step: String(step) } });
    await until(
      'the object is read',
      async () => {
        const { status, text } = await fleet.readLive(
          cluster.name,
          `/api/v1/namespaces/default/configmaps/${tracked.name}`,
        );
        expect({ status, text }).toEqual({ status: 200, text: expect.stringContaining(`"step":"${step}"`) });
        return true;
      },
      patient,
    );
  }

  test.each(combinations)('%i: %s', async (step, _, versions: FleetVersions) => {
    const began = performance.now();
    await fleet.deploy(versions.controller, valuesOf(versions));
    if (step === 0) {
      await enrollAutonomous(fleet.hub.client);
    }
    await fleet.isSettled(tagOf(versions));
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    if (step === 0) {
      for (const mode of modes) {
        await checks.get(mode)?.begin();
        const annotations = { 'argocd.argoproj.io/tracking-id': `lasting:/ConfigMap:default/${tracked.name}` };
        await clusterOf(mode).cluster.client.create(configMaps, { metadata: { ...tracked, annotations }, data: {} });
      }
    }
    await Promise.all(modes.map((mode) => checks.get(mode)?.check(`${mode}-${step}`)));
    await Promise.all(modes.map((mode) => checkLive(mode, step)));
    console.log(`${JSON.stringify(versions)}: all is the version that it is to be, and connected, after ${seconds} s`);
  });
});

const tagOf = ({ principal, agent }: FleetVersions) => `${principal}-${agent}`;

function valuesOf(versions: FleetVersions): object {
  const port = process.getuid?.() === 0 ? 443 : 8443;
  const labelSelector = { matchLabels: { [modeLabel]: 'managed' } };
  return {
    image: versionRepository,
    tag: versions.controller,
    argoCDAgent: { image: `${versionRepository}:${tagOf(versions)}` },
    hubArgoCD: { install: 'false' },
    principal: { service: { port }, namespaceCreate: { enable: true } },
    controller: { rolloutStrategy: { type: 'All' } },
    gitOpsCluster: {
      argoCDAgentAddon: { argoCD: 'Existing' },
      placement: { spec: { predicates: [{ requiredClusterSelector: { labelSelector } }] } },
    },
  };
}

/** A second GitOpsCluster, whose cluster owns its Applications. */
async function enrollAutonomous(hub: KubeClient): Promise<void> {
  const name = 'autonomous';
  const labelSelector = { matchLabels: { [modeLabel]: name } };
  const key = { namespace, name };
  await hub.create(ocmPlacements, {
    metadata: key,
    spec: { predicates: [{ requiredClusterSelector: { labelSelector } }] },
  });
  const placementRef = { apiVersion: 'cluster.open-cluster-management.io/v1beta1', kind: 'Placement', name };
  const argoCDAgentAddon = { mode: name, argoCD: 'Existing' };
  await hub.create(fleetGitOpsClusters, { metadata: key, spec: { placementRef, argoCDAgentAddon } });
}
