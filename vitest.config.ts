import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { needTags } from './e2e/needs/index.ts';

const everywhere = [
  'bin',
  'controller',
  'principal',
  'agent',
  'ctl',
  'lib',
  'proto',
  'e2e',
  'bench',
  'charts',
  'site',
  'release',
  'simulation',
  '.ci',
];
const setupFiles = ['e2e/costs/setup.ts'];
const files = (suffix: string) => everywhere.map((folder) => `${folder}/**/*.${suffix}.ts`);

/**
 * Three tiers, told apart by the file name: `*.test.ts` needs nothing but Node, `*.it.test.ts` starts real API
 * servers, `*.e2e.test.ts` starts a hub with managed clusters. They run one after the other.
 */
export default defineConfig({
  test: {
    // What a test needs beyond what the README asks for: without it the test is skipped.
    tags: needTags,
    reporters: ['default', './e2e/needs/reporter.ts', './e2e/costs/reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          sequence: { groupOrder: 0 },
          include: files('test'),
          setupFiles,
          exclude: [...files('it.test'), ...files('e2e.test')],
          // Of a test that takes a second: others may have most of the machine. Longer than until() waits: it says for what.
          testTimeout: 150_000,
          hookTimeout: 120_000,
          // A module is loaded once for all files of a worker, which halves the time. So a test leaves no state behind.
          isolate: false,
          // Vitest leaves a core free, which is one of two on a small machine.
          maxWorkers: availableParallelism(),
        },
      },
      {
        test: {
          name: 'integration',
          sequence: { groupOrder: 1 },
          include: files('it.test'),
          setupFiles,
          globalSetup: ['e2e/programs/setup.ts', 'e2e/hub/pool-setup.ts'],
          testTimeout: 180_000,
          hookTimeout: 300_000,
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'e2e',
          globalSetup: 'e2e/programs/setup.ts',
          sequence: { groupOrder: 2 },
          include: files('e2e.test'),
          // Longer than the longest waits in a test: those say what was not as expected.
          testTimeout: 900_000,
          hookTimeout: 900_000,
          maxWorkers: 1,
          fileParallelism: false,
        },
      },
    ],
  },
});
