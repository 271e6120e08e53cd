import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { pairWays, testDelivery, testLiveAccess } from '../interop/index.ts';
import { executableOf, previousVersion, sincePrevious, type TestedVersion } from './previous.ts';

// Every combination of a principal and agents of this version and the one before.

const versions: readonly TestedVersion[] = ['previous', 'current'];
const combinations = versions.flatMap((principal) =>
  versions.map((agent) => [`principal ${principal}, agents ${agent}`, { principal, agent }] as const),
);

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
