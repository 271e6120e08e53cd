import { describe, expect, it } from 'vitest';
import { admissionRefusal } from './admission.ts';
import type { OcmManifestWork } from './types.ts';

const work = (...manifests: object[]) =>
  ({ metadata: { name: 'w' }, spec: { workload: { manifests } } }) as unknown as OcmManifestWork;
const configMap = (name: string, data = '') => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { data },
});

describe('refusal', () => {
  it('accepts what OCM accepts', () => {
    expect(admissionRefusal(work(configMap('a'), configMap('b')))).toBeUndefined();
  });

  it('refuses an empty payload, duplicates, names that the server would make, and more than 500 KiB', () => {
    expect(admissionRefusal(work())).toMatch(/empty/);
    expect(admissionRefusal(work(configMap('a'), configMap('a')))).toMatch(/duplicated manifest v1\/ConfigMap/);
    expect(admissionRefusal(work({ kind: 'Pod', metadata: { generateName: 'x-' } }))).toMatch(/generateName/);
    expect(admissionRefusal(work(configMap('a', 'x'.repeat(500 * 1024))))).toMatch(/exceeds the 512000 limit/);
  });
});
