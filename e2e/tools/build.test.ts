import { expect, it, vi } from 'vitest';
import { buildTool } from './build.ts';

it('says which versions there are when another one is asked for', async () => {
  vi.stubEnv('KUBE_VERSION', '1.3');
  await expect(buildTool('kube-apiserver')).rejects.toThrow(
    'KUBE_VERSION=1.3: there is no recipe for this version; unset it, or set it to one of: 1.30',
  );
});
