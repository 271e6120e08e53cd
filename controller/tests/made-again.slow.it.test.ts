import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  configMaps,
  type Deployment,
  type KubeObject,
  type ResourceType,
  type Secret,
  secrets,
} from '../../lib/kube/index.ts';
import { isIssuedBy, secretText } from '../../lib/pki/index.ts';
import { gitOpsClusters, managedBy, managedClusterAddOns, manifestWorks } from '../hub/index.ts';
import { useHub } from '../testing/hub.ts';

const hub = useHub(borrowCluster);
type Made = KubeObject & { data?: Record<string, string> };
interface Target {
  readonly type: ResourceType;
  readonly object: Made;
}

/** Every object that the controller makes for cluster a, and those that all clusters share. */
async function everything(): Promise<Target[]> {
  const labelSelector = `app.kubernetes.io/managed-by=${managedBy}`;
  const kinds: readonly (readonly [ResourceType, string])[] = [
    [secrets, hub.ns],
    [configMaps, hub.ns],
    [manifestWorks, hub.a],
    [managedClusterAddOns, hub.a],
  ];
  const found = await Promise.all(
    kinds.map(async ([type, namespace]) =>
      (await hub.client.list(type, { namespace, labelSelector })).map((object) => ({ type, object })),
    ),
  );
  return found.flat().filter(({ object }) => !object.metadata.name.includes(hub.b));
}

const encode = (text: string) => Buffer.from(text).toString('base64');

/** Replaces every value of an object, or removes it. */
async function edit({ type, object }: Target, value: string): Promise<void> {
  const isSecret = type.kind === 'Secret';
  const data = Object.fromEntries(Object.keys(object.data ?? {}).map((key) => [key, isSecret ? encode(value) : value]));
  const patch = object.data ? { data } : { spec: { workload: { manifests: [] } } };
  if (type.kind === 'ManagedClusterAddOn') {
    return;
  }
  await hub.client.mergePatch(type, object.metadata, patch);
}

/** Damages to an object. */
const damages: Readonly<Record<string, (target: Target) => Promise<unknown>>> = {
  'is deleted': ({ type, object }) => hub.client.delete(type, object.metadata),
  'loses its content': (target) => edit(target, ''),
  'is edited': (target) => edit(target, 'x y'),
  'is deleted and restored from a backup': async ({ type, object }) => {
    await hub.client.delete(type, object.metadata);
    const { namespace, name, labels, annotations } = object.metadata;
    const { status: _, ...content } = object as Made & { status?: unknown };
    const metadata = {
      name,
      ...(namespace && { namespace }),
      ...(labels && { labels }),
      ...(annotations && { annotations }),
    };
    // The controller may be faster than the restore.
    await hub.client.create(type, { ...content, metadata }).catch(() => undefined);
  },
};

const manifestsOf = async (cluster: string) => {
  const works = await hub.client.list(manifestWorks, { namespace: cluster });
  return works.flatMap(({ spec }) => spec.workload.manifests);
};
const text = (object: KubeObject | undefined, key: string) => secretText((object as Secret | undefined)?.data, key);

/** The values on which the programs on the cluster agree. */
async function agreedValues() {
  const manifests = await manifestsOf(hub.a);
  const secret = (name: string) => manifests.find((one) => one.kind === 'Secret' && one.metadata.name === name);
  const consumers = manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet') as Deployment[];
  return {
    redisPassword: text(secret('argocd-redis'), 'auth'),
    serverSecretKey: text(secret('argocd-secret'), 'server.secretkey'),
    checksums: consumers.map(
      ({ metadata, spec }) => `${metadata.name} ${spec?.template?.metadata?.annotations?.['checksum/argocd-redis']}`,
    ),
  };
}

/** Checks that all certificates come from trusted authorities, and that the cluster gets its key as before. */
async function expectTrust(what: string, isKeyDelivered: boolean): Promise<void> {
  const trusted = text(await hub.secret('argocd-agent-ca-trust'), 'ca.crt') ?? '';
  const bundle = await hub.client.get(configMaps, { namespace: hub.ns, name: 'argocd-agent-ca-bundle' });
  expect(bundle?.data?.['ca-bundle.crt'], what).toBe(trusted);
  const manifests = await manifestsOf(hub.a);
  const delivered = manifests.find(({ metadata }) => metadata.name.endsWith('client-cert'));
  const authorities = manifests.find(({ kind, metadata }) => kind === 'Secret' && metadata.name === 'argocd-agent-ca');
  expect(text(authorities, 'ca.crt'), what).toBe(trusted);
  expect(delivered !== undefined, what).toBe(isKeyDelivered);
  for (const certificate of [
    ...(isKeyDelivered ? [text(delivered, 'tls.crt')] : []),
    text(await hub.secret('argocd-agent-principal-tls'), 'tls.crt'),
    text(await hub.secret('argocd-agent-resource-proxy-tls'), 'tls.crt'),
    text(await hub.secret(`argocd-cluster-client-${hub.a}`), 'tls.crt'),
  ]) {
    expect(isIssuedBy(certificate ?? '', trusted), what).toBe(true);
  }
}

test.each([
  ['requests its certificate', false],
  ['has a delivered key', true],
])(
  'whatever is deleted, emptied, edited or restored comes back, and a cluster that %s keeps it and its passwords',
  {
    timeout: 600_000,
  },
  async (_, isKeyDelivered) => {
    await hub.enroll({}, isKeyDelivered ? { clientCertificate: 'Generated' } : {});
    // Only what was delivered shows the difference from now on.
    await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement');
    await hub.idle();
    const first = await agreedValues();
    expect(first.redisPassword).toMatch(/^.{32}$/);
    const names = (await everything()).map(({ type, object }) => `${type.kind} ${object.metadata.name}`);
    expect(names).toHaveLength(13);
    for (const [damage, inflict] of Object.entries(damages)) {
      // All other objects do not depend on the key.
      for (const name of names.filter((one) => !isKeyDelivered || /addon/.test(one))) {
        const target = (await everything()).find(({ type, object }) => `${type.kind} ${object.metadata.name}` === name);
        expect(target, name).toBeDefined();
        await inflict(target as Target);
        const what = `${name} ${damage}`;
        const fails = (error: Error) => Promise.reject(new Error(`${what}: ${error.message}`));
        await hub.idle().catch(fails);
        await hub.fixture.conditionIs([hub.ns, 'fleet'], 'Ready', 'True').catch(fails);
        await hub.idle();
        expect(
          (await everything()).map(({ type, object }) => `${type.kind} ${object.metadata.name}`),
          what,
        ).toEqual(names);
        expect(await agreedValues(), what).toEqual(first);
        await expectTrust(what, isKeyDelivered);
      }
    }
  },
);

test('a password that an operator sets reaches Redis and everything that uses it', async () => {
  await hub.enroll();
  await hub.idle();
  const before = await agreedValues();
  const key = { namespace: hub.ns, name: `argocd-agent-addon-${hub.a}` };
  await hub.client.mergePatch(secrets, key, { data: { 'redis-password': encode('another-password') } });
  await until('the password', async () => (await agreedValues()).redisPassword === 'another-password');
  await hub.idle();
  const after = await agreedValues();
  expect(after.serverSecretKey).toBe(before.serverSecretKey);
  expect(before.checksums.map((one) => one.split(' ')[0]).sort()).toEqual([
    'argocd-agent-agent',
    'argocd-application-controller',
    'argocd-redis',
    'argocd-repo-server',
  ]);
  expect(new Set(after.checksums.map((one) => one.split(' ')[1]))).toHaveLength(1);
  for (const one of after.checksums) {
    expect(one).not.toMatch(/undefined/);
    expect(before.checksums).not.toContain(one);
  }
});

test('a cluster keeps its passwords when another GitOpsCluster in another namespace takes it over', async () => {
  await hub.enroll();
  await hub.idle();
  const before = await agreedValues();
  const other = `${hub.ns}-other`;
  await hub.fixture.namespace(other);
  await hub.fixture.placement(other, 'placement', [hub.a, hub.b]);
  await hub.fixture.gitOpsCluster(other, 'successor', 'placement');
  await hub.idle();
  await hub.client.delete(gitOpsClusters, { namespace: hub.ns, name: 'fleet' });
  await until('the new Secret', () => hub.secret(`argocd-agent-addon-${hub.a}`, other));
  await hub.idle();
  expect(text(await hub.secret(`argocd-agent-addon-${hub.a}`, other), 'redis-password')).toBe(before.redisPassword);
  expect((await agreedValues()).checksums).toEqual(before.checksums);
});
