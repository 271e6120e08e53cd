import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { isProcessAlive } from './index.ts';

const name = `test-${process.pid}`;
const program = fileURLToPath(new URL('./cli.ts', import.meta.url));

function testbed(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args, '--name', name], (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

const numbers = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, number]) => Number(number));
const ownerOf = (text: string) => numbers(text, /, process (\d+),/g)[0] as number;
const componentsOf = (text: string) => numbers(text, /(?:etcd|kube-[a-z-]+) (\d+)/g);

describe('npm run testbed', () => {
  afterAll(() => testbed('down'));

  it('leaves clusters running, tells of them and ends them', async () => {
    expect(await testbed('status')).toMatchObject({ code: 1, stdout: `testbed ${name} does not run\n` });

    const up = await testbed('up', '--clusters', '0', '--detach');
    expect(up).toMatchObject({ code: 0, stderr: '' });
    const pids = [ownerOf(up.stdout), ...componentsOf(up.stdout)];
    expect(pids).toHaveLength(4);
    const kubeconfig = /KUBECONFIG=(\S+)/.exec(up.stdout)?.[1] ?? '';
    expect(existsSync(kubeconfig)).toBe(true);

    const again = await testbed('up');
    expect(again.code).toBe(1);
    expect(again.stderr).toContain(`testbed ${name} runs already`);
    expect(componentsOf((await testbed('status')).stdout)).toEqual(pids.slice(1));

    expect(await testbed('down')).toMatchObject({ code: 0, stdout: `testbed ${name} has ended\n` });
    expect(pids.filter(isProcessAlive)).toEqual([]);
    expect(existsSync(kubeconfig)).toBe(false);
  });

  it('can start again after it was killed', async () => {
    const killed = await testbed('up', '--clusters', '0', '--detach');
    const pids = [ownerOf(killed.stdout), ...componentsOf(killed.stdout)];
    process.kill(ownerOf(killed.stdout), 'SIGKILL');
    await until(() => expect(pids.filter(isProcessAlive)).toEqual([]));
    expect((await testbed('status')).code).toBe(1);
    expect((await testbed('up', '--clusters', '0', '--detach')).code).toBe(0);
  });

  it.each([
    [['sideways'], 'there is no command sideways'],
    [['up', '--clusters', 'many'], '--clusters takes a number'],
    [['up', '--bogus'], "Unknown option '--bogus'"],
  ])('refuses %j with the help text', async (args, message) => {
    const { code, stderr } = await testbed(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain('Usage: npm run testbed');
  });
});
