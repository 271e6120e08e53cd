import { expect, test } from 'vitest';
import type { Logger } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import type { KubeObject } from '../../lib/kube/index.ts';
import { type IncomingChange, IncomingChanges } from './incoming-changes.ts';
import type { ReplicatedKind } from './kinds.ts';

const kind = { name: 'Application' } as ReplicatedKind;
const nothing = () => undefined;
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const change = (name: string, sequence: number, text = ''): IncomingChange => ({
  kind,
  ref: { namespace: 'one', name },
  object: { metadata: { name }, text } as KubeObject,
  sequence: BigInt(sequence),
});

function setUp(log: Logger = logger) {
  const written: string[] = [];
  const done: number[] = [];
  const full: boolean[] = [];
  const refusals: string[][] = [];
  const failing = new Set<string>();
  const held = new Map<string, PromiseWithResolvers<void>>();
  const changes: IncomingChanges = new IncomingChanges({
    write: async ({ ref: { name }, object }) => {
      await held.get(name)?.promise;
      if (failing.has(name)) {
        throw new Error('not now');
      }
      written.push(`${name} ${(object as KubeObject & { text: string }).text}`);
    },
    done: (sequence) => done.push(Number(sequence)),
    full: (isFull) => full.push(isFull),
    refused: () => refusals.push([...changes.refused.keys()]),
    logger: log,
  });
  const stop = new AbortController();
  const running = changes.run(stop.signal);
  const end = () => {
    stop.abort();
    return running;
  };
  return { changes, written, done, full, refusals, failing, held, end };
}

test('a number is done when all before it are; a failed write is repeated until it succeeds', async () => {
  const { changes, written, done, failing, end } = setUp();
  failing.add('a');
  changes.add(change('a', 1, 'x'));
  changes.add(change('b', 2, 'y'));
  changes.add(change('c', 3, 'z'));
  await until(() => expect(written).toEqual(['b y', 'c z']));
  expect(Math.max(0, ...done)).toBe(0);
  expect(changes.lag).toBe(1);
  failing.delete('a');
  await until(() => expect(done.at(-1)).toBe(3));
  expect(written.at(-1)).toBe('a x');
  await end();
});

test('only the newest state of an object is written, and one after the other', async () => {
  const { changes, written, done, held, end } = setUp();
  const gate = Promise.withResolvers<void>();
  held.set('a', gate);
  changes.add(change('a', 1, 'one'));
  await until(() => expect(changes.lag).toBe(1));
  // The queue starts a key in a later turn.
  await new Promise((resolve) => setImmediate(resolve));
  changes.add(change('a', 2, 'two'));
  changes.add(change('a', 3, 'three'));
  changes.skip(4n);
  expect(done.at(-1) ?? 0).toBe(0);
  held.delete('a');
  gate.resolve();
  await until(() => expect(done.at(-1)).toBe(4));
  expect(written.at(-1)).toBe('a three');
  expect(written).not.toContain('a two');
  await end();
});

test('a change that came during a write holds back the numbers after it', async () => {
  const { changes, written, done, failing, held, end } = setUp();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  held.set('a', first);
  changes.add(change('a', 1, 'one'));
  await new Promise((resolve) => setImmediate(resolve));
  changes.add(change('a', 2, 'two'));
  changes.add(change('a', 3, 'three'));
  failing.add('b');
  changes.add(change('b', 4, 'four'));
  held.set('a', second);
  first.resolve();
  await until(() => expect(done.at(-1)).toBe(1));
  failing.delete('b');
  await until(() => expect(written).toContain('b four'));
  await until(() => expect(changes.lag).toBe(1));
  expect(done.at(-1), 'the newest state of a is not written').toBe(1);
  second.resolve();
  await until(() => expect(done.at(-1)).toBe(4));
  await end();
});

test('the stream is not read on while too many objects wait', async () => {
  const { changes, full, failing, end } = setUp();
  for (let name = 0; name < 2_001; name++) {
    failing.add(`a${name}`);
    changes.add(change(`a${name}`, name + 1));
  }
  expect(full).toEqual([true]);
  failing.clear();
  await until(() => expect(full).toEqual([true, false]));
  await end();
});

test('an object that is refused again and again is named once, and holds up no number once the active hub knows of it', async () => {
  const said: string[] = [];
  const { changes, done, refusals, failing, end } = setUp({
    ...logger,
    warn: (_, text) => said.push(text),
    info: (_, text) => said.push(text),
  });
  failing.add('a');
  changes.add(change('a', 1));
  changes.add(change('b', 2));
  await until(() => expect(refusals).toEqual([['Application/one/a']]));
  expect(changes.holdingUp).toBe(1);
  expect(done.at(-1)).toBe(0);
  changes.excuse(['Application/one/a']);
  expect([done.at(-1), changes.holdingUp, changes.lag]).toEqual([2, 0, 1]);
  changes.add(change('a', 3, 'new'));
  changes.add(change('c', 4));
  await until(() => expect(done.at(-1)).toBe(4));
  await until(() => expect(changes.lag).toBe(1));
  expect(said).toHaveLength(1);
  failing.delete('a');
  changes.add(change('a', 5, 'newer'));
  await until(() => expect(refusals.at(-1)).toEqual([]));
  expect([changes.lag, said.length]).toEqual([0, 2]);
  await end();
});

test('while the active hub is being told, only what it knew before is held apart', async () => {
  const { changes, done, refusals, failing, end } = setUp();
  failing.add('a');
  changes.add(change('a', 1));
  await until(() => expect(refusals).toHaveLength(1));
  changes.excuse(changes.refused.keys());
  expect(done.at(-1)).toBe(1);
  failing.delete('a');
  changes.add(change('a', 2));
  await until(() => expect(changes.lag).toBe(0));
  changes.excuseOnly([]);
  failing.add('a');
  changes.add(change('a', 3));
  changes.skip(4n);
  expect(done.at(-1)).toBe(2);
  await end();
});

test('refused objects that are long in failing leave the others their turns, and the stream is read on', async () => {
  const { changes, written, full, refusals, failing, held, end } = setUp();
  for (let name = 0; name < 20; name++) {
    failing.add(`a${name}`);
    changes.add(change(`a${name}`, name + 1));
  }
  await until(() => expect(refusals.at(-1)).toHaveLength(20));
  const hanging = Promise.withResolvers<void>();
  for (let name = 0; name < 20; name++) {
    held.set(`a${name}`, hanging);
    changes.add(change(`a${name}`, name + 21));
  }
  changes.add(change('other', 41));
  await until(() => expect(written).toContain('other '));
  expect(full).toEqual([]);
  hanging.resolve();
  await end();
});
