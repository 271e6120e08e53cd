import { expect, test } from 'vitest';
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

function setUp() {
  const written: string[] = [];
  const done: number[] = [];
  const full: boolean[] = [];
  const failing = new Set<string>();
  const held = new Map<string, PromiseWithResolvers<void>>();
  const changes = new IncomingChanges({
    write: async ({ ref: { name }, object }) => {
      await held.get(name)?.promise;
      if (failing.has(name)) {
        throw new Error('not now');
      }
      written.push(`${name} ${(object as KubeObject & { text: string }).text}`);
    },
    done: (sequence) => done.push(Number(sequence)),
    full: (isFull) => full.push(isFull),
    logger,
  });
  const stop = new AbortController();
  const running = changes.run(stop.signal);
  const end = () => {
    stop.abort();
    return running;
  };
  return { changes, written, done, full, failing, held, end };
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
