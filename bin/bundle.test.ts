import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { hashSync } from 'bcryptjs';
import { afterAll, beforeAll, expect, test } from 'vitest';

// What `npm run build` makes for the image.

const run = promisify(execFile);
let folder: string;
let library: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bundle-'));
  library = join(folder, 'lib');
  await run(process.execPath, [join(import.meta.dirname, '../build.ts'), folder]);
}, 120_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

test.each(['argocd-agent', 'gitops-controller'])('%s runs', async (name) => {
  const { stdout } = await run(process.execPath, [join(folder, `bin/${name}.js`), 'version']);
  expect(stdout).toContain(name);
});

test('it is the same from another checkout, where node_modules is a link', async () => {
  const root = join(import.meta.dirname, '..');
  const checkout = join(folder, 'checkout');
  await mkdir(checkout);
  for (const name of (await readdir(root)).filter((one) => !['build.ts', '.git', 'dist'].includes(one))) {
    await symlink(join(root, name), join(checkout, name));
  }
  await copyFile(join(root, 'build.ts'), join(checkout, 'build.ts'));
  await run(process.execPath, [join(checkout, 'build.ts'), join(folder, 'again')]);
  expect(await readdir(join(folder, 'again/lib'))).toEqual(await readdir(library));
});

test('the thread that compares passwords is where the program looks for it, and works', async () => {
  const script = './password-worker.js';
  const files = (await readdir(library)).filter((file) => file.endsWith('.js'));
  const texts = await Promise.all(files.map((file) => readFile(join(library, file), 'utf8')));
  expect(texts.filter((text) => text.includes(script))).toHaveLength(1);
  const worker = new Worker(join(library, script));
  try {
    for (const password of ['right', 'wrong']) {
      const [answer] = await Promise.all([
        once(worker, 'message'),
        worker.postMessage({ password, hash: hashSync('right', 4) }),
      ]);
      expect(answer).toEqual([password === 'right']);
    }
  } finally {
    await worker.terminate();
  }
});

test("nothing loads Node.js' own fetch", async () => {
  const look = `
    const { readdirSync } = require('node:fs');
    const files = readdirSync('.').filter((file) => file.startsWith('run-'));
    Promise.all(files.map((file) => import(process.cwd() + '/' + file))).then(() => {
      console.log(files.length, process.moduleLoadList.filter((name) => name.includes('undici')).join());
    });`;
  const { stdout } = await run(process.execPath, ['--eval', look], { cwd: library });
  expect(stdout.trim()).toBe('2');
});
