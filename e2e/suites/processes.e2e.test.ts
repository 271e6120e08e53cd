import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { createInterface, type Interface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { isProcessAlive } from '../testbed/index.ts';

const here = (path: string) => new URL(path, import.meta.url);

test('nothing is left of a fleet whose runner is killed', { tags: 'linux' }, async () => {
  const program = `
    import { startFleet } from ${JSON.stringify(here('../fleet/index.ts').href)};
    const fleet = await startFleet({ clusters: 1 });
    console.log('folder ' + fleet.folder);
    setInterval(() => undefined, 1_000);
  `;
  const runner = run(['--input-type=module', '-e', program]);
  const folder = await found(runner, /^folder (.+)$/m);
  const before = await processesOf(folder);
  // Two control planes, Git, and on the hub Argo CD's programs, each with its supervisor.
  expect(before.length).toBeGreaterThan(10);
  runner.child.kill('SIGKILL');
  await until(async () => expect(await alive(before, folder)).toEqual([]));
});

test('Ctrl-C in the middle of a demo ends everything, and leaves no process and no folder', {
  tags: 'linux',
}, async () => {
  const demo = run([here('../demo/main.ts').pathname]);
  const { child } = demo;
  await found(demo, /controller and principal are available/);
  const folder = await folderOf(child);
  const before = await processesOf(folder);
  expect(before.length).toBeGreaterThan(10);
  child.kill('SIGINT');
  const [code] = await once(child, 'exit');
  expect(code, demo.lines.seen.join('\n')).toBe(130);
  await until(async () => expect(await alive(before, folder)).toEqual([]));
  expect(existsSync(folder)).toBe(false);
});

interface Runner {
  readonly child: ChildProcess;
  readonly lines: { readonly seen: string[]; readonly reader: Interface };
}

/** Runs Node in a process that ends with the test at the latest, and gives what it prints, line by line. */
function run(args: readonly string[]): Runner {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = { seen: [] as string[], reader: createInterface({ input: child.stdout }) };
  lines.reader.on('line', (line) => lines.seen.push(line));
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, lines };
}

/** Waits for a line; the first group of the expression, or all of it. */
function found({ child, lines }: Runner, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const match = pattern.exec(lines.seen.join('\n'));
      if (match) {
        resolve(match[1] ?? match[0]);
      }
    };
    lines.reader.on('line', look);
    child.once('exit', (code) => reject(new Error(`ended with ${code} before ${pattern}:\n${lines.seen.join('\n')}`)));
    look();
  });
}

/** The temporary folder of a testbed, from the arguments of the processes that a runner has started. */
async function folderOf({ pid }: ChildProcess): Promise<string> {
  for (const { command } of await processes()) {
    const folder = new RegExp(`[= ](/\\S*/${pid}-testbed-\\w+)/`).exec(command)?.[1];
    if (folder) {
      return folder;
    }
  }
  throw new Error(`process ${pid} has no testbed`);
}

interface Process {
  readonly pid: number;
  readonly command: string;
}

/** Every process, with its command line, its folder and its environment. */
async function processes(): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry)).map(Number);
  const read = (pid: number, file: string) => readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '');
  return Promise.all(
    pids.map(async (pid) => ({
      pid,
      command: `${await read(pid, 'cmdline')} ${await read(pid, 'environ')}`.replaceAll('\0', ' '),
    })),
  );
}

/** The processes that hold a fleet's folder in their arguments or their environment. */
const processesOf = async (folder: string) => (await processes()).filter(({ command }) => command.includes(folder));

/** Those that are left, of the ones seen before and of any that came since. */
async function alive(before: readonly Process[], folder: string): Promise<string[]> {
  const left = [...before.filter(({ pid }) => isProcessAlive(pid)), ...(await processesOf(folder))];
  return left.map(({ pid, command }) => `${pid} ${command.slice(0, 200)}`);
}
