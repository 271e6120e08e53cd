import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { effort } from '../../lib/base/testing.ts';
import { pairWays, testDelivery, testLiveAccess } from '../interop/index.ts';
import { executableOf, previousVersion, sincePrevious, type TestedVersion } from './previous.ts';

// Every combination of a principal and agents of this version and the one before, of which one is of this version. Both of this
// version are together in all other tests, and here, to compare, with THOROUGH=1.

const pairs: readonly { principal: TestedVersion; agent: TestedVersion }[] = [
  { principal: 'previous', agent: 'current' },
  { principal: 'current', agent: 'previous' },
  { principal: 'current', agent: 'current' },
];
const combinations = pairs
  .slice(0, effort(2, pairs.length))
  .map((pair) => [`principal ${pair.principal}, agents ${pair.agent}`, pair] as const);

let folder: string;
let previous: string | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skew-'));
  const { folder: sources } = await previousVersion();
  previous = await executableOf('argocd-agent', sources, join(folder, 'argocd-agent'));
});
afterAll(async () => {
  if (folder !== undefined) {
    await rm(folder, { recursive: true });
  }
});

const executable = (version: TestedVersion) => (version === 'previous' ? previous : undefined);

describe.each(combinations)(`%s ${sincePrevious}`, { tags: 'version-before' }, (_, { principal, agent }) => {
  const executables = async () => ({ principal: executable(principal), agent: executable(agent) });

  describe.each(pairWays)('$way', ({ isMapped }) => {
    testDelivery(isMapped, executables);
  });

  describe('live access', () => {
    testLiveAccess(executables);
  });
});
