import { expect, it } from 'vitest';
import { brokenWalls, findCycle, readImports } from './imports.ts';
import { brokenRooms, controllerRooms, libRooms, testbedRooms } from './rooms.ts';

const graph = readImports(new URL('../..', import.meta.url).pathname);

it('reads the whole project', () => {
  expect(graph.size).toBeGreaterThan(50);
  expect(graph.get('e2e/house/rooms.ts')).toEqual(['e2e/house/imports.ts']);
});

it('keeps the walls: programs apart, the engine free of Kubernetes and gRPC, public faces only', () => {
  expect(brokenWalls(graph)).toEqual([]);
});

it('keeps the rooms of the controller in order', () => {
  expect(brokenRooms(graph, 'controller', controllerRooms)).toEqual([]);
});

it('keeps the rooms of the library in order', () => {
  expect(brokenRooms(graph, 'lib', libRooms)).toEqual([]);
});

it('keeps the rooms of the testbed in order', () => {
  expect(brokenRooms(graph, 'e2e', testbedRooms)).toEqual([]);
});

it('has no import cycle', () => {
  expect(findCycle(graph)).toBeUndefined();
});

it('notices what it is there to notice', () => {
  const bad = new Map([
    ['principal/a.ts', ['agent/b.ts', 'lib/kube/cache/informer.ts']],
    ['lib/sync/a.ts', ['lib/kube/index.ts']],
    ['lib/ops/a.ts', ['agent/b.ts']],
    ['e2e/a.ts', ['controller/b.ts']],
  ]);
  expect(brokenWalls(bad)).toEqual([
    'principal/a.ts imports agent/b.ts: a program imports only lib and proto',
    'principal/a.ts imports lib/kube/cache/informer.ts: import lib/kube/index.ts, its public face',
    'lib/sync/a.ts imports lib/kube/index.ts: the engine and the rules know neither Kubernetes nor gRPC',
    'lib/ops/a.ts imports agent/b.ts: lib imports only lib and proto',
    'e2e/a.ts imports controller/b.ts: programs are run, not imported',
  ]);
  const rooms = new Map([
    ['controller/index.ts', ['controller/upper/index.ts']],
    ['controller/upper/a.ts', ['controller/lower/b.ts', 'controller/upper/c.ts']],
    ['controller/lower/b.ts', ['controller/upper/index.ts', 'controller/controller.ts']],
    ['controller/lower/b.test.ts', ['controller/upper/index.ts', 'controller/testing/hub.ts']],
  ]);
  expect(brokenRooms(rooms, 'controller', { lower: [], upper: ['lower'] })).toEqual([
    'controller/upper/a.ts imports controller/lower/b.ts: import controller/lower/index.ts, its public face',
    'controller/lower/b.ts imports controller/upper/index.ts: room lower does not import room upper',
    'controller/lower/b.ts imports controller/controller.ts: room lower does not import room controller',
  ]);
  expect(brokenRooms(new Map(), 'controller', { lower: ['upper'], upper: [] })).toEqual([
    'room lower may import upper, which does not stand before it',
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
