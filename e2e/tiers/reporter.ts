import { globSync } from 'node:fs';
import type { Reporter, TestModule, Vitest } from 'vitest/node';
import { tierOf, tiers } from './index.ts';

/** Says at the end of `npm test` what it left out, and what runs that. */
export default class TiersReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const names = this.#vitest?.config.project ?? [];
    // Whoever names one tier knows that there are others.
    if (tiers.some(({ name, isSlow }) => names.includes(name) === isSlow)) {
      return;
    }
    const slow = globSync('**/*.test.ts', { exclude: ['**/node_modules'] }).filter((file) => tierOf(file).isSlow);
    process.stdout.write(
      ` Left out: ${slow.length} slow test files, beside the ${modules.length} that ran. \`npm run test:slow\` runs them, ` +
        '`npm run test:all` runs everything.\n\n',
    );
  }
}
