import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ArgoObject,
  adminName,
  application,
  mapAgent,
  namesOf,
  namespace,
  type PairedHub,
  pairApplications,
  startTwoHubs,
  type TwoHubs,
  uidsOf,
} from '../../e2e/pair/index.ts';
import { annotations } from '../../lib/argocd/index.ts';
import { fingerprintOf } from '../../lib/auth/index.ts';
import { until } from '../../lib/base/testing.ts';
import { configMaps, type KubeObject, type ResourceType, resourceType, secrets } from '../../lib/kube/index.ts';
import { issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';

// Two hubs on real API servers; the agent knows both. Roles change in every way that there is, and no copy on the cluster is
// deleted or made again.

let hubs: TwoHubs;

beforeAll(async () => {
  hubs = await startTwoHubs();
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
const appsOf = ({ cluster }: PairedHub) => cluster.client.list(pairApplications, { namespace: hubs.agentName });
const copies = () => hubs.managed.client.list(pairApplications, { namespace });
const create = (hub: PairedHub, name: string) =>
  hub.cluster.client.create(pairApplications, application({ name, namespace: hubs.agentName }));
const isFollowing = (hub: PairedHub) =>
  until('the standby follows', async () => (await hub.admin.status()).state === 'replicating', logs());
const has = (what: () => Promise<ArgoObject[]>, wanted: readonly string[]) =>
  until(async () => expect(namesOf(await what())).toEqual([...wanted].sort()), logs());

test('orders need a certificate that is named, on no blocklist, and of no agent', async () => {
  const { client } = hubs.first.cluster;
  const issue = (commonName: string) => issueCertificate({ authority: hubs.authority, commonName, usages: ['client'] });
  const [agent, other] = await Promise.all([issue(hubs.agentName), issue(adminName)]);
  const refused = (as: KeyCertificate, code: number, details: string) =>
    until(async () => {
      const status = hubs.first.adminWith(as).status();
      await expect(status).rejects.toMatchObject({ code, details: expect.stringContaining(details) });
    }, logs());
  await until('the administration is served', async () => (await hubs.first.admin.status()).state === 'active', logs());
  await refused(agent, 7, 'does not match ha-admin-auth pattern');

  await mapAgent(client, adminName);
  await refused(other, 7, `is agent ${adminName} of this hub`);
  await client.delete(secrets, { namespace, name: `cluster-${adminName}` });
  await until(
    'that agent is gone',
    async () => (await hubs.first.adminWith(other).status()).state === 'active',
    logs(),
  );

  const fingerprint = fingerprintOf(new X509Certificate(other.certificate));
  const metadata = { namespace, name: 'argocd-agent-tls-blocklist' };
  await client.create(configMaps, { metadata, data: { [fingerprint]: '' } });
  await refused(other, 16, 'the client certificate is on the blocklist');
  expect((await hubs.first.admin.status()).state).toBe('active');
});

test('a standby gets what the active hub has, and each change', async () => {
  await create(hubs.first, 'web');
  await isFollowing(hubs.second);
  await create(hubs.first, 'shop');
  await has(() => appsOf(hubs.second), ['web', 'shop']);
  await has(copies, ['web', 'shop']);
  const found = await hubs.second.cluster.client.get(secrets, { namespace, name: `cluster-${hubs.agentName}` });
  expect(found?.metadata.labels?.['argocd-agent.argoproj-labs.io/agent-name']).toBe(hubs.agentName);

  await hubs.first.cluster.client.mergePatch(
    pairApplications,
    { namespace: hubs.agentName, name: 'shop' },
    { spec: { source: { targetRevision: 'v2' } } },
  );
  await create(hubs.first, 'brief');
  await has(() => appsOf(hubs.second), ['web', 'shop', 'brief']);
  await hubs.first.cluster.client.delete(pairApplications, { namespace: hubs.agentName, name: 'brief' });
  await has(() => appsOf(hubs.second), ['web', 'shop']);
  await has(copies, ['web', 'shop']);
  await until('the change arrives', async () =>
    (await appsOf(hubs.second)).some(({ spec }) => (spec.source as { targetRevision: string }).targetRevision === 'v2'),
  );
  const status = await hubs.first.admin.status();
  expect(status).toMatchObject({
    state: 'active',
    preferredRole: 'primary',
    peerReachable: true,
    peerState: 'replicating',
  });
  expect(await hubs.second.admin.status()).toMatchObject({
    state: 'replicating',
    peerReachable: true,
    peerState: 'active',
  });
});

test('defect 30: in a planned failover nothing is lost, and no copy is made again', async () => {
  const before = uidsOf(await copies());
  await expect(hubs.second.admin.promote(false)).rejects.toThrow(/still active/);
  await create(hubs.first, 'last');
  expect(await hubs.first.admin.demote()).toBe('replicating');
  expect(namesOf(await appsOf(hubs.second)), 'acknowledged before the demotion has ended').toContain('last');
  await until(
    'the standby has noticed',
    async () => (await hubs.second.admin.status()).state === 'disconnected',
    logs(),
  );
  expect(await hubs.second.admin.promote(false)).toBe('active');
  await isFollowing(hubs.first);
  await create(hubs.second, 'after');
  await has(copies, ['web', 'shop', 'last', 'after']);
  expect(uidsOf(await copies())).toMatchObject(before);
  await has(() => appsOf(hubs.first), ['web', 'shop', 'last', 'after']);
});

test('the active hub dies: the standby takes over what was acknowledged', async () => {
  const before = uidsOf(await copies());
  await hubs.second.principal.stop('SIGKILL');
  await until(
    'the standby has noticed',
    async () => (await hubs.first.admin.status()).state === 'disconnected',
    logs(),
  );
  const from = hubs.agent.output.length;
  expect(await hubs.first.admin.promote(false)).toBe('active');
  // What was acknowledged is here, so the agent takes the copy over. Until then nobody could tell a deletion from a loss.
  await hubs.agent.says(/Application written.*application=argocd\/after reason=principal-changed/, { after: from });
  expect(uidsOf(await copies())).toEqual(before);
  await hubs.first.cluster.client.delete(pairApplications, { namespace: hubs.agentName, name: 'after' });
  await has(copies, ['web', 'shop', 'last']);
  expect(before).toMatchObject(uidsOf(await copies()));
});

test('a hub that comes back follows, and drops what was deleted meanwhile', async () => {
  // Made there while nobody followed: it was on no other hub, and stays.
  await create(hubs.second, 'unheard');
  // As if it had died before it could annotate this one. Who saw the deletion on the other hub does not run any more.
  const after = { namespace: hubs.agentName, name: 'after' };
  const unmarked = { metadata: { annotations: { [annotations.onBothHubs]: null } } };
  await hubs.second.cluster.client.mergePatch(pairApplications, after, unmarked);
  const recorded = () => hubs.first.cluster.client.get(configMaps, { namespace, name: 'argocd-agent-deleted-objects' });
  await until('the deletion is recorded', async () => Object.keys((await recorded())?.data ?? {}).length === 1, logs());
  await hubs.first.principal.stop('SIGKILL');
  hubs.first.principal.start();
  await until('it is active', async () => (await hubs.first.admin.status()).state === 'active', logs());
  hubs.second.principal.start();
  await isFollowing(hubs.second);
  await has(() => appsOf(hubs.second), ['web', 'shop', 'last', 'unheard']);
  expect(hubs.second.principal.output).toContain('never on the active hub');
  const isFollowed = async () => (await recorded())?.metadata.annotations?.[annotations.isFollowed];
  await until('nothing more is recorded', async () => (await isFollowed()) === 'true', logs());
});

test('an object that the standby cannot write yet does not count as one of both hubs', async () => {
  const { client } = hubs.second.cluster;
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
  const metadata = { name: 'no-late-applications' };
  const rule = { apiGroups: ['argoproj.io'], apiVersions: ['*'], operations: ['CREATE'], resources: ['applications'] };
  const matchConstraints = { resourceRules: [rule] };
  const validations = [{ expression: "object.metadata.name != 'late'", message: 'not yet' }];
  await client.create(policies, { metadata, spec: { matchConstraints, validations } });
  await client.create(bindings, { metadata, spec: { policyName: metadata.name, validationActions: ['Deny'] } });
  const late = application({ name: 'late', namespace: hubs.agentName });
  await until('the policy is in force', () =>
    client.create(pairApplications, late, { dryRun: true }).then(
      () => false,
      () => true,
    ),
  );
  await hubs.second.principal.stop();
  await hubs.first.cluster.client.create(pairApplications, late);
  const after = hubs.second.principal.output.length;
  hubs.second.principal.start();
  await hubs.second.principal.says(/objects of the active hub cannot be written here yet/, { after });
  const marked = async () => {
    const found = await hubs.first.cluster.client.get(pairApplications, late.metadata);
    return found?.metadata.annotations?.['argocd-agent.argoproj-labs.io/on-both-hubs'];
  };
  await until('it counts as lag', async () => (await hubs.second.admin.status()).lagObjects === 1n, logs());
  expect(await marked()).toBeUndefined();
  await client.delete(bindings, metadata);
  await until('it is there', async () => namesOf(await appsOf(hubs.second)).includes('late'), logs());
  await until('it is marked', async () => (await marked()) === 'true', logs());
});
