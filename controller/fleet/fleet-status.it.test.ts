import { onTestFinished, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { gitOpsClusters, managedClusterAddOns } from '../hub/index.ts';
import { heldWatch } from '../testing/held-watch.ts';
import { useHub } from '../testing/hub.ts';

const hub = useHub(borrowCluster);

test('a problem that is over before the cache shows it leaves the status', async () => {
  const { ns, a } = hub;
  const late = heldWatch(hub.client, gitOpsClusters);
  await hub.enroll({ client: late.client });
  await hub.idle();
  late.hold();
  onTestFinished(late.release);
  const reference = { group: 'addon.open-cluster-management.io', resource: 'addondeploymentconfigs' };
  const addOn = { namespace: a, name: 'argocd-agent-addon' };
  const refer = (configs: object[]) => hub.client.mergePatch(managedClusterAddOns, addOn, { spec: { configs } });
  await refer([{ ...reference, namespace: a, name: 'missing' }]);
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'False');
  await refer([]);
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
  late.release();
  await hub.idle();
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
});
