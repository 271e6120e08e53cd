import { join } from 'node:path';
import { ClusterPool, removeFolder, servePool, workFolder } from '../testbed/index.ts';
import { installCrds, readCrds } from './crds.ts';
import { addonChart } from './helm.ts';
import { publishedCrds } from './published-crds.ts';

/** Set-up of a tier: its test files share clusters that have the kinds of OCM, of Argo CD and of this project. */
export default async function setup(): Promise<() => Promise<void>> {
  const pool = new ClusterPool({
    prepare: async ({ client }) => {
      const own = await readCrds(join(addonChart, 'crds'));
      await installCrds(client, [...own, ...(await publishedCrds('ocm-hub')), ...(await publishedCrds('argocd'))]);
    },
    // Longer than the files that need none take: a new one costs 5 s of CPU time.
    idleMs: 120_000,
    failed: (error) => console.error('A shared cluster could not be restored, and was ended:', error),
  });
  const folder = await workFolder('pool');
  const close = await servePool(pool, join(folder, 'socket'));
  return async () => {
    await close();
    await pool.stop();
    await removeFolder(folder);
  };
}
