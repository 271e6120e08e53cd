import { describe, expect, it } from 'vitest';
import type { CustomResourceDefinition } from '../../lib/kube/index.ts';
import { argoCdCrds, ocmCrds } from './crds.ts';
import { publishedCrds } from './published-crds.ts';
import { type CrdSchema, schemaOf } from './testing/schema.ts';

/** What the compact schema says and the real one does not: "" when it only says less. */
function contradictions(compact: CrdSchema, real: CrdSchema, path: string): string[] {
  const found: string[] = [];
  if (compact.type !== real.type) {
    found.push(`${path} is ${compact.type}, really ${real.type}`);
  }
  if (compact.enum && JSON.stringify(compact.enum) !== JSON.stringify(real.enum)) {
    found.push(`${path} has another enum`);
  }
  for (const name of compact.required ?? []) {
    if (!real.required?.includes(name)) {
      found.push(`${path}.${name} is not really required`);
    }
  }
  for (const [name, schema] of Object.entries(compact.properties ?? {})) {
    const other = real.properties?.[name];
    if (!other) {
      found.push(`${path}.${name} does not really exist`);
    } else {
      found.push(...contradictions(schema, other, `${path}.${name}`));
    }
  }
  if (compact.properties && !compact['x-kubernetes-preserve-unknown-fields']) {
    for (const name of Object.keys(real.properties ?? {})) {
      if (!(name in compact.properties)) {
        found.push(`${path}.${name} would be pruned`);
      }
    }
  }
  if (compact.items && real.items) {
    found.push(...contradictions(compact.items, real.items, `${path}[]`));
  }
  return found;
}

describe('the compact CRDs against the published ones', async () => {
  const compact = [...(await argoCdCrds()), ...(await ocmCrds('hub')), ...(await ocmCrds('managed'))];
  const published = (
    await Promise.all((['argocd', 'ocm-hub', 'ocm-managed'] as const).map((publisher) => publishedCrds(publisher)))
  ).flat();
  const namesOf = (all: readonly CustomResourceDefinition[]) => all.map(({ metadata }) => metadata.name).sort();

  it('are the same kinds', () => {
    expect(namesOf(compact)).toEqual(namesOf(published));
  });

  it.each(compact.map((crd) => ({ crd, name: crd.metadata.name })))('$name', ({ crd, name: crdName }) => {
    const real = published.find(({ metadata }) => metadata.name === crdName);
    if (real === undefined) {
      throw new Error(`nobody publishes ${crdName}`);
    }
    expect(crd.spec?.group).toBe(real.spec?.group);
    expect(crd.spec?.names).toEqual(real.spec?.names);
    expect(crd.spec?.scope).toBe(real.spec?.scope);
    const served = (of: CustomResourceDefinition) =>
      of.spec?.versions.map(({ name, served, storage, subresources }) => ({
        name,
        served,
        storage,
        hasStatus: Boolean((subresources as { status?: unknown } | undefined)?.status),
      }));
    expect(served(crd)).toEqual(served(real));
    for (const { name } of crd.spec?.versions ?? []) {
      expect(contradictions(schemaOf(crd, name), schemaOf(real, name), name)).toEqual([]);
    }
  });

  it('types the fields that the work needs most', async () => {
    const [work] = (await ocmCrds('hub')).filter((crd) => crd.spec?.names.kind === 'ManifestWork');
    if (!work) {
      throw new Error('no ManifestWork');
    }
    const spec = schemaOf(work, 'v1').properties?.spec;
    expect(spec?.properties?.deleteOption?.properties?.propagationPolicy?.enum).toContain('Orphan');
  });
});
