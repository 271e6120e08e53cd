import { expect, it } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { ApiError, type KubeClient } from '../../lib/kube/index.ts';
import { Scheduler, unschedulable } from './scheduler.ts';
import type { KubeletPod, KubeletPodSpec } from './types.ts';

const node = {
  metadata: { name: 'n', labels: { disk: 'ssd', size: '3' } },
  spec: { taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] },
};
const tolerations = [{ key: 'gpu', operator: 'Exists' }];
const why = (spec: Partial<KubeletPodSpec>) => unschedulable({ containers: [], tolerations, ...spec }, node);
const affinity = (key: string, operator: string, values?: string[]) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key, operator, ...(values && { values }) }] }],
      },
    },
  },
});

it('takes a pod whose selector, affinity and tolerations fit', () => {
  expect(why({})).toBeUndefined();
  expect(why({ nodeSelector: { disk: 'ssd' } })).toBeUndefined();
  expect(why(affinity('disk', 'In', ['hdd', 'ssd']))).toBeUndefined();
  expect(why(affinity('size', 'Gt', ['2']))).toBeUndefined();
  expect(why({ tolerations: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] })).toBeUndefined();
  expect(why({ tolerations: [{ operator: 'Exists' }] })).toBeUndefined();
});

it.each<[string, Partial<KubeletPodSpec>, RegExp]>([
  ['selector', { nodeSelector: { disk: 'hdd' } }, /affinity\/selector/],
  ['affinity', affinity('disk', 'NotIn', ['ssd']), /affinity\/selector/],
  ['missing label', affinity('zone', 'Exists'), /affinity\/selector/],
  ['no toleration', { tolerations: [] }, /untolerated taint \{gpu: yes\}/],
  ['another value', { tolerations: [{ key: 'gpu', value: 'no' }] }, /untolerated taint/],
  ['another effect', { tolerations: [{ key: 'gpu', operator: 'Exists', effect: 'NoExecute' }] }, /untolerated taint/],
])('leaves a pod alone: %s', (_, spec, message) => {
  expect(why(spec)).toMatch(message);
});

it('binds a pod again that an API server refused to bind, and that is not bound', async () => {
  const running = new AbortController();
  const pod = { metadata: { name: 'web', namespace: 'apps', uid: '1' }, spec: { containers: [] } } as KubeletPod;
  let bindings = 0;
  const client = {
    get: async (_type: unknown, { name }: { name: string }) => (name === 'web' ? pod : { metadata: { name } }),
    request: async () => {
      bindings += 1;
      if (bindings === 1) {
        throw new ApiError({ status: 409, message: 'the object has been modified' });
      }
      return { body: { discard: async () => undefined } };
    },
  } as unknown as KubeClient;
  const scheduler = new Scheduler({ client, nodeName: 'n', find: () => pod, warn: () => undefined });
  const run = scheduler.run(running.signal);
  scheduler.add(pod);
  await until('it was bound again', () => bindings === 2);
  running.abort();
  await run;
});
