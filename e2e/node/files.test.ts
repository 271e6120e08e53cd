import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AddressBlock, clusterAddress, loopbackAddress } from './addresses.ts';
import { writeAtomically } from './atomic-folder.ts';
import { expand } from './expand.ts';
import { quantity } from './fields.ts';
import { ContainerLog } from './logs.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'node-files-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const everything = { follow: false, timestamps: false };
const never = new AbortController().signal;

async function linesOf(log: ContainerLog, query: object = {}, signal = never): Promise<string> {
  let text = '';
  for await (const line of log.read({ ...everything, ...query }, signal)) {
    text += line;
  }
  return text;
}

describe('writeAtomically', () => {
  it('switches all files in one step and forgets those that went', async () => {
    const file = (content: string) => ({ content, mode: 0o644 });
    await writeAtomically(
      folder,
      new Map([
        ['a', file('1')],
        ['sub/b', file('2')],
      ]),
      undefined,
    );
    const first = await readlink(join(folder, '..data'));
    await writeAtomically(
      folder,
      new Map([
        ['a', file('3')],
        ['c', file('4')],
      ]),
      undefined,
    );
    expect(await readlink(join(folder, '..data'))).not.toBe(first);
    expect(await readFile(join(folder, 'a'), 'utf8')).toBe('3');
    expect((await readdir(folder)).filter((name) => !name.startsWith('..')).sort()).toEqual(['a', 'c']);
    expect((await readdir(folder)).filter((name) => name.startsWith('..'))).toHaveLength(2);
  });
});

describe('ContainerLog', () => {
  it('gives what was asked for', async () => {
    const log = new ContainerLog(join(folder, 'log'));
    const out = new PassThrough();
    const error = new PassThrough();
    log.record(out, error);
    const followed = linesOf(log, { follow: true, tailLines: 0 });
    out.end('one\ntwo\n');
    error.end();
    expect(await followed).toBe('one\ntwo\n');
    expect(await linesOf(log)).toBe('one\ntwo\n');
    expect(await linesOf(log, { tailLines: 1 })).toBe('two\n');
    expect(await linesOf(log, { limitBytes: 5 })).toBe('one\nt');
    expect(await linesOf(log, { timestamps: true })).toMatch(/^\d{4}-\S+Z one\n\d{4}-\S+Z two\n$/);
    expect(await linesOf(log, { since: Date.now() + 1000 })).toBe('');
    expect(await log.tail(1)).toBe('two');
  });

  it('stops following when its reader leaves', async () => {
    const log = new ContainerLog(join(folder, 'log'));
    const leave = new AbortController();
    const followed = linesOf(log, { follow: true }, leave.signal);
    leave.abort();
    expect(await followed).toBe('');
  });
});

describe('AddressBlock', () => {
  it('gives different addresses and takes them back', () => {
    const block = new AddressBlock(20, 4);
    expect(block.node).toBe('127.20.4.1');
    const all = Array.from({ length: 1015 }, () => block.take());
    expect(new Set(all).size).toBe(1015);
    expect(() => block.take()).toThrow(/no free address left in 127.20.4.0\/22/);
    block.free('127.20.5.7');
    expect(block.takeThis('127.20.5.7')).toBe('127.20.5.7');
    expect(block.takeThis('127.20.5.7')).toBeUndefined();
    expect(block.takeThis('127.21.5.7')).toBeUndefined();
  });

  it('tells the cluster addresses that lead back', () => {
    expect(loopbackAddress(clusterAddress('127.20.4.7'))).toBe('127.20.4.7');
  });
});

describe('values', () => {
  it('expands variables as the core API says', () => {
    const variables = new Map([['A', 'x']]);
    expect(expand('$(A) $$(A) $(B) $A $$ $(A', variables)).toBe('x $(A) $(B) $A $ $(A');
  });

  it.each([
    ['100m', 0.1],
    ['2', 2],
    ['1Ki', 1024],
    ['1.5Gi', 1.5 * 2 ** 30],
    ['3M', 3e6],
  ])('reads the quantity %s', (text, value) => {
    expect(quantity(text)).toBeCloseTo(value);
  });
});
