import { describe, expect, it } from 'vitest';
import { refusal } from './admission.ts';
import type { ManifestWork } from './types.ts';

const work = (...manifests: object[]) =>
  ({ metadata: { name: 'w' }, spec: { workload: { manifests } } }) as unknown as ManifestWork;
const configMap = (name: string, data = '') => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { data },
});

describe('refusal', () => {
  it('accepts what OCM accepts', () => {
    expect(refusal(work(configMap('a'), configMap('b')))).toBeUndefined();
  });

  it('refuses an empty payload, duplicates, names that the server would make, and more than 500 KiB', () => {
    expect(refusal(work())).toMatch(/empty/);
    expect(refusal(work(configMap('a'), configMap('a')))).toMatch(/duplicated manifest v1\/ConfigMap/);
    expect(refusal(work({ kind: 'Pod', metadata: { generateName: 'x-' } }))).toMatch(/generateName/);
    expect(refusal(work(configMap('a', 'x'.repeat(500 * 1024))))).toMatch(/exceeds the 512000 limit/);
  });
});
