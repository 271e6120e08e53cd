import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { events, type KubeObject, type PodSpec } from '../../lib/kube/index.ts';
import { formerWork, type ManifestWork, manifestWorks } from '../hub/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

const hub = useHub(borrowCluster);

const former = () => hub.work(hub.a, 'former');
const noted = async () =>
  (await hub.addOn(hub.a))?.metadata.annotations?.['apps.open-cluster-management.io/former-namespaces'];
const namespacesIn = (work: ManifestWork | undefined) =>
  work?.spec.workload.manifests.flatMap(({ kind, metadata }) => (kind === 'Namespace' ? [metadata.name] : []));
const environmentOf = (work: ManifestWork | undefined) => {
  const job = work?.spec.workload.manifests.find(({ kind }) => kind === 'Job') as
    | (KubeObject & { spec: { template: { spec: PodSpec } } })
    | undefined;
  return Object.fromEntries(job?.spec.template.spec.containers[0]?.env?.map(({ name, value }) => [name, value]) ?? []);
};

/** Enrolls a cluster that has applied all works, with its agent in namespace `argocd`. */
async function settled(): Promise<void> {
  const { ns, a } = hub;
  await hub.fixture.placement(ns, 'placement', [a], 1);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start();
  await hub.enrolled(a);
  await applied();
}
const applied = () => Promise.all(workNames.map((name) => hub.fixture.reportWork(hub.a, name)));

async function moveTo(agentNamespace: string): Promise<void> {
  await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement', { agentNamespace });
  for (const part of ['argocd', 'agent']) {
    await until(`${part} in ${agentNamespace}`, async () =>
      namespacesIn(await hub.work(hub.a, part))?.includes(agentNamespace),
    );
  }
}

test('a former namespace is cleaned up when the cluster has applied the new works', async () => {
  const { ns, a } = hub;
  await settled();
  await moveTo('gitops');
  expect(await noted()).toBe('argocd');
  await hub.idle();
  expect(await former()).toBeUndefined();
  await applied();
  const work = await until('the clean-up of the namespace', former);
  expect(environmentOf(work)).toEqual({ ARGOCD_NAMESPACE: 'argocd', CLEANUP_PRINCIPAL_NAMESPACE: ns });
  // Another controller continues.
  await hub.restart();
  await hub.fixture.endCleanUp(a, 'JobFailed', formerWork.name);
  await until('an Event', async () =>
    (await hub.client.list(events, { namespace: ns })).some(({ reason }) => reason === 'CleanUpFailed'),
  );
  await hub.fixture.endCleanUp(a, 'JobComplete', formerWork.name);
  await until('the end of the clean-up', async () => (await former()) === undefined);
  expect(await noted()).toBeUndefined();
  await hub.idle();
  const versions = await hub.versions();
  await hub.restart();
  await hub.idle();
  expect(await hub.versions()).toEqual(versions);
});

test('an agent that moves again, or back, has its other former namespaces cleaned up', async () => {
  await settled();
  await moveTo('gitops');
  await applied();
  await until('the clean-up of the namespace', former);
  await moveTo('third');
  await applied();
  await until('the clean-up of both', async () => {
    const work = await former();
    return work?.metadata.deletionTimestamp === undefined && environmentOf(work).CLEANUP_NAMESPACES === 'gitops';
  });
  expect(await noted()).toBe('argocd,gitops');
  await moveTo('argocd');
  await applied();
  await until('the clean-up of two others', async () => {
    const { ARGOCD_NAMESPACE: first, CLEANUP_NAMESPACES: others } = environmentOf(await former());
    return first === 'gitops' && others === 'third';
  });
  expect(await noted()).toBe('gitops,third');
});

test('an agent that moves back before its former namespace is cleaned up meets no Job that cleans it up', async () => {
  const { a } = hub;
  await settled();
  await moveTo('gitops');
  await applied();
  const work = await until('the clean-up of the namespace', former);
  // The cluster removes the Job only later: its work agent holds the work until then.
  const hold = { metadata: { finalizers: ['cluster.open-cluster-management.io/manifest-work-cleanup'] } };
  await hub.client.mergePatch(manifestWorks, work.metadata, hold);
  await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement', { agentNamespace: 'argocd' });
  await until('the end of the clean-up', async () => (await former())?.metadata.deletionTimestamp !== undefined);
  await hub.idle();
  expect(namespacesIn(await hub.work(a, 'agent')), 'not before the Job is gone').toContain('gitops');
  await hub.client.mergePatch(manifestWorks, work.metadata, { metadata: { finalizers: null } });
  await until('the works', async () => namespacesIn(await hub.work(a, 'agent'))?.includes('argocd'));
  const now = await former();
  expect(now === undefined ? [] : environmentOf(now).ARGOCD_NAMESPACE).not.toBe('argocd');
});

test('a cluster that is detached while a former namespace is cleaned up is detached completely', async () => {
  const { a } = hub;
  await settled();
  await moveTo('gitops');
  await applied();
  await until('the clean-up of the namespace', former);
  await hub.unselect(a);
  const cleanUp = await until('the clean-up', () =>
    hub.client.get(manifestWorks, { namespace: a, name: 'addon-argocd-agent-addon-pre-delete' }),
  );
  expect(await former()).toBeUndefined();
  expect(environmentOf(cleanUp)).toEqual({ ARGOCD_NAMESPACE: 'gitops', CLEANUP_NAMESPACES: 'argocd' });
});
