import { expect, test } from 'vitest';
import { createLogger, Reloadable } from '../../lib/ops/index.ts';
import { firstMaterial } from './key-material.ts';

function waiting() {
  const lines: string[] = [];
  const logger = createLogger({ destination: { write: (line) => void lines.push(line) } });
  const source = new Reloadable({ origin: 'Secret argocd/x', logger, parse: ({ key }) => key });
  const read = Promise.withResolvers<void>();
  const stop = new AbortController();
  const found = firstMaterial(() => source.value, [source], {
    ...{ what: 'proxy', flag: 'secret-name', off: 'enable-proxy=false', logger, signal: stop.signal },
    secrets: { settled: () => read.promise },
  });
  return { lines, source, read, stop, found };
}

test('nothing is reported as missing before the Secrets have been read', async () => {
  const { lines, source, read, found } = waiting();
  source.offer({ key: 'k' });
  read.resolve();
  expect(await found).toBe('k');
  expect(lines).toEqual([]);
});

test('what is missing then is reported with what to do, and awaited', async () => {
  const { lines, source, read, found } = waiting();
  read.resolve();
  await read.promise;
  expect(lines).toEqual([expect.stringContaining('Secret argocd/x: not read yet')]);
  expect(lines[0]).toContain('Create it, name another one with --secret-name, or set --enable-proxy=false');
  source.offer({ key: 'k' });
  expect(await found).toBe('k');
});

test('it ends without a word when the program ends', async () => {
  const { lines, read, stop, found } = waiting();
  stop.abort();
  read.reject(new Error('stopped'));
  expect(await found).toBeUndefined();
  expect(lines).toEqual([]);
});
