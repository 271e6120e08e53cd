import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { PlayedApplicationController } from '../application-controller/index.ts';
import { type ArgoObject, application, namespace, type Pair, pairApplications, startPair } from '../pair/index.ts';

// The writes that Kargo's promotion step `argocd-update` makes on an Application of the hub: not Kargo itself. One patch sets
// spec.source, `operation` and a hard refresh, and clears status.operationState; then Kargo reads status.operationState until
// it is of this promotion and has the desired revision. Until then it patches again.

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair?.stop());
beforeEach(() =>
  onTestFailed(async () =>
    console.error(
      JSON.stringify([await onHub('shop'), await onCluster('shop')], null, 1),
      pair.agent.output.slice(-3_000),
    ),
  ),
);

interface OperationState {
  phase?: string;
  operation?: { info?: { name: string; value: string }[] };
  syncResult?: { revision?: string };
}

const onHub = async (name: string) =>
  (await pair.hub.client.get(pairApplications, { name, namespace: pair.name })) as ArgoObject;
const onCluster = async (name: string) =>
  (await pair.managed.client.get(pairApplications, { name, namespace })) as ArgoObject;
const promotionOf = (state: unknown) =>
  (state as OperationState | undefined)?.operation?.info?.find(({ name }) => name === 'kargo.akuity.io/promotion')
    ?.value;

/** The patch of one promotion. */
async function promote(name: string, promotion: string, targetRevision: string): Promise<void> {
  await pair.hub.client.mergePatch(pairApplications, { name, namespace: pair.name }, {
    metadata: { annotations: { 'argocd.argoproj.io/refresh': 'hard' } },
    spec: { source: { targetRevision } },
    operation: {
      initiatedBy: { username: 'kargo-controller', automated: true },
      info: [
        { name: 'Reason', value: 'Promotion triggered a sync of this Application resource.' },
        { name: 'kargo.akuity.io/promotion', value: promotion },
      ],
      sync: { revisions: [] },
    },
    status: { operationState: null },
  } as never);
}

/** The cluster's Argo CD takes the operation and runs it to its end. */
async function deploys(name: string, promotion: string, revision: string): Promise<void> {
  const { metadata, spec } = await until('the operation is on the cluster', async () => {
    const found = await onCluster(name);
    return promotionOf({ operation: found.operation }) === promotion && found;
  });
  expect((spec.source as { targetRevision: string }).targetRevision).toBe(revision);
  expect(metadata.annotations?.['argocd.argoproj.io/refresh']).toBe('hard');
  const stop = new AbortController();
  const argoCd = new PlayedApplicationController({ client: pair.managed.client, namespace });
  const running = argoCd.run(stop.signal);
  await until('the operation has ended', async () => argoCd.did('ended').length > 0);
  stop.abort();
  await running;
  expect(argoCd.did('ended').map(({ application }) => application.metadata.name)).toEqual([name]);
}

/** What Kargo waits for. */
const promoted = (name: string, promotion: string, revision: string) =>
  until('the promotion is done', async () => {
    const state = (await onHub(name)).status?.operationState as OperationState | undefined;
    return promotionOf(state) === promotion && state?.phase === 'Succeeded' && state.syncResult?.revision === revision;
  });

test('the same writes: a promotion reaches the cluster, and its end the hub; the next one too', async () => {
  const metadata = { annotations: { 'kargo.akuity.io/authorized-stage': 'shop:test' } };
  await pair.hub.client.create(pairApplications, application({ name: 'shop', namespace: pair.name, metadata }));
  await until('it is on the cluster', () => onCluster('shop'));
  for (const [promotion, revision] of [
    ['test.1', 'aaaa'],
    ['test.2', 'bbbb'],
  ] as const) {
    await promote('shop', promotion, revision);
    await deploys('shop', promotion, revision);
    await promoted('shop', promotion, revision);
    // The hub asks no more.
    await until('the request is over', async () => (await onHub('shop')).operation === undefined);
  }
});

test('the same writes: a promotion that is written twice before its end shows is one operation on the cluster', async () => {
  await pair.hub.client.create(pairApplications, application({ name: 'twice', namespace: pair.name }));
  await until('it is on the cluster', () => onCluster('twice'));
  await promote('twice', 'test.9', 'cccc');
  await until('it is on the cluster', async () => (await onCluster('twice')).operation !== undefined);
  await promote('twice', 'test.9', 'cccc');
  await deploys('twice', 'test.9', 'cccc');
  await promoted('twice', 'test.9', 'cccc');
  await until('the request is over', async () => (await onHub('twice')).operation === undefined);
  // Whatever was on its way before a later edit is there with it.
  const edit = { metadata: { labels: { later: 'yes' } } };
  await pair.hub.client.mergePatch(pairApplications, { name: 'twice', namespace: pair.name }, edit as never);
  await until('a later edit is there', async () => (await onCluster('twice')).metadata.labels?.later === 'yes');
  expect((await onCluster('twice')).operation).toBeUndefined();
});
