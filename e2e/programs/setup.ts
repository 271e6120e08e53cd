import type { TestProject } from 'vitest/node';
import { buildProject } from './build.ts';
import { buildVariable } from './command.ts';

/** Set-up of a tier: its tests run the programs of one build, of the sources as they are when the tests begin. */
export default async function setup(tier: TestProject): Promise<void> {
  const build = async () => {
    process.env[buildVariable] = await buildProject();
  };
  tier.onTestsRerun(build);
  await build();
}
