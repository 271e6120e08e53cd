import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import type { Cluster } from '../testbed/index.ts';
import { ocmBinaries, runPlacementBinary, runWorkAgentBinary } from './binaries.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ocm-bin-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const cluster = () => ({ name: 'cluster1', dir: folder, kubeconfig: '/hub.kubeconfig' }) as Cluster;

/** OCM's executables are not to be had here; this one writes down how it was called and then waits. */
async function recorder(name: string): Promise<() => Promise<string>> {
  const calls = join(folder, `${name}.calls`);
  await writeFile(
    join(folder, name),
    `#!/bin/sh\necho "$@" > ${calls}.tmp && mv ${calls}.tmp ${calls}\nexec sleep 60\n`,
  );
  await chmod(join(folder, name), 0o755);
  return () => until(`a call of ${name}`, () => readFile(calls, 'utf8'));
}

it('is chosen by OCM_BIN alone', () => {
  expect(ocmBinaries({})).toBeUndefined();
  expect(ocmBinaries({ OCM_BIN: '/opt/ocm' })).toBe('/opt/ocm');
});

it('says which executable is missing', async () => {
  const run = runPlacementBinary(join(folder, 'nowhere'), cluster(), new AbortController().signal);
  await expect(run).rejects.toThrow(/has no executable "placement"; unset OCM_BIN to use the stand-ins/);
});

it('starts the real controllers with the flags that they take, and ends them', async () => {
  const placement = await recorder('placement');
  const work = await recorder('work');
  const ended = new AbortController();
  const running = [
    runPlacementBinary(folder, cluster(), ended.signal),
    runWorkAgentBinary(folder, cluster(), { hub: '/agent.hub', spoke: '/agent.spoke' }, 5_000, ended.signal),
  ];
  expect(await placement()).toMatch(
    /^controller --kubeconfig \/hub.kubeconfig --namespace default .*--listen 127.0.0.1:\d+/,
  );
  expect(await work()).toMatch(
    /--spoke-cluster-name cluster1 --workload-source-driver kube --workload-source-config \/agent.hub --status-sync-interval 5000ms/,
  );
  ended.abort();
  await Promise.all(running);
});
