import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { startTestbed, type Testbed } from '../testbed/index.ts';
import type { Ocm } from './ocm.ts';
import { startOcm } from './start.ts';

describe('the programs of OCM', () => {
  let testbed: Testbed;
  let ocm: Ocm;
  const crashes: Error[] = [];
  beforeAll(async () => {
    testbed = await startTestbed({ clusters: 1 });
    ocm = await startOcm(testbed.hub, { crashed: (error) => crashes.push(error) });
  });
  afterAll(async () => {
    await ocm?.stop();
    await testbed?.stop();
  });

  it('tell of the one that ends by itself, with its log, and nothing waits for it', async () => {
    const [cluster = expect.unreachable('a managed cluster')] = testbed.managed;
    const folder = join(testbed.hub.dir, 'ocm-registration-controller');
    // Its log has something that can be told from what other programs say.
    await until(async () => (await readFile(join(folder, 'log'), 'utf8')).includes('ManagedCluster'));
    const joining = ocm.join(cluster).catch((error: Error) => error);
    process.kill(await processWith(join(folder, 'config.yaml')), 'SIGKILL');
    const told = /^ocm-registration-controller of hub ended \(signal SIGKILL\)\. The end of \S+log:\n.*ManagedCluster/s;
    expect(await joining).toMatchObject({ message: expect.stringMatching(told) });
    await until(() => expect(crashes).toMatchObject([{ message: expect.stringMatching(told) }]));
    await expect(ocm.join(cluster)).rejects.toThrow(told);
  });
});

/** The id of the process whose arguments include this one: the command itself, which comes after those that watch over it. */
async function processWith(argument: string): Promise<number> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found: number[] = [];
  for (const id of ids.sort((one, other) => one - other)) {
    const line = await readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '');
    if (line.split('\0').includes(argument)) {
      found.push(id);
    }
  }
  return found.at(-1) ?? expect.unreachable(`no process with ${argument}`);
}
