import { expect, test } from 'vitest';
import { WorkloadBook } from './workloads.ts';

const copy = (uid: string, source: string) => ({
  metadata: { name: 'web', uid, annotations: { 'argocd.argoproj.io/source-uid': source } },
});

test('the workload of a copy goes if any of its sources asked for it, on that agent alone', () => {
  const book = new WorkloadBook();
  book.follow(copy('copy-1', 'web-1'));
  book.follow(copy('copy-1', 'web-2'));
  expect(book.sourcesOf('copy-1')).toEqual(['web-1', 'web-2']);
  expect(book.isAsked('cluster1', 'copy-1')).toBe(false);
  book.ask('cluster2', 'web-1');
  expect(book.isAsked('cluster1', 'copy-1')).toBe(false);
  book.ask('cluster1', 'web-1');
  expect(book.isAsked('cluster1', 'copy-1')).toBe(true);
});

test('an Application that is no copy is its own source; what a user deleted where it deploys is asked for', () => {
  const book = new WorkloadBook();
  book.ask('cluster1', 'own-1');
  book.deleted('own-2');
  expect(['own-1', 'own-2', 'own-3'].map((uid) => book.isAsked('cluster1', uid))).toEqual([true, true, false]);
});
