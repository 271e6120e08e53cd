import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { type Condition, rfc3339 } from '../../lib/kube/index.ts';
import { managedBy, manifestWorks } from '../hub/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

const hub = useHub(borrowCluster);

const argoCdWork = 'argocd-agent-cr-argocd-fleet';
const programWork = 'addon-argocd-agent-addon-deploy-0';
const get = (cluster: string, name: string) => hub.client.get(manifestWorks, { namespace: cluster, name });
const isGone = (cluster: string, name: string) =>
  until(`${name} to go`, async () => (await get(cluster, name)) === undefined);

/** A work of argocd-pull-integration, as `adopt` leaves it. */
const original = (namespace: string, name: string) =>
  hub.fixture.put(manifestWorks, {
    metadata: { namespace, name, labels: { 'app.kubernetes.io/managed-by': managedBy } },
    spec: { workload: { manifests: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name } }] } },
  });

async function letsGo(cluster: string) {
  const work = async () => {
    const found = await get(cluster, argoCdWork);
    return found?.spec.deleteOption?.propagationPolicy === 'Orphan' && found;
  };
  return until('the work to let its objects go', work);
}

test("argocd-pull-integration's works go before ours come, and what the cluster applies stays", async () => {
  const { ns, a, b } = hub;
  for (const cluster of [a, b]) {
    await original(cluster, argoCdWork);
    await original(cluster, programWork);
  }
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start();
  const found = await letsGo(b);
  await letsGo(a);
  const message = /must first let go of argocd-pull-integration's ManifestWork argocd-agent-cr-argocd-fleet/;
  await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'False', message);
  await hub.idle();
  expect([await hub.work(a, 'agent'), await hub.work(b, 'agent')]).toEqual([undefined, undefined]);
  // It may have the right to the ArgoCD, without which the cluster cannot let the ArgoCD go.
  expect([await get(a, programWork), await get(b, programWork)]).not.toContain(undefined);

  await hub.fixture.reportWork(a, argoCdWork);
  await isGone(a, argoCdWork);
  await isGone(a, programWork);
  await hub.enrolled(a);

  // A work that cannot be applied writes nothing. Ours may bring what it lacks.
  const failed = {
    type: 'Applied',
    status: 'False',
    reason: 'Test',
    message: '',
    lastTransitionTime: rfc3339(new Date()),
  };
  const conditions = [{ ...failed, observedGeneration: found.metadata.generation }] as unknown as Condition[];
  await hub.client.mergePatch(manifestWorks, found.metadata, { status: { conditions } }, { subresource: 'status' });
  await isGone(b, programWork);
  await hub.enrolled(b);
  expect(await get(b, argoCdWork)).toBeDefined();
  for (const name of workNames) {
    await hub.fixture.reportWork(b, name);
  }
  await isGone(b, argoCdWork);
});
