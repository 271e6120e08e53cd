import { expect, test } from 'vitest';
import type { Condition } from '../../lib/kube/index.ts';
import type { ManifestWork } from '../hub/index.ts';
import { statefulSetFeedback } from '../render/index.ts';
import { haveArrived } from './arrival.ts';

const settled = {
  Image: 'new',
  Generation: 2,
  ObservedGeneration: 2,
  Replicas: 1,
  UpdatedReplicas: 1,
  ReadyReplicas: 1,
};

function work(
  values: Record<string, string | number> = settled,
  observedGeneration = 3,
  { settings = '', replicas = 1 } = {},
): ManifestWork {
  const metadata = { namespace: 'argocd', name: 'controller' };
  const annotated = { annotations: settings === '' ? {} : { 'checksum/settings': settings } };
  const pod = { containers: [{ name: 'c', image: 'new' }] };
  const manifest = { kind: 'StatefulSet', metadata, spec: { replicas, template: { metadata: annotated, spec: pod } } };
  const condition = (type: string): Condition => {
    return { type, status: 'True', reason: 'Test', message: '', lastTransitionTime: '', observedGeneration };
  };
  return {
    metadata: { namespace: 'c1', name: 'w', generation: 3 },
    spec: { workload: { manifests: [manifest] }, manifestConfigs: [statefulSetFeedback('argocd', 'controller')] },
    status: {
      conditions: ['Applied', 'Available'].map(condition),
      resourceStatus: {
        manifests: [
          {
            resourceMeta: { ordinal: 0, kind: 'StatefulSet', ...metadata },
            conditions: [],
            statusFeedback: {
              values: Object.entries(values).map(([name, value]) => ({
                name,
                fieldValue:
                  typeof value === 'string' ? { type: 'String', string: value } : { type: 'Integer', integer: value },
              })),
            },
          },
        ],
      },
    },
  };
}

test('works have arrived when their workloads run', () => {
  expect(haveArrived([work()])).toBe(true);
  expect(haveArrived([])).toBe(false);
});

const without = (name: keyof typeof settled) => {
  const { [name]: _, ...rest } = settled;
  return rest;
};

test.each([
  ['the news is of the former image', { ...settled, Image: 'old' }],
  ['the cluster has not looked at the change', { ...settled, ObservedGeneration: 1 }],
  ['the pod is still the former one', { ...settled, UpdatedReplicas: 0 }],
  ['the new pod is not ready', { ...settled, ReadyReplicas: 0 }],
  // Go omits fields with value 0 from a status.
  ['no pod is new', without('UpdatedReplicas')],
  ['no pod is ready', without('ReadyReplicas')],
  ['nothing is known of it', {}],
])('not while %s', (_, values) => {
  expect(haveArrived([work(values)])).toBe(false);
});

test('works have not arrived while one is not applied in its current generation', () => {
  expect(haveArrived([work(), work(settled, 2)])).toBe(false);
});

test('workloads without requested feedback are not waited for', () => {
  const quiet = work({});
  delete quiet.spec.manifestConfigs;
  expect(haveArrived([quiet])).toBe(true);
});

test('settings that the pods read at their start have arrived with the pods that read them', () => {
  const told = (known: string) => work({ ...settled, ...(known && { Settings: known }) }, 3, { settings: 'new' });
  expect(haveArrived([told('new')])).toBe(true);
  expect(haveArrived([told('old')])).toBe(false);
  expect(haveArrived([told('')])).toBe(false);
  expect(haveArrived([work({ ...settled, Settings: 'old' })])).toBe(false);
});

test('a workload without pods has arrived when none is left', () => {
  const { Replicas: _, UpdatedReplicas: __, ReadyReplicas: ___, ...none } = settled;
  expect(haveArrived([work(none, 3, { replicas: 0 })])).toBe(true);
  expect(haveArrived([work(settled, 3, { replicas: 0 })])).toBe(false);
});
