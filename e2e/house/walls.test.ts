import { expect, it } from 'vitest';
import { brokenWalls, findCycle, readImports } from './imports.ts';

const graph = readImports(new URL('../..', import.meta.url).pathname);

it('reads the whole project', () => {
  expect(graph.size).toBeGreaterThan(50);
  expect(graph.get('e2e/house/walls.test.ts')).toEqual(['e2e/house/imports.ts']);
});

it('keeps the walls: programs apart, the engine free of Kubernetes and gRPC, public faces only', () => {
  expect(brokenWalls(graph)).toEqual([]);
});

it('has no import cycle', () => {
  expect(findCycle(graph)).toBeUndefined();
});

it('notices what it is there to notice', () => {
  const bad = new Map([
    ['principal/a.ts', ['agent/b.ts', 'lib/kube/informer.ts']],
    ['lib/sync/a.ts', ['lib/kube/index.ts']],
    ['lib/ops/a.ts', ['agent/b.ts']],
    ['e2e/a.ts', ['controller/b.ts']],
  ]);
  expect(brokenWalls(bad)).toEqual([
    'principal/a.ts imports agent/b.ts: a program imports only lib and proto',
    'principal/a.ts imports lib/kube/informer.ts: import lib/kube/index.ts, its public face',
    'lib/sync/a.ts imports lib/kube/index.ts: the engine and the rules know neither Kubernetes nor gRPC',
    'lib/ops/a.ts imports agent/b.ts: lib imports only lib and proto',
    'e2e/a.ts imports controller/b.ts: programs are run, not imported',
  ]);
  expect(
    findCycle(
      new Map([
        ['a', ['b']],
        ['b', ['a']],
      ]),
    ),
  ).toEqual(['a', 'b', 'a']);
});
