import { describe, expect, it } from 'vitest';
import { originalCrds, readCrds } from './crds.ts';
import { type CrdSchema, schemaOf } from './testing/schema.ts';

const gitOpsFolder = new URL('../../charts/argocd-agent-addon/crds', import.meta.url).pathname;

describe('the GitOpsCluster CRD against the original', async () => {
  const [ours] = await readCrds(gitOpsFolder);
  const [original] = await originalCrds();
  if (!ours || !original) {
    throw new Error('a GitOpsCluster CRD is missing');
  }

  it('is the same kind', () => {
    expect(ours.spec?.names).toEqual(original.spec?.names);
    expect(ours.spec?.scope).toBe(original.spec?.scope);
    expect(ours.spec?.versions.map(({ name, served, storage }) => ({ name, served, storage }))).toEqual(
      original.spec?.versions.map(({ name, served, storage }) => ({ name, served, storage })),
    );
  });

  it('has every field of the original, with the same type, and requires no more', () => {
    const lost = (was: CrdSchema, is: CrdSchema | undefined, path: string): string[] => [
      ...(is?.type === was.type ? [] : [`${path}: ${was.type} has become ${is?.type}`]),
      ...(is?.required ?? [])
        .filter((name) => !was.required?.includes(name))
        .map((name) => `${path}.${name} is required`),
      ...Object.entries(was.properties ?? {}).flatMap(([name, schema]) =>
        lost(schema, is?.properties?.[name], `${path}.${name}`),
      ),
      ...(was.items ? lost(was.items, is?.items, `${path}[]`) : []),
    ];
    expect(lost(schemaOf(original, 'v1alpha1'), schemaOf(ours, 'v1alpha1'), '')).toEqual([]);
  });
});
