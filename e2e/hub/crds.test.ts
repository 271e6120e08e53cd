import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { CustomResourceDefinition } from '../../lib/kube/index.ts';
import { argoCdCrds, ocmCrds, readCrds } from './crds.ts';

interface Schema {
  type?: string;
  required?: string[];
  enum?: unknown[];
  properties?: Record<string, Schema>;
  items?: Schema;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
}

const shared = new URL('../../../shared/crds', import.meta.url).pathname;
const gitOpsFolder = new URL('../../charts/argocd-agent-addon/crds', import.meta.url).pathname;

const realFiles = {
  argocd: { applications: 'application-crd', applicationsets: 'applicationset-crd', appprojects: 'appproject-crd' },
};

async function realOf(
  crd: CustomResourceDefinition,
  kind: 'argocd' | 'hub' | 'managed',
): Promise<CustomResourceDefinition> {
  const plural = crd.spec?.names.plural ?? '';
  const file =
    kind === 'argocd'
      ? join('argocd', `${(realFiles.argocd as Record<string, string>)[plural]}.yaml`)
      : join('ocm', `${kind}-${plural}.yaml`);
  return parse(await readFile(join(shared, file), 'utf8')) as CustomResourceDefinition;
}

function schemaOf(crd: CustomResourceDefinition, version: string): Schema {
  const found = crd.spec?.versions.find(({ name }) => name === version)?.schema as { openAPIV3Schema: Schema };
  return found.openAPIV3Schema;
}

/** What the compact schema says and the real one does not: "" when it only says less. */
function contradictions(compact: Schema, real: Schema, path: string): string[] {
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

describe.skipIf(!existsSync(shared))('the compact CRDs against the real ones', async () => {
  const all = (
    await Promise.all([
      argoCdCrds().then((crds) => crds.map((crd) => ({ crd, kind: 'argocd' as const }))),
      ocmCrds('hub').then((crds) => crds.map((crd) => ({ crd, kind: 'hub' as const }))),
      ocmCrds('managed').then((crds) => crds.map((crd) => ({ crd, kind: 'managed' as const }))),
    ])
  ).flat();

  it.each(all.map((one) => ({ ...one, name: one.crd.metadata.name })))('$name', async ({ crd, kind }) => {
    const real = await realOf(crd, kind);
    expect(crd.metadata.name).toBe(real.metadata.name);
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

describe.skipIf(!existsSync(shared))('the GitOpsCluster CRD against the original', async () => {
  if (!existsSync(shared)) {
    return;
  }
  const [ours] = await readCrds(gitOpsFolder);
  const original = parse(
    await readFile(join(shared, 'gitopscluster/gitopsclusters.yaml'), 'utf8'),
  ) as CustomResourceDefinition;

  it('is the same kind', () => {
    expect(ours?.spec?.names).toEqual(original.spec?.names);
    expect(ours?.spec?.scope).toBe(original.spec?.scope);
    expect(ours?.spec?.versions.map(({ name, served, storage }) => ({ name, served, storage }))).toEqual(
      original.spec?.versions.map(({ name, served, storage }) => ({ name, served, storage })),
    );
  });

  it('has every field of the original, with the same type, and requires no more', () => {
    if (!ours) {
      throw new Error('the chart has no GitOpsCluster CRD');
    }
    const lost = (was: Schema, is: Schema | undefined, path: string): string[] => [
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
