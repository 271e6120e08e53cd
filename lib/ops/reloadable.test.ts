import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createLogger, followFiles, followSecret, followSecretWith, Reloadable } from './index.ts';

const logger = createLogger({ level: 'fatal' });
const make = () =>
  new Reloadable({
    origin: 'Secret argocd/x',
    logger,
    parse: (fields) => {
      if (fields.key === undefined) {
        throw new Error('has no field key');
      }
      return fields.key;
    },
  });
const advice = 'Create it with argocd-agentctl.';

test('follows a Secret; a bad or deleted one leaves the last good value', async () => {
  const live = make();
  type Handler = Parameters<Parameters<typeof followSecret>[0]['subscribe']>[0];
  let handler: Handler | undefined;
  followSecret(
    {
      subscribe: (given) => {
        handler = given;
        return () => undefined;
      },
    },
    'x',
    live,
  );
  const secret = (data: Record<string, string>, name = 'x') => ({ metadata: { name }, data });
  const waiting = live.ready({ timeoutMs: 10_000, advice, signal: new AbortController().signal });
  handler?.added(secret({ key: 'bm8=' }, 'other'));
  expect(live.value).toBeUndefined();
  handler?.added(secret({ key: 'b25l' }));
  expect(await waiting).toBe('one');
  handler?.updated(undefined, secret({}));
  expect([live.value, live.problem]).toEqual(['one', 'has no field key']);
  handler?.deleted(secret({}));
  expect([live.value, live.problem]).toEqual(['one', 'does not exist']);
  handler?.added(secret({ key: 'dHdv' }));
  expect([live.value, live.problem]).toEqual(['two', undefined]);
});

test('a second Secret adds to the first, and alone is nothing', async () => {
  const lines: string[] = [];
  const log = createLogger({ destination: { write: (line) => void lines.push(line) } });
  const live = new Reloadable({ origin: 'Secret argocd/x', logger: log, parse: (fields) => ({ ...fields }) });
  type Handler = Parameters<Parameters<typeof followSecretWith>[0]['subscribe']>[0];
  let handler: Handler | undefined;
  const subscribe = (given: Handler) => {
    handler = given;
    return () => undefined;
  };
  followSecretWith({ subscribe }, 'x', 'x-trust', live);
  const secret = (name: string, value: string) => ({ metadata: { name }, data: { key: btoa(value) } });
  handler?.added(secret('x-trust', 'old'));
  await Promise.resolve();
  expect([live.value, live.problem]).toEqual([undefined, 'does not exist']);
  handler?.added(secret('x', 'new'));
  await Promise.resolve();
  expect(live.value).toEqual({ key: 'new', 'x-trust/key': 'old' });
  handler?.updated(undefined, secret('y', 'other'));
  handler?.deleted(secret('x-trust', 'old'));
  await Promise.resolve();
  expect(live.value).toEqual({ key: 'new' });
  expect(lines.filter((line) => line.includes('credentials changed'))).toHaveLength(1);
  handler?.deleted(secret('x', 'new'));
  await Promise.resolve();
  expect([live.value, live.problem]).toEqual([{ key: 'new' }, 'does not exist']);
});

test.each([
  ['x', 'x-trust'],
  ['x-trust', 'x'],
])('the first load of two Secrets (%s, %s) is no change', async (first, second) => {
  const lines: string[] = [];
  const log = createLogger({ destination: { write: (line) => void lines.push(line) } });
  const live = new Reloadable({ origin: 'Secret argocd/x', logger: log, parse: (fields) => ({ ...fields }) });
  const secret = (name: string) => ({ metadata: { name }, data: { key: btoa(name) } });
  const subscribe = (handler: Parameters<Parameters<typeof followSecretWith>[0]['subscribe']>[0]) => {
    handler.added(secret(first));
    handler.added(secret(second));
    return () => undefined;
  };
  followSecretWith({ subscribe }, 'x', 'x-trust', live);
  await Promise.resolve();
  expect(live.value).toEqual({ key: 'x', 'x-trust/key': 'x-trust' });
  expect(lines).toEqual([]);
});

test('what never comes is fatal, with the origin and what to do', async () => {
  await expect(make().ready({ timeoutMs: 1, advice, signal: new AbortController().signal })).rejects.toThrow(
    'Secret argocd/x: not read yet. Create it with argocd-agentctl.',
  );
});

test('files are read again when they change', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'live-'));
  const stop = new AbortController();
  onTestFinished(() => {
    stop.abort();
    rmSync(folder, { recursive: true });
  });
  const key = join(folder, 'key.pem');
  const live = make();
  expect(() => followFiles({ key }, live, stop.signal)).toThrow(/Secret argocd\/x: ENOENT.*key\.pem/);
  writeFileSync(key, 'one');
  followFiles({ key }, live, stop.signal);
  expect(live.value).toBe('one');
  const changed = new Promise<void>((resolve) =>
    live.subscribe(() => {
      if (live.value === 'two') {
        resolve();
      }
    }),
  );
  writeFileSync(key, 'two');
  await changed;
});

test('what was refused is read again: a clock may have been wrong', async () => {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  let isClockRight = false;
  const live = new Reloadable({
    origin: 'Secret argocd/x',
    logger,
    parse: () => {
      if (!isClockRight) {
        throw new Error('has expired');
      }
      return 'good';
    },
  });
  const changes = vi.fn();
  live.subscribe(changes);
  live.offer({ key: 'x' });
  await vi.advanceTimersByTimeAsync(300_000);
  expect(live.problem).toBe('has expired');
  expect(changes, 'the same problem is no news').toHaveBeenCalledOnce();
  isClockRight = true;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(live.value).toBe('good');
  await vi.advanceTimersByTimeAsync(300_000);
  expect(changes).toHaveBeenCalledTimes(2);
});
