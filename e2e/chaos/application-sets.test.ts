import { expect, test } from 'vitest';
import { Random } from '../random/index.ts';
import { changedSet, generatedBy, newSet, setName } from './application-sets.ts';
import { Ledger } from './ledger.ts';

test('edits of an ApplicationSet come out in what it generates, and no name comes back', () => {
  const sets = new Ledger();
  const want = (spec: Record<string, unknown>) => sets.want({ agent: 'a', name: setName, uid: 'one', spec });
  const names = () => generatedBy(sets).map(({ name }) => name);
  const revisions = () =>
    generatedBy(sets).map(({ spec }) => (spec.source as { targetRevision: string }).targetRevision);
  want(newSet('a').spec);
  expect(names()).toEqual(['set-1', 'set-2']);
  const random = new Random(7);
  const gone = new Set<string>();
  let edits = 0;
  for (let next = 3; next < 200; next++) {
    const set = sets.find('a', setName);
    const { spec, dropped } = changedSet(set as NonNullable<typeof set>, random, next);
    const [before, revisionsBefore] = [names(), revisions()];
    want(spec);
    if (dropped !== undefined) {
      gone.add(dropped);
    }
    const hasChanged = names().join() !== before.join() || revisions().join() !== revisionsBefore.join();
    edits += hasChanged ? 1 : 0;
    expect(names().filter((name) => gone.has(name))).toEqual([]);
    expect(names().length).toBeGreaterThan(0);
    expect(names().length).toBeLessThanOrEqual(4);
  }
  expect(edits).toBe(197);
});
