import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { isProcessAlive, Program, spawnTalker } from './index.ts';

const open: Program[] = [];
afterEach(() => Promise.all(open.splice(0).map((one) => one.stop('SIGKILL'))));

const shell = (script: string, env: Record<string, string> = {}) => {
  const program = new Program(['-c', script], env, 'sh');
  open.push(program);
  return program;
};

describe('Program', () => {
  it('runs from the begin of its start to its end, and tells what it said and how it ended', async () => {
    const program = shell('echo $WHO; echo $HOME >&2; read line; exit 3', { WHO: 'me' });
    expect(program.running).toBe(false);
    expect(await program.exited()).toBe(0);
    program.start();
    expect([program.running, program.pid]).toEqual([true, undefined]);
    expect(() => program.start()).toThrow('the program runs already');
    expect(await program.exited()).toBe(3);
    expect([program.running, program.pid]).toEqual([false, undefined]);
    expect(program.output.split('\n').sort()).toEqual(['', '/nonexistent', 'me']);
    program.start();
    const after = program.output.length;
    expect((await program.says(/m(.)/, { after }))[1]).toBe('e');
  });

  it('says what does not come', async () => {
    const program = shell('echo this; sleep 1000');
    program.start();
    await expect(program.says(/that/, { timeoutMs: 500 })).rejects.toThrow(/no \/that\/ within 500 ms:\nthis/);
    await program.stop('SIGKILL');
    await expect(program.says(/that/)).rejects.toThrow(/before the program ended:\nthis/);
  });

  it('takes signals at any time, in order', async () => {
    const program = shell(
      `trap 'echo term; exit 4' TERM; trap 'echo user' USR1; echo up; while :; do sleep 0.05; done`,
    );
    program.start();
    await program.says(/up/);
    expect(isProcessAlive(program.pid ?? 0)).toBe(true);
    void program.signal('SIGSTOP');
    void program.signal('SIGUSR1');
    void program.signal('SIGCONT');
    await program.says(/user/);
    expect(await program.stop()).toBe(4);
    program.start();
    // Before it has started.
    expect(await program.stop('SIGKILL')).toBe(-1);
    expect(program.running).toBe(false);
    await program.signal('SIGTERM');
  });

  it('that cannot be started says why', async () => {
    const program = new Program([], {}, '/no/such/program');
    program.start();
    await expect(program.says(/up/)).rejects.toThrow(/cannot start \/no\/such\/program/);
    expect([program.running, await program.exited(), await program.stop()]).toEqual([false, -1, -1]);
  });

  it('ends with the process that started it, however that ends', async () => {
    const starter = `
      import { Program } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)};
      const program = new Program(['-c', 'echo up; sleep 1000 & wait'], {}, 'sh');
      program.start();
      await program.says(/up/);
      console.log(program.pid);
    `;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', starter], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const pid = Number((await once(child.stdout, 'data'))[0]);
    expect(isProcessAlive(pid)).toBe(true);
    child.kill('SIGKILL');
    await until(() => expect(isProcessAlive(pid)).toBe(false));
  });
});

it('a process that is talked with takes lines and gives lines', async () => {
  const lines: string[] = [];
  const onLine = (line: string) => lines.push(line);
  const talker = await spawnTalker('sh', ['-c', 'while read word; do echo "you said $word"; done; exit 5'], { onLine });
  talker.input?.write('one\ntwo\n');
  await until(() => expect(lines).toEqual(['you said one', 'you said two']));
  talker.input?.end();
  expect(await talker.exited).toEqual({ code: 5, signal: null });
});
