/* Started and killed by a test: a cluster, a node and a pod, whose process id it prints. */
import { startCluster } from '../testbed/index.ts';
import { startNode } from './index.ts';
import { kubeletPods } from './types.ts';

const cluster = await startCluster({ name: 'doomed' });
const node = await startNode({ cluster, dir: cluster.dir });
await cluster.client.create(kubeletPods, {
  metadata: { name: 'orphan', namespace: 'default' },
  spec: {
    securityContext: { runAsUser: 1234 },
    containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', 'sleep 600 & wait'] }],
  },
});
const look = setInterval(() => {
  const pid = node.pidOf('default', 'orphan');
  if (pid === undefined) {
    return;
  }
  clearInterval(look);
  console.log(pid);
}, 50);
