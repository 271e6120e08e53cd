import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const root = join(import.meta.dirname, '..');
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
const workflow = z.object({
  permissions: z.record(z.string(), z.string()),
  jobs: z.record(
    z.string(),
    z.object({
      'timeout-minutes': z.number(),
      steps: z.array(z.object({ uses: z.string().optional(), run: z.string().optional() })),
    }),
  ),
});

test.each(globSync('.github/workflows/*.yaml', { cwd: root }))('%s runs what exists, with few rights', (path) => {
  const { permissions, jobs } = workflow.parse(parse(readFileSync(join(root, path), 'utf8')));
  expect(permissions).toEqual({ contents: 'read' });
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  const commands = steps.flatMap(({ run = '' }) => run.split('\n'));
  const named = commands.flatMap((line) => /^npm run ([\w:]+)/.exec(line)?.[1] ?? []);
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
  const files = commands.flatMap((line) => line.match(/(?<=^| )[\w./-]+\.(?:ts|mjs)(?= |$)/g) ?? []);
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  const actions = steps.flatMap(({ uses }) => uses ?? []);
  expect(actions.filter((one) => !/^[\w-]+\/[\w-]+@v\d+(\.\d+)*$|@[0-9a-f]{40}$/.test(one))).toEqual([]);
});
