import { expect, test } from 'vitest';
import { annotations } from '../../lib/argocd/index.ts';
import { argoApplications } from '../../lib/bridge/index.ts';
import type { Informer, KubeObject } from '../../lib/kube/index.ts';
import { targets } from '../../lib/wire/index.ts';
import { hubApplicationSets, type ReplicatedKind, wasOnBothHubs } from './kinds.ts';
import { OnBothHubs } from './on-both-hubs.ts';
import { StandbyWriter, type StandbyWriterOptions } from './standby-writer.ts';

// Argo CD's ApplicationSet controller takes annotations away that are not in its template: an Application of a set has no mark.

const nothing = () => undefined;
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const marks = { [annotations.onBothHubs]: 'true' };

function kinds(sets: readonly KubeObject[]): ReplicatedKind[] {
  const get = ({ name }: { name: string }) => sets.find(({ metadata }) => metadata.name === name);
  const informer = { get } as unknown as Informer<KubeObject>;
  const common = { informer, includes: () => true, yields: false };
  return [
    { ...common, name: 'ApplicationSet', target: targets.application, type: hubApplicationSets },
    { ...common, name: 'Application', target: targets.application, type: argoApplications },
  ];
}

const set = (notes = {}): KubeObject => ({ metadata: { namespace: 'a', name: 'set', uid: 'set', annotations: notes } });
const made: KubeObject = {
  metadata: {
    namespace: 'a',
    name: 'web',
    uid: 'web',
    ownerReferences: [{ apiVersion: 'argoproj.io/v1alpha1', kind: 'ApplicationSet', name: 'set', uid: 'set' }],
  },
};

test('what an ApplicationSet makes was on both hubs if that was', () => {
  expect(wasOnBothHubs(made, kinds([set(marks)]))).toBe(true);
  expect(wasOnBothHubs(made, kinds([set()]))).toBe(false);
  expect(wasOnBothHubs(made, kinds([]))).toBe(false);
  const orphan = { metadata: { ...made.metadata, annotations: marks } };
  expect(wasOnBothHubs(orphan, kinds([]))).toBe(true);
});

test('nobody marks what an ApplicationSet makes', async () => {
  const patched: string[] = [];
  const stop = new AbortController();
  const all = kinds([set()]);
  const marking = new OnBothHubs({
    kinds: all,
    client: {
      mergePatch: async (_: unknown, { name }: { name: string }) => {
        patched.push(name);
        stop.abort();
        return set();
      },
    } as unknown as ConstructorParameters<typeof OnBothHubs>[0]['client'],
    logger,
  });
  const [ofSets, ofApplications] = all as [ReplicatedKind, ReplicatedKind];
  marking.add(ofApplications, made);
  marking.add(ofSets, set());
  await marking.run(stop.signal);
  expect(patched).toEqual(['set']);

  const created: KubeObject[] = [];
  const writer = new StandbyWriter({
    client: {
      get: async () => undefined,
      create: async (_: unknown, object: KubeObject) => {
        created.push(object);
        return object;
      },
    } as unknown as StandbyWriterOptions['client'],
    namespace: 'argocd',
    isManaged: () => true,
    applicationSetUid: () => 'set-here',
    logger,
  });
  const standby = kinds([]);
  await writer.put(standby[1] as ReplicatedKind, made, new AbortController().signal);
  await writer.put(standby[0] as ReplicatedKind, set(), new AbortController().signal);
  expect(created.map(({ metadata }) => metadata.annotations)).toEqual([{}, marks]);
  expect(created[0]?.metadata.ownerReferences).toMatchObject([{ name: 'set', uid: 'set-here' }]);
});
