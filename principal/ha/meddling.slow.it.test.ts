import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ArgoObject,
  application,
  namespace,
  type PairedHub,
  pairApplications,
  startTwoHubs,
  type TwoHubs,
} from '../../e2e/pair/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  type KubeObject,
  namespaces,
  type ResourceType,
  resourceType,
  type Secret,
  secrets,
} from '../../lib/kube/index.ts';

// A standby is equal to the active hub, whatever somebody does there, or says that it is not; and no promotion deletes what the
// active hub has not deleted.

let hubs: TwoHubs;

beforeAll(async () => {
  hubs = await startTwoHubs();
  await hubs.first.cluster.client.create(namespaces, { metadata: { name: hubs.agentName } }).catch(() => undefined);
  hubs.first.principal.start();
  await hubs.first.principal.says(/principal serves agents/);
  hubs.second.principal.start();
  hubs.agent.start();
});
afterAll(() => hubs?.stop());

const logs = () => ({
  details: () =>
    [hubs.first.principal, hubs.second.principal, hubs.agent].map(({ output }) => output.slice(-3_000)).join('\n---\n'),
});
const key = (name: string) => ({ namespace: hubs.agentName, name });
const get = ({ cluster }: PairedHub, name: string) => cluster.client.get(pairApplications, key(name));
const copy = (name: string) => hubs.managed.client.get(pairApplications, { namespace, name });
const revision = (one: ArgoObject | undefined) =>
  (one?.spec.source as { targetRevision?: string } | undefined)?.targetRevision;
const isFollowing = (hub: PairedHub) =>
  until('the standby follows', async () => (await hub.admin.status()).state === 'replicating', logs());
const set = (hub: PairedHub, name: string, targetRevision: string) =>
  hub.cluster.client.mergePatch(pairApplications, key(name), { spec: { source: { targetRevision } } });

test('what somebody changes or deletes on the standby is put back, and no failover carries it out', async () => {
  for (const name of ['web', 'shop', 'bare']) {
    const one = application({ name, namespace: hubs.agentName });
    if (name !== 'bare') {
      one.metadata.finalizers = ['resources-finalizer.argocd.argoproj.io'];
    }
    await hubs.first.cluster.client.create(pairApplications, one);
  }
  await isFollowing(hubs.second);
  for (const name of ['web', 'shop', 'bare']) {
    await until(
      `${name} is there`,
      async () => (await get(hubs.second, name)) !== undefined && (await copy(name)) !== undefined,
      logs(),
    );
  }
  const uid = (await copy('shop'))?.metadata.uid;
  const right = revision(await get(hubs.first, 'web'));
  const goes = (await get(hubs.second, 'shop'))?.metadata.uid;
  await set(hubs.second, 'web', 'meddled');
  await hubs.second.cluster.client.delete(pairApplications, key('shop'));
  await hubs.second.cluster.client.delete(pairApplications, key('bare'));
  await until(async () => {
    expect(revision(await get(hubs.second, 'web'))).toBe(right);
    const shop = await get(hubs.second, 'shop');
    expect(shop?.metadata.uid).not.toBe(goes);
    expect(shop?.metadata).toMatchObject({ finalizers: ['resources-finalizer.argocd.argoproj.io'] });
    expect(shop?.metadata.deletionTimestamp).toBeUndefined();
    expect(await get(hubs.second, 'bare')).toBeDefined();
    expect(await hubs.second.admin.status()).toMatchObject({ lagObjects: 0n, problems: [] });
  });
  await hubs.first.admin.demote();
  await until('noticed', async () => (await hubs.second.admin.status()).state === 'disconnected', logs());
  expect(await hubs.second.admin.promote(false)).toBe('active');
  await until('the agent is there', async () => (await hubs.second.admin.status()).connectedAgents === 1, logs());
  await set(hubs.second, 'web', 'after');
  await until('the agent has what the second hub has', async () => revision(await copy('web')) === 'after', logs());
  expect((await copy('shop'))?.metadata.uid).toBe(uid);
  expect((await copy('shop'))?.metadata.deletionTimestamp).toBeUndefined();
});

test('one object that the standby refuses holds up itself alone, and is shown', async () => {
  await isFollowing(hubs.first);
  const policy = await refuseCreation(hubs.first, 'late');
  await hubs.second.cluster.client.create(pairApplications, application({ name: 'late', namespace: hubs.agentName }));
  for (let n = 1; n <= 1_100; n++) {
    await set(hubs.second, 'web', `v${n}`);
  }
  await until('the others go on', async () => revision(await get(hubs.first, 'web')) === 'v1100', logs());
  for (const hub of [hubs.first, hubs.second]) {
    await until(async () => {
      const { lagObjects, problems } = await hub.admin.status();
      expect(lagObjects).toBe(1n);
      expect(problems.join()).toContain(`Application/${hubs.agentName}/late`);
    });
  }
  await policy.remove();
  await until('it is written', async () => (await get(hubs.first, 'late')) !== undefined, {
    timeoutMs: 60_000,
    ...logs(),
  });
  await until('all is well', async () => (await hubs.second.admin.status()).lagObjects === 0n, logs());
}, 300_000);

test('a Secret that was made anew while the standby was away is made anew there, too', async () => {
  // The one that prefers to be a replica follows after a restart.
  await hubs.second.admin.demote();
  await until('noticed', async () => (await hubs.first.admin.status()).state === 'disconnected', logs());
  expect(await hubs.first.admin.promote(false)).toBe('active');
  await isFollowing(hubs.second);
  const name = 'git';
  const secret = (password: string, type: string): Secret => ({
    metadata: { namespace, name, labels: { 'argocd.argoproj.io/secret-type': 'repository' } },
    type,
    immutable: true,
    data: {
      url: Buffer.from('https://git.example.com/a').toString('base64'),
      password: Buffer.from(password).toString('base64'),
    },
  });
  const { client } = hubs.first.cluster;
  const onStandby = () => hubs.second.cluster.client.get(secrets, { namespace, name });
  await client.create(secrets, secret('old', 'Opaque'));
  await until('it is there', async () => (await onStandby()) !== undefined, logs());
  await hubs.second.principal.stop();
  await client.delete(secrets, { namespace, name });
  await client.create(secrets, secret('new', 'example.com/git'));
  hubs.second.principal.start();
  await until(
    async () => {
      expect(await onStandby()).toMatchObject({
        type: 'example.com/git',
        data: { password: Buffer.from('new').toString('base64') },
      });
    },
    { timeoutMs: 60_000, ...logs() },
  );
});

test('a promotion that would go on with a deletion that only the standby has is refused, with the name', async () => {
  await isFollowing(hubs.second);
  const policy = await refuseCreation(hubs.second, 'shop');
  // It cannot be made anew.
  await hubs.second.cluster.client.delete(pairApplications, key('shop'));
  await until(async () => {
    const { problems } = await hubs.second.admin.status();
    expect(problems.join()).toContain(`Application/${hubs.agentName}/shop`);
  });
  await hubs.first.principal.stop();
  await until(
    'the standby has noticed',
    async () => (await hubs.second.admin.status()).state === 'disconnected',
    logs(),
  );
  await expect(hubs.second.admin.promote(false)).rejects.toThrow(`Application/${hubs.agentName}/shop`);
  await policy.remove();
  await until('it is put back', async () => (await hubs.second.admin.status()).lagObjects === 0n, {
    timeoutMs: 60_000,
    ...logs(),
  });
  expect(await hubs.second.admin.promote(false)).toBe('active');
});

/** Lets no Application of this name be created on a hub, until it is removed. */
async function refuseCreation({ cluster: { client } }: PairedHub, name: string): Promise<{ remove(): Promise<void> }> {
  const group = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false };
  const policies: ResourceType<KubeObject & { spec: object }> = resourceType({
    ...group,
    kind: 'ValidatingAdmissionPolicy',
    plural: 'validatingadmissionpolicies',
  });
  const bindings: typeof policies = resourceType({
    ...group,
    kind: 'ValidatingAdmissionPolicyBinding',
    plural: 'validatingadmissionpolicybindings',
  });
  const metadata = { name: `no-${name}` };
  const rule = { apiGroups: ['argoproj.io'], apiVersions: ['*'], operations: ['CREATE'], resources: ['applications'] };
  await client.create(policies, {
    metadata,
    spec: {
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: `object.metadata.name != '${name}'`, message: 'not here' }],
    },
  });
  await client.create(bindings, { metadata, spec: { policyName: metadata.name, validationActions: ['Deny'] } });
  const probe = { ...application({ name, namespace: 'default' }) };
  await until('the policy is in force', () =>
    client.create(pairApplications, probe, { dryRun: true }).then(
      () => false,
      () => true,
    ),
  );
  return {
    async remove() {
      await client.delete(bindings, metadata);
      await client.delete(policies, metadata);
    },
  };
}
