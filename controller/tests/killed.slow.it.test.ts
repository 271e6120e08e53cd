import { afterEach, beforeEach, expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { effort, until } from '../../lib/base/testing.ts';
import { configMaps, Informer, type KubeObject, type Secret, secrets } from '../../lib/kube/index.ts';
import { isIssuedBy, secretText } from '../../lib/pki/index.ts';
import {
  cleanUpWork,
  gitOpsClusters,
  type ManifestWork,
  managedBy,
  managedClusterAddOns,
  manifestWorks,
} from '../hub/index.ts';
import { runController } from '../testing/fixture.ts';
import { useHub } from '../testing/hub.ts';
import { mortalClient } from '../testing/mortal.ts';

const hub = useHub(borrowCluster);
let standIn: { abort(): void; ended: Promise<void> };

/** Clean-up Jobs complete at once. */
beforeEach(() => {
  const { signal, abort } = abortable();
  const informer = new Informer<ManifestWork>({ client: hub.client, type: manifestWorks });
  informer.subscribe({
    added: ({ metadata }) => {
      if (metadata.name !== cleanUpWork.name) {
        return;
      }
      hub.fixture.endCleanUp(metadata.namespace ?? '').catch((error) => {
        // The work may be gone by now.
        if (!signal.aborted && error.status !== 404) {
          throw error;
        }
      });
    },
  });
  standIn = { abort, ended: informer.run(signal) };
});
afterEach(async () => {
  standIn.abort();
  await standIn.ended;
});

function abortable(): { signal: AbortSignal; abort(): void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

/** All objects made for the fleet, without fields that differ from one time to the next. */
async function madeFor(clusters: readonly string[]): Promise<unknown> {
  const labelSelector = `app.kubernetes.io/managed-by=${managedBy}`;
  const lists = await Promise.all([
    hub.client.list(secrets, { labelSelector }),
    hub.client.list(configMaps, { labelSelector }),
    hub.client.list(manifestWorks),
    hub.client.list(managedClusterAddOns),
    hub.client.list(gitOpsClusters),
  ]);
  const isOf = (text: string) => clusters.some((cluster) => text.includes(cluster));
  return lists
    .flat()
    .filter(
      (one: KubeObject) =>
        isOf(one.metadata.name) || isOf(one.metadata.namespace ?? '') || one.kind === 'GitOpsCluster',
    )
    .map(
      (one) =>
        JSON.parse(JSON.stringify(one, plain)) as { kind: string; metadata: { namespace: string; name: string } },
    )
    .sort((x, y) => (idOf(x) < idOf(y) ? -1 : 1));
}

const idOf = ({ kind, metadata }: { kind: string; metadata: { namespace: string; name: string } }) =>
  `${kind} ${metadata.namespace}/${metadata.name}`;
const passing = new Set([
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'managedFields',
  'lastTransitionTime',
  'generation',
]);

function plain(key: string, value: unknown): unknown {
  if (passing.has(key)) {
    return undefined;
  }
  // It counts earlier detachments.
  if (key === 'conditions' && Array.isArray(value)) {
    return (value as { type: string }[]).filter(({ type }) => type !== 'RemovedClustersCleanedUp');
  }
  if ((key === 'data' || key === 'stringData') && typeof value === 'object') {
    return Object.keys(value ?? {}).sort();
  }
  if (typeof value === 'string') {
    return value.replaceAll(/[0-9a-f]{40,}/g, 'HASH');
  }
  return value;
}

/** Runs a controller until it dies at a write or `isDone` is true. */
async function live(
  at: { write: number; when: 'before' | 'after' },
  isDone: () => Promise<boolean>,
): Promise<string[]> {
  const { client, died, writes } = mortalClient(hub.client, at);
  const { stop } = runController(client);
  let isDead = false;
  died.then(() => {
    isDead = true;
  });
  await until('death or the end of the work', async () => isDead || (await isDone()));
  await stop();
  return [...writes];
}

async function liveOn(what: string, isDone: () => Promise<boolean>): Promise<void> {
  const { stop } = runController(hub.client);
  try {
    await until(what, isDone);
  } finally {
    await stop();
  }
}

/** Runs a controller until it is idle after `isDone`: then it has made everything. */
async function liveToRest(what: string, isDone: () => Promise<boolean>): Promise<string[]> {
  const { client, writes } = mortalClient(hub.client, { write: Number.POSITIVE_INFINITY, when: 'before' });
  const { stop, controller } = runController(client);
  try {
    await hub.quiet(async () => controller.isIdle && (await isDone()), what);
  } finally {
    await stop();
  }
  return [...writes];
}

const isGone = async () => (await hub.client.get(gitOpsClusters, { namespace: hub.ns, name: 'fleet' })) === undefined;

test('killed after every single write, it enrolls and detaches a fleet completely', {
  timeout: 300_000,
}, async () => {
  const { ns, a, b } = hub;
  await hub.fixture.placement(ns, 'placement', [a, b], 1);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { clientCertificate: 'Generated' });
  const isReady = async () => (await hub.fixture.condition(ns, 'fleet', 'Ready'))?.status === 'True';
  const lives: string[] = [];
  while (!(await isReady())) {
    lives.push(...(await live({ write: 1, when: 'after' }, isReady)));
    expect(lives.length).toBeLessThan(150);
  }
  await liveToRest('Ready', isReady);
  const ready = await madeFor([a, b]);
  // Nothing was made twice: the first keys and passwords are kept, whichever controller finds them.
  const times = Map.groupBy(
    lives.filter((write) => /^(create|apply) secrets /.test(write)),
    (write) => write,
  );
  expect([...times].filter(([, all]) => all.length > 1)).toEqual([]);
  const authority = secretText((await hub.secret('argocd-agent-ca'))?.data, 'tls.crt') ?? '';
  for (const cluster of [a, b]) {
    const agent = await hub.work(cluster, 'agent');
    const delivered = agent?.spec.workload.manifests.find(({ metadata }) =>
      metadata.name.endsWith('client-cert'),
    ) as Secret;
    const certificate = secretText(delivered.data, 'tls.crt') ?? '';
    expect(certificate).toBe(secretText((await hub.secret(`argocd-agent-addon-${cluster}`))?.data, 'tls.crt'));
    expect(isIssuedBy(certificate, authority)).toBe(true);
  }
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  while (!(await isGone())) {
    lives.push(...(await live({ write: 1, when: 'after' }, isGone)));
    expect(lives.length).toBeLessThan(300);
  }
  expect(await madeFor([a, b])).toEqual([]);
  expect(await hub.secret('argocd-agent-ca')).toBeUndefined();
  // The same again with a controller that is not killed.
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { clientCertificate: 'Generated' });
  await liveToRest('Ready again', isReady);
  expect(await madeFor([a, b])).toEqual(ready);
});

test('killed right before and right after any write, the next controller reaches the undisturbed result', {
  timeout: 600_000,
}, async () => {
  const { ns, a } = hub;
  // One cluster is enough: several tasks write its objects concurrently.
  const clusters = [a];
  await hub.fixture.placement(ns, 'nobody', []);
  await hub.fixture.placement(ns, 'placement', clusters);
  // It keeps the authority and the server certificates, because making RSA keys takes longer than all the rest.
  await hub.fixture.gitOpsCluster(ns, 'keeper', 'nobody');
  const isKept = async () => (await hub.fixture.condition(ns, 'keeper', 'Ready'))?.status === 'True';
  await liveToRest('the keeper', isKept);
  const nothing = JSON.stringify(await madeFor(clusters));
  const enroll = () => hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  const remove = () => hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  const isReady = async () => (await hub.fixture.condition(ns, 'fleet', 'Ready'))?.status === 'True';
  await enroll();
  const enrolling = await liveToRest('everything to be enrolled', isReady);
  const enrolled = JSON.stringify(await madeFor(clusters));
  const isEnrolled = async () => JSON.stringify(await madeFor(clusters)) === enrolled;
  await remove();
  const isDetached = async () => JSON.stringify(await madeFor(clusters)) === nothing;
  const detaching = await liveToRest('everything to be detached', isDetached);
  expect(Math.min(enrolling.length, detaching.length)).toBeGreaterThan(8);
  const step = effort(4, 1);
  const first = 1 + Math.floor(Math.random() * step);
  for (let write = first; write <= Math.max(enrolling.length, detaching.length); write += step) {
    for (const [begin, isDone, what, count] of [
      [enroll, isEnrolled, 'everything to be enrolled', enrolling.length],
      [remove, isDetached, 'everything to be detached', detaching.length],
    ] as const) {
      await begin();
      if (write <= count) {
        await live({ write, when: 'before' }, isDone);
        await live({ write: 1, when: 'after' }, isDone);
      }
      await liveOn(`${what}, after death at write ${write} of ${count}`, isDone);
    }
  }
});
