import { expect, it } from 'vitest';
import { unschedulable } from './scheduler.ts';
import type { KubeletPodSpec } from './types.ts';

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
