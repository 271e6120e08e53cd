import { afterAll, beforeAll, expect, test } from 'vitest';
import { application, namespace, type Pair, pairApplications, startPair } from '../e2e/pair/index.ts';
import { admissionPolicies, admissionPolicyBindings } from '../e2e/testbed/index.ts';
import { until } from '../lib/base/testing.ts';
import { events, type KubeClient } from '../lib/kube/index.ts';

// A policy that denies every change of an Application for a while, on the hub and on the cluster.

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair?.stop());

const reason = 'freeze until 18:00';

/**
 * Denies updates of Applications for which this CEL expression holds, from the moment that this resolves, until the
 * returned function has resolved.
 * @param denied a patch of this Application that is denied then
 */
async function freeze(
  client: KubeClient,
  when: string,
  denied: { namespace: string; name: string },
  patch: (value: string) => Record<string, unknown>,
): Promise<() => Promise<void>> {
  const resourceRules = [
    { apiGroups: ['argoproj.io'], apiVersions: ['*'], operations: ['UPDATE'], resources: ['applications'] },
  ];
  const validations = [{ expression: `!(${when})`, message: reason }];
  await client.create(admissionPolicies, {
    metadata: { name: 'freeze' },
    spec: { failurePolicy: 'Fail', matchConstraints: { resourceRules }, validations },
  });
  await client.create(admissionPolicyBindings, {
    metadata: { name: 'freeze' },
    spec: { policyName: 'freeze', validationActions: ['Deny'] },
  });
  const isDenied = async () => {
    try {
      await client.mergePatch(pairApplications, denied, patch(String(Date.now())));
      return false;
    } catch {
      return true;
    }
  };
  await until('the policy is in force', isDenied);
  return async () => {
    await client.delete(admissionPolicyBindings, { name: 'freeze' });
    await client.delete(admissionPolicies, { name: 'freeze' });
    await until('the policy is gone', async () => !(await isDenied()));
  };
}

const onHub = (name: string) => ({ namespace: pair.name, name });
const onCluster = (name: string) => ({ namespace, name });
const hub = (name: string) => pair.hub.client.get(pairApplications, onHub(name));
const copy = (name: string) => pair.managed.client.get(pairApplications, onCluster(name));
/** Of an Application's status, what these tests look at. */
interface Status {
  readonly health?: { readonly status?: string };
  readonly conditions?: readonly { readonly type: string; readonly message: string }[];
}
const status = async (name: string): Promise<Status> => (await hub(name))?.status ?? {};
const label = (value: string) => ({ metadata: { labels: { probe: value } } });
const minute = { timeoutMs: 60_000 };
const soon = { timeoutMs: 180_000 };

async function makeApplication(name: string, metadata: Record<string, unknown> = {}): Promise<void> {
  await pair.hub.client.create(pairApplications, application({ ...onHub(name), metadata }));
  await until('there is a copy', async () => (await copy(name)) !== undefined);
}

test('what a policy of the hub denies is told of within a minute, and written when the policy is gone', async () => {
  await makeApplication('shop');
  await makeApplication('gone', { finalizers: ['resources-finalizer.argocd.argoproj.io'] });
  await makeApplication('probe');
  const thaw = await freeze(pair.hub.client, 'true', onHub('probe'), label);
  await pair.managed.client.mergePatch(pairApplications, onCluster('shop'), {
    status: { health: { status: 'Degraded' } },
  });
  await pair.hub.client.delete(pairApplications, onHub('gone'));
  await until('the copy is being deleted', async () => (await copy('gone'))?.metadata.deletionTimestamp !== undefined);
  await pair.managed.client.mergePatch(pairApplications, onCluster('gone'), { metadata: { finalizers: null } });
  await until(
    'an Event tells of it',
    async () =>
      (await pair.hub.client.list(events)).some(
        (event) => event.reason === 'AgentReportRefused' && event.note?.includes(reason) === true,
      ),
    minute,
  );
  await thaw();
  await until('the status is written', async () => (await status('shop')).health?.status === 'Degraded', soon);
  await until('the deletion ends', async () => (await hub('gone')) === undefined, soon);
  // The condition, which the policy had denied, too, may have come when it was gone, and before the status.
  await until('no condition is left', async () => ((await status('shop')).conditions ?? []).length === 0, soon);
}, 480_000);

test('an operation that a policy of the cluster denies is shown on the hub, and carried out when it is gone', async () => {
  await makeApplication('synced');
  await makeApplication('other');
  const thaw = await freeze(pair.managed.client, 'has(object.operation)', onCluster('other'), (revision) => ({
    operation: { sync: { revision } },
  }));
  const operation = { sync: { revision: 'r1' } };
  await pair.hub.client.mergePatch(pairApplications, onHub('synced'), { operation });
  await until(
    'the hub shows it',
    async () =>
      (await status('synced')).conditions?.some(
        ({ type, message }) => type === 'AgentError' && message.includes(reason),
      ) === true,
    minute,
  );
  // Nothing waits for it.
  await pair.hub.client.mergePatch(pairApplications, onHub('synced'), { spec: { source: { path: 'edited' } } });
  await until('the edit arrives', async () => JSON.stringify((await copy('synced'))?.spec).includes('edited'), minute);
  expect((await copy('synced'))?.operation).toBeUndefined();
  await thaw();
  await until('the operation is set', async () => (await copy('synced'))?.operation !== undefined, soon);
  await until('nothing is shown any more', async () => ((await status('synced')).conditions ?? []).length === 0, soon);
}, 480_000);
