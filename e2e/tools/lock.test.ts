import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withFileLock } from './lock.ts';

let folder = '';
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'));
  path = join(folder, 'work.held');
});
afterEach(() => rmSync(folder, { recursive: true }));

const program = `
  import { withFileLock } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))};
  await withFileLock(process.argv[1], undefined, async () => {
    console.log(process.pid);
    await new Promise((resolve) => setTimeout(resolve, 1e8));
  });
`;

/**
 * Starts a process that holds the lock.
 * @param wrapper what starts it; default: this process
 * @returns its id, and what ends the wrapper
 */
async function startHolder(wrapper: readonly string[] = []): Promise<{ pid: number; end: () => Promise<unknown> }> {
  const [command = '', ...args] = [...wrapper, process.execPath, '--input-type=module', '--eval', program, path];
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const [pid] = await once(child.stdout, 'data');
  return {
    pid: Number(pid),
    end: () => {
      child.kill('SIGKILL');
      return ended;
    },
  };
}

/** As many looks at the file system, one after the other. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await stat(folder);
  }
}

/** Does it get the lock at once? */
async function isFree(): Promise<boolean> {
  const soon = AbortSignal.timeout(2000);
  return await withFileLock(path, soon, async () => true).catch(() => false);
}

test('those who wait for a holder that was killed go on one after the other, and nothing is left', async () => {
  for (let round = 0; round < 3; round++) {
    const { end } = await startHolder();
    await end();
    let working = 0;
    const most = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        // Each is at another step when the first one goes on.
        await turns(index);
        return await withFileLock(path, undefined, async () => {
          working++;
          await turns(50);
          return working--;
        });
      }),
    );
    expect(most).toEqual(Array(8).fill(1));
    expect(readdirSync(folder)).toEqual([]);
  }
});

test('the lock is free after an error, and nothing is left of who gave up', async () => {
  await expect(withFileLock(path, undefined, () => Promise.reject(new Error('no luck')))).rejects.toThrow('no luck');
  await withFileLock(path, undefined, async () => {
    await expect(withFileLock(path, AbortSignal.abort(new Error('enough')), async () => true)).rejects.toThrow(
      'enough',
    );
  });
  expect(readdirSync(folder)).toEqual([]);
});

test('a holder killed while it took or gave back the lock does not keep it', async () => {
  mkdirSync(path);
  expect(await isFree()).toBe(true);
});

test.for(['', '-1'])(
  'a later process with the id of a holder is not the holder: %j',
  { tags: 'linux' },
  async (start) => {
    mkdirSync(path);
    writeFileSync(join(path, `${process.ppid}${start}`), '');
    expect(await isFree()).toBe(true);
  },
);

test('a holder that has ended and that nobody waits for does not keep the lock', { tags: 'linux' }, async () => {
  // The shell becomes a program that never asks for the end of its child.
  const { pid, end } = await startHolder(['sh', '-c', '"$@" & exec sleep 1000', 'sh']);
  try {
    expect(await isFree()).toBe(false);
    process.kill(pid, 'SIGKILL');
    expect(await isFree()).toBe(true);
  } finally {
    await end();
  }
});
