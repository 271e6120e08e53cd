import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { effort } from '../../lib/base/testing.ts';
import { runChaos } from './run.ts';
import { findingsText, verdictText } from './verdict.ts';

// A short run of `npm run chaos`, with new faults in each thorough run. SEED repeats them.
const seed = Number(process.env.SEED ?? effort(1_001, Math.floor(Math.random() * 2 ** 31)));

test(`whatever happens for a while, all is as it must be afterwards (SEED=${seed})`, async () => {
  const verdict = await runChaos({
    seed,
    durationMs: 60_000,
    hubs: 2,
    replicas: 2,
    clusters: 2,
    applications: 5,
    editEveryMs: 250,
    faultEveryMs: 2_500,
    failoverEveryMs: 20_000,
    logs: join(tmpdir(), `chaos-${seed}`),
    log: (line) => console.log(line),
  });
  console.log(verdictText(verdict));
  expect(verdict.findings, findingsText(verdict)).toEqual([]);
});
