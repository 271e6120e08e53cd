import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

// The scripts of the workflows are run, by programs that only write down how they were called.

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const environment = z.record(z.string(), z.string()).default({});
const step = z.object({ uses: z.string().optional(), run: z.string().optional(), env: environment });
const workflow = z.object({
  permissions: z.record(z.string(), z.string()),
  env: environment,
  jobs: z.record(
    z.string(),
    z.object({
      'timeout-minutes': z.number(),
      strategy: z.object({ matrix: z.object({ include: z.array(z.record(z.string(), z.string())) }) }).optional(),
      steps: z.array(step),
    }),
  ),
});
const paths = globSync('.github/workflows/*.yaml', { cwd: root });
const steps = paths.flatMap((path) => {
  const { jobs, env } = workflow.parse(parse(read(path)));
  return Object.values(jobs).flatMap((job) =>
    (job.strategy?.matrix.include ?? [{}]).flatMap((choice: Record<string, string>) =>
      job.steps.map(({ run = '', env: own, uses }) => ({
        uses,
        run: run.replace(/\$\{\{ matrix\.(\w+) \}\}/g, (_, name) => choice[name] ?? ''),
        env: { ...env, ...own },
      })),
    ),
  );
});
const runs = [...new Map(steps.filter(({ run }) => run !== '').map((one) => [one.run, one])).values()];

/** What the runner's image has (ubuntu-24.04), and what steps before have installed. */
const programs = ['cat', 'cmp', 'cosign', 'docker', 'gh', 'go', 'kind', 'node', 'npm', 'skopeo', 'sudo', '.ci/run'];
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'workflows-'));
  for (const name of programs) {
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `#!/bin/sh\n{ printf '%s\\t' '${name}' "$@"; echo; } >> "$CALLS"\n`);
    chmodSync(file, 0o755);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a script as GitHub does, with an error for every variable that nobody has set. @returns the commands */
function dryRun({ run, env }: { run: string; env: Record<string, string> }): string[][] {
  const calls = join(folder, 'calls');
  writeFileSync(calls, '');
  const given = ['GITHUB_OUTPUT', 'GITHUB_PATH', 'GITHUB_REF_NAME', 'RUNNER_TEMP'].map((name) => [
    name,
    join(folder, name),
  ]);
  execFileSync('/bin/bash', ['--noprofile', '--norc', '-euo', 'pipefail', '-c', run], {
    cwd: folder,
    env: { ...env, ...Object.fromEntries(given), PATH: folder, CALLS: calls },
    stdio: 'pipe',
  });
  return readFileSync(calls, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.trimEnd().split('\t'));
}

test.each(paths)('%s has few rights, and what it uses cannot change', (path) => {
  expect(workflow.parse(parse(read(path))).permissions).toEqual({ contents: 'read' });
  const used = read(path).match(/\buses: .*/g) ?? [];
  expect(used.filter((line) => !/^uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
});

test('every step of a script is there', () => {
  expect(paths.length).toBeGreaterThan(2);
  expect(runs.map(dryRun).filter((calls) => calls.length === 0)).toHaveLength(1);
});

test.each(runs.map((one) => [one.run.trim().split('\n', 1)[0], one] as const))('%s …', (_, one) => {
  for (const [program = '', ...args] of dryRun(one)) {
    if (program.includes('/')) {
      expect(existsSync(join(root, program)), program).toBe(true);
    }
    const files = args.filter((arg) => /\.(ts|mjs)$/.test(arg));
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
    if (program === 'npm' && args[0] === 'run') {
      const [, name = ''] = args;
      const file = /^node setup\.mjs (\S+\.ts)$/.exec(scripts[name] ?? '')?.[1];
      expect(file, `npm run ${name}`).toBeDefined();
      const help = execFileSync(process.execPath, [join(root, file ?? ''), '--help'], { encoding: 'utf8' });
      const flags = args.filter((arg) => arg.startsWith('--') && arg !== '--');
      expect(flags.filter((flag) => !help.includes(`${flag} `))).toEqual([]);
    }
  }
  // What a script does not read itself is for our programs, and documented; `gh` reads the other one.
  const contributing = read('CONTRIBUTING.md');
  const unknown = Object.keys(one.env).filter(
    (name) =>
      !one.run.includes(`$${name}`) && !contributing.includes(`\`${name}=`) && !['GH_TOKEN', 'IMAGE'].includes(name),
  );
  expect(unknown).toEqual([]);
});
