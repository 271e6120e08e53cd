import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CustomResourceDefinition, crds, namespaces } from '../../lib/kube/index.ts';
import { fleetGitOpsClusters } from '../fleet/index.ts';
import { addonChart, installCrds, readCrds } from '../hub/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import { type FieldSchema, fieldsIn, pruned, schemaFields } from './crd-schema.ts';
import { gitOpsClusterSamples } from './gitopscluster-sample.ts';
import { executableOf, projectFolder, sincePrevious, sourcesOf, type TestedVersion } from './previous.ts';

// GitOpsClusters that the API server stores, while their CRD becomes that of this version, and again that of the version
// before. `gitops-controller apply-crds` changes it, as the chart's hook does.

const run = promisify(execFile);
const name = 'gitopsclusters.apps.open-cluster-management.io';

async function definitionIn(folder: string): Promise<CustomResourceDefinition> {
  const found = (await readCrds(folder)).find(({ metadata }) => metadata.name === name);
  if (found === undefined) {
    throw new Error(`${folder} has no CRD ${name}`);
  }
  return found;
}

const versionsOf = ({ spec }: CustomResourceDefinition) =>
  (spec?.versions ?? []) as unknown as { name: string; served: boolean; schema: { openAPIV3Schema: FieldSchema } }[];

/** Spec and status, which the CRD is about. */
function schemaOf(definition: CustomResourceDefinition): FieldSchema {
  const { spec = {}, status = {} } = versionsOf(definition)[0]?.schema.openAPIV3Schema.properties ?? {};
  return { properties: { spec, status } };
}

const content = ({ spec, status }: { spec?: object; status?: object }) => ({ spec, ...(status && { status }) });

test('the samples have every field of the CRD', async () => {
  const schema = schemaOf(await definitionIn(join(addonChart, 'crds')));
  const there = new Set(gitOpsClusterSamples.flatMap((sample) => fieldsIn(content(sample), schema)));
  expect(schemaFields(schema).filter((field) => !there.has(field))).toEqual([]);
});

describe(`stored GitOpsClusters ${sincePrevious}`, { tags: 'version-before' }, () => {
  let hub: Cluster;
  let folder: string;
  let sources: Record<TestedVersion, string>;
  let schemas: Record<TestedVersion, FieldSchema>;
  const crdsOf = (version: TestedVersion) => join(sources[version], relative(projectFolder, addonChart), 'crds');

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'crds-'));
    sources = await sourcesOf();
    const [previous, current] = await Promise.all([definitionIn(crdsOf('previous')), definitionIn(crdsOf('current'))]);
    schemas = { previous: schemaOf(previous), current: schemaOf(current) };
    hub = await startCluster();
    await hub.client.create(namespaces, { metadata: { name: 'argocd' } });
    await installCrds(hub.client, [previous]);
  });
  afterAll(async () => {
    await hub?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function become(version: TestedVersion): Promise<void> {
    const program = await executableOf('gitops-controller', sources[version], join(folder, version));
    const { stdout } = await run(program, [
      'apply-crds',
      `--from=${crdsOf(version)}`,
      `--kubeconfig=${hub.kubeconfig}`,
    ]);
    expect(stdout).toContain(`${name} upgraded`);
  }

  const read = async () =>
    Object.fromEntries(
      (await hub.client.list(fleetGitOpsClusters)).map(({ metadata, ...rest }) => [metadata.name, content(rest)]),
    );
  /** What users write is stored, with the defaults of the CRD. */
  async function put(version: TestedVersion, suffix = ''): Promise<void> {
    for (const { metadata, ...sample } of gitOpsClusterSamples) {
      const { spec, status } = pruned(content(sample), schemas[version]);
      const key = { namespace: 'argocd', name: `${metadata.name}${suffix}` };
      const manager = { fieldManager: 'user', force: true };
      await hub.client.apply(fleetGitOpsClusters, { metadata: key, spec: spec as Record<string, unknown> }, manager);
      await hub.client.mergePatch(fleetGitOpsClusters, key, { status }, { subresource: 'status' });
    }
  }
  /** Every object is valid as it is: the API server validates what an update leaves, too. */
  async function touch(mark: string): Promise<void> {
    for (const { metadata } of await hub.client.list(fleetGitOpsClusters)) {
      const { namespace = '', name } = metadata;
      await hub.client.mergePatch(fleetGitOpsClusters, { namespace, name }, { metadata: { labels: { mark } } });
      await hub.client.mergePatch(
        fleetGitOpsClusters,
        { namespace, name },
        { status: { observedGeneration: 9 } },
        { subresource: 'status' },
      );
    }
  }
  const storedVersions = async () => (await hub.client.get(crds, { name }))?.status?.storedVersions;

  test('both versions of the CRD serve the versions that the other one stores, so that nothing is converted', async () => {
    const served = async (version: TestedVersion) =>
      versionsOf(await definitionIn(crdsOf(version)))
        .filter((one) => one.served)
        .map((one) => one.name);
    expect(await served('current')).toEqual(expect.arrayContaining(await served('previous')));
    expect(await served('previous')).toEqual(expect.arrayContaining((await storedVersions()) as string[]));
  });

  test('what was stored under the previous CRD is served unchanged under the current one, and valid', async () => {
    await put('previous');
    const before = await read();
    await become('current');
    expect(await read()).toEqual(before);
    await touch('current');
    await put('current');
    await put('current', '-new');
    const fields = new Set(Object.values(await read()).flatMap((one) => fieldsIn(one, schemas.current)));
    expect(schemaFields(schemas.current).filter((field) => !fields.has(field))).toEqual([]);
  });

  test('what was stored under the current CRD is served under the previous one, without what that does not know', async () => {
    const before = await read();
    await become('previous');
    const expected = Object.fromEntries(
      Object.entries(before).map(([key, value]) => [key, pruned(value, schemas.previous)]),
    );
    expect(await read()).toEqual(expected);
    await put('previous', '-again');
    const fields = schemaFields(schemas.previous);
    const there = new Set(Object.values(await read()).flatMap((one) => fieldsIn(one, schemas.previous)));
    expect(fields.filter((field) => !there.has(field))).toEqual([]);
  });

  test('what nobody wrote meanwhile has its fields again afterwards; what was written has lost the new ones', async () => {
    const key = { namespace: 'argocd', name: 'installed' };
    await hub.client.mergePatch(fleetGitOpsClusters, key, { metadata: { labels: { mark: 'rolled-back' } } });
    await become('current');
    const now = await read();
    const [sample] = gitOpsClusterSamples;
    expect(now['installed-new']).toMatchObject({ spec: sample?.spec });
    expect(now.installed).toEqual(pruned(now.installed, schemas.previous));
    await touch('again');
    expect(await storedVersions()).toEqual(['v1alpha1']);
  });
});
