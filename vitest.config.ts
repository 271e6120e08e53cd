import { availableParallelism } from 'node:os';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { needTags } from './e2e/needs/index.ts';
import { filesOf, type TierName } from './e2e/tiers/index.ts';

const folders = [
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
  'upstream',
  '.ci',
];

type TestOptions = NonNullable<TestProjectInlineConfiguration['test']>;

const unit: TestOptions = {
  // Of a test that takes a second: others may have most of the machine. Longer than until() waits: it says for what.
  testTimeout: 150_000,
  hookTimeout: 120_000,
  // A module is loaded once for all files of a worker, which halves the time. So a test leaves no state behind.
  isolate: false,
  // Vitest leaves a core free, which is one of two on a small machine.
  maxWorkers: availableParallelism(),
};
/** Programs in Go take a fifth less CPU for some more memory. */
const env = { GOGC: '400' };
const integration: TestOptions = {
  env,
  isolate: false,
  globalSetup: ['e2e/programs/setup.ts', 'e2e/hub/pool-setup.ts'],
  testTimeout: 180_000,
  hookTimeout: 300_000,
  maxWorkers: 2,
};
const e2e: TestOptions = {
  env,
  globalSetup: 'e2e/programs/setup.ts',
  // Longer than the longest waits in a test: those say what was not as expected.
  testTimeout: 900_000,
  hookTimeout: 900_000,
  maxWorkers: 1,
  fileParallelism: false,
};

/** What each run prints: besides results what was skipped, what was dear, and what was left out. */
export const testReporters = [
  'default',
  './e2e/needs/reporter.ts',
  './e2e/costs/reporter.ts',
  './e2e/tiers/reporter.ts',
];

let groupOrder = 0;
const project = (name: TierName, options: TestOptions): TestProjectInlineConfiguration => ({
  // One tier after the other.
  test: {
    name,
    sequence: { groupOrder: groupOrder++ },
    setupFiles: ['e2e/costs/setup.ts'],
    ...filesOf(name, folders),
    ...options,
  },
});

/**
 * The tiers, told apart by the file name: `*.test.ts` needs nothing but Node, `*.it.test.ts` starts real API servers,
 * `*.e2e.test.ts` starts a hub with managed clusters. `npm test` leaves out the slow ones, `*.slow.it.test.ts` and
 * `*.slow.e2e.test.ts`.
 */
export default defineConfig({
  test: {
    // What a test needs beyond what the README asks for: without it the test is skipped.
    tags: needTags,
    reporters: testReporters,
    projects: [
      project('unit', unit),
      project('integration', integration),
      project('slow-integration', integration),
      project('e2e', e2e),
      project('slow-e2e', e2e),
    ],
  },
});
