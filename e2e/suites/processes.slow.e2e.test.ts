import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { processesNaming, runNode, stillAlive, testbedFolderOf, waitForLine } from './runners.ts';

const here = (path: string) => new URL(path, import.meta.url);

test('nothing is left of a fleet whose runner is killed', { tags: 'linux' }, async () => {
  const program = `
    import { startFleet } from ${JSON.stringify(here('../fleet/index.ts').href)};
    const fleet = await startFleet({ clusters: 1 });
    console.log('folder ' + fleet.folder);
    setInterval(() => undefined, 1_000);
  `;
  const runner = runNode(['--input-type=module', '-e', program]);
  const folder = await waitForLine(runner, /^folder (.+)$/m);
  const before = await processesNaming(folder);
  // Two control planes, Git, and on the hub Argo CD's programs, each with its supervisor.
  expect(before.length).toBeGreaterThan(10);
  runner.child.kill('SIGKILL');
  await until(async () => expect(await stillAlive(before, folder)).toEqual([]));
});

test('Ctrl-C in the middle of a demo ends everything, and leaves no process and no folder', {
  tags: 'linux',
}, async () => {
  const demo = runNode([here('../demo/main.ts').pathname]);
  const { child } = demo;
  await waitForLine(demo, /controller and principal are available/);
  const folder = await testbedFolderOf(child);
  const before = await processesNaming(folder);
  expect(before.length).toBeGreaterThan(10);
  child.kill('SIGINT');
  const [code] = await once(child, 'exit');
  expect(code, demo.seen.join('\n')).toBe(130);
  await until(async () => expect(await stillAlive(before, folder)).toEqual([]));
  expect(existsSync(folder)).toBe(false);
});
