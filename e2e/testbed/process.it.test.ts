import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { isProcessAlive, SpawnError, spawnSupervised } from './index.ts';

let dir = '';
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'process-'));
});
afterAll(() => rm(dir, { recursive: true }));

/** Runs a shell script and waits until it has written process ids, one a line, to its log. */
async function runScript(name: string, script: string, lines: number) {
  const logFile = join(dir, name);
  const child = await spawnSupervised('sh', ['-c', script], { logFile });
  const pids = await until('the processes to start', async () => {
    const found = [...(await readFile(logFile, 'utf8')).matchAll(/^\d+$/gm)].map(Number);
    expect(found).toHaveLength(lines);
    return found;
  });
  return { child, pids };
}

describe('spawnSupervised', () => {
  it('passes environment, folder and output, and reports the exit code', async () => {
    const logFile = join(dir, 'out');
    const onExit = vi.fn();
    const env = { PATH: process.env.PATH, WHO: 'me' };
    const child = await spawnSupervised('sh', ['-c', 'echo $WHO; pwd >&2; exit 3'], { env, cwd: dir, logFile, onExit });
    expect(await child.exited).toEqual({ code: 3, signal: null });
    expect(child.running).toBe(false);
    expect(onExit).toHaveBeenCalledExactlyOnceWith({ code: 3, signal: null });
    expect(await readFile(logFile, 'utf8')).toBe(`me\n${dir}\n`);
  });

  it('says what cannot be started', async () => {
    await expect(spawnSupervised('no-such-command', [])).rejects.toThrow(SpawnError);
    await expect(spawnSupervised('no-such-command', [])).rejects.toThrow(/cannot start no-such-command: .*not found/);
    await expect(spawnSupervised('true', [], { cwd: '/no/such/folder' })).rejects.toThrow(SpawnError);
  });

  it('signals the command, and stops it hard when it does not listen', async () => {
    const polite = await spawnSupervised('sleep', ['1000']);
    expect(await polite.stop()).toEqual({ code: null, signal: 'SIGTERM' });
    const { child } = await runScript('deaf', 'trap "" TERM; echo $$; while :; do sleep 1; done', 1);
    expect(await child.stop(100)).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('takes grandchildren along, also those that left the process group', async () => {
    const { child, pids } = await runScript('tree', 'sleep 1000 & echo $!; setsid sleep 1000 & echo $!; sleep 1000', 2);
    expect(pids.map(isProcessAlive)).toEqual([true, true]);
    await child.kill();
    expect(pids.map(isProcessAlive)).toEqual([false, false]);
  });

  it('leaves nothing behind a command that ends by itself', async () => {
    const { child, pids } = await runScript('daemon', '(setsid sleep 1000 & echo $!; echo $$)', 2);
    await child.exited;
    expect(pids.map(isProcessAlive)).toEqual([false, false]);
  });

  it('ends with its supervisor', { tags: 'linux' }, async () => {
    const child = await spawnSupervised('sleep', ['1000']);
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
    process.kill(Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]), 'SIGKILL');
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
    await until(() => expect(isProcessAlive(child.pid)).toBe(false));
  });

  it('survives nobody: all is gone after SIGKILL of the process that started it', async () => {
    const program = `
      import { spawnSupervised } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)};
      const child = await spawnSupervised('sh', ['-c', 'sleep 1000 & echo $! >&2; setsid sleep 1000 & echo $! >&2; wait'],
        { logFile: ${JSON.stringify(join(dir, 'crash'))} });
      console.log(child.pid);
    `;
    const runner = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const pid = await new Promise<number>((resolve) => runner.stdout.once('data', (data) => resolve(Number(data))));
    const pids = await until('the processes to start', async () => {
      const found = (await readFile(join(dir, 'crash'), 'utf8')).trim().split('\n').map(Number);
      expect(found).toHaveLength(2);
      return [pid, ...found];
    });
    expect(pids.map(isProcessAlive)).toEqual([true, true, true]);
    runner.kill('SIGKILL');
    await until(() => expect(pids.map(isProcessAlive)).toEqual([false, false, false]));
  });
});
