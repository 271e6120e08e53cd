import { expect, it, vi } from 'vitest';
import { getTool } from './tool.ts';

it('says which versions there are when another one is asked for', async () => {
  vi.stubEnv('KUBE_VERSION', '1.3');
  await expect(getTool('kube-apiserver')).rejects.toThrow(
    'KUBE_VERSION=1.3: there is no recipe for this version; unset it, or set it to one of: 1.30',
  );
});
