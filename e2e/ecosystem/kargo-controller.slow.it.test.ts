import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { type KubeObject, namespaces, resourceType } from '../../lib/kube/index.ts';
import { type FleetApplication, fleetApplications, isSyncedAndHealthy } from '../fleet/index.ts';
import { installCrds, readCrds } from '../hub/index.ts';
import { namespace, Program } from '../pair/index.ts';
import { waitForObject } from '../testbed/index.ts';
import { type DeliveredPair, startDeliveredPair } from './delivered-pair.ts';

// Kargo's own controller on the hub promotes commits to an Application of an agent's cluster, whose Argo CD deploys them.
// KARGO_BIN=<file> is its program (`cmd/controlplane`), KARGO_SOURCE=<folder> its source tree with the CRDs.

const { KARGO_BIN: executable = '', KARGO_SOURCE: source = '' } = process.env;
const project = 'shop';
const stage = 'test';
const origin = { kind: 'Warehouse', name: 'shop' };

interface KargoObject extends KubeObject {
  spec?: object;
  origin?: object;
  commits?: object[];
  status?: { phase?: string; message?: string; health?: { status?: string }; lastPromotion?: { name?: string } };
}
const kind = (name: string, plural: string) =>
  resourceType<KargoObject>({ group: 'kargo.akuity.io', version: 'v1alpha1', kind: name, plural, namespaced: true });
const stages = kind('Stage', 'stages');
const freights = kind('Freight', 'freights');
const promotions = kind('Promotion', 'promotions');

let fleet: DeliveredPair;
let kargo: Program;
let pair: DeliveredPair['pair'];
let application: { namespace: string; name: string };

beforeAll(async () => {
  fleet = await startDeliveredPair({ namespaces: ['shop'] });
  pair = fleet.pair;
  application = { namespace: pair.name, name: 'shop' };
  const { client, kubeconfig } = pair.hub;
  await installCrds(client, await readCrds(join(source, 'charts/kargo/resources/crds')));
  for (const [name, labels] of [
    ['kargo', {}],
    [project, { 'kargo.akuity.io/project': 'true' }],
  ] as const) {
    await client.create(namespaces, { metadata: { name, labels } });
  }
  const steps = [{ uses: 'argocd-update', config: { apps: [application] } }];
  await client.create(stages, {
    metadata: { namespace: project, name: stage },
    spec: { requestedFreight: [{ origin, sources: { direct: true } }], promotionTemplate: { spec: { steps } } },
  });
  kargo = new Program(
    ['controller'],
    {
      KUBECONFIG: kubeconfig,
      ARGOCD_KUBECONFIG: kubeconfig,
      ARGOCD_NAMESPACE: namespace,
      IS_DEFAULT_CONTROLLER: 'true',
      CREDENTIAL_PROVIDERS_ENABLED: 'true',
      TMPDIR: fleet.folder,
    },
    executable,
  );
  kargo.start();
  await kargo.says(/Argo CD integration is enabled/);
}, 600_000);
afterAll(async () => {
  await kargo?.stop('SIGKILL');
  await fleet?.stop();
});
beforeEach(() =>
  onTestFailed(async () => {
    const found = [await pair.hub.client.list(promotions), await pair.hub.client.list(stages)];
    console.error([await fleet.troubles(), JSON.stringify(found, null, 1), kargo.output.slice(-6_000)].join('\n---\n'));
  }),
);

/** A user promotes a commit. */
async function promote(name: string, commit: string): Promise<void> {
  const { client } = pair.hub;
  const repoURL = fleet.git.url('shop');
  const freight = `freight-${name}`;
  await client.create(freights, {
    metadata: { namespace: project, name: freight },
    origin,
    commits: [{ repoURL, id: commit }],
  });
  const sources = [{ repoURL, desiredRevision: commit, updateTargetRevision: true }];
  const steps = [{ uses: 'argocd-update', config: { apps: [{ ...application, sources }] } }];
  const { uid = '' } = (await client.get(stages, { namespace: project, name: stage }))?.metadata ?? {};
  // Kargo's webhook makes the Stage the owner, by which its controller finds the Promotion's Stage.
  const ownerReferences = [
    { apiVersion: 'kargo.akuity.io/v1alpha1', kind: 'Stage', name: stage, uid, controller: true },
  ];
  await client.create(promotions, {
    metadata: { namespace: project, name, ownerReferences },
    spec: { stage, freight, steps },
  });
}

const inPhase = (name: string, phase: string) =>
  waitForObject(pair.hub.client, promotions, { namespace: project, name }, (found) => found?.status?.phase === phase);

const files = (text: string) => ({
  'shop.yaml': `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: shop }\ndata: { text: ${text} }\n`,
});

/** The commits that the cluster's Argo CD has deployed, in order, each as often as it did. */
async function deployed(): Promise<string[]> {
  const found = await pair.managed.client.get(fleetApplications, { namespace, name: 'shop' });
  const history = (found?.status?.history ?? []) as { revision: string }[];
  return history.map(({ revision }) => revision);
}

describe("Kargo's own controller", { tags: 'kargo' }, () => {
  const commits: string[] = [];

  test('a promotion is deployed on the cluster, and succeeds; the stage is healthy', async () => {
    commits.push(await fleet.git.commit('shop', files('one'), 'one'));
    await pair.hub.client.create(fleetApplications, {
      metadata: { ...application, annotations: { 'kargo.akuity.io/authorized-stage': `${project}:${stage}` } },
      spec: {
        project: 'default',
        source: { repoURL: fleet.git.url('shop'), path: '.', targetRevision: 'main' },
        destination: { name: 'in-cluster', namespace: 'shop' },
      },
    });
    await waitForObject(
      pair.hub.client,
      fleetApplications,
      application,
      (found) => found?.status?.sync?.status === 'OutOfSync',
    );
    await promote('test.1', commits[0] ?? '');
    await inPhase('test.1', 'Succeeded');
    await waitForObject(pair.hub.client, fleetApplications, application, isSyncedAndHealthy);
    await waitForObject(
      pair.hub.client,
      stages,
      { namespace: project, name: stage },
      (found) => found?.status?.health?.status === 'Healthy' && found.status.lastPromotion?.name === 'test.1',
    );
    expect(await deployed()).toEqual(commits);
  }, 600_000);

  test('the next one, too, and each is deployed once', async () => {
    commits.push(await fleet.git.commit('shop', files('two'), 'two'));
    await promote('test.2', commits[1] ?? '');
    await inPhase('test.2', 'Succeeded');
    expect(await deployed()).toEqual(commits);
  }, 600_000);

  test('while the agent is away a promotion waits; it is deployed when the agent is back', async () => {
    commits.push(await fleet.git.commit('shop', files('three'), 'three'));
    await pair.agent.stop();
    await promote('test.3', commits[2] ?? '');
    await inPhase('test.3', 'Running');
    const isAsked = (found: FleetApplication | undefined) =>
      found?.operation !== undefined && found.spec?.source?.targetRevision === commits[2];
    await waitForObject(pair.hub.client, fleetApplications, application, isAsked);
    expect(await deployed()).toEqual(commits.slice(0, 2));
    pair.agent.start();
    await inPhase('test.3', 'Succeeded');
    expect(await deployed()).toEqual(commits);
  }, 600_000);
});
