import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type MergePatch, mergedPatches } from '../../lib/base/index.ts';
import { effort, until } from '../../lib/base/testing.ts';
import { deployments, type KubeObject, resourceType, statefulSets } from '../../lib/kube/index.ts';
import { argoCdCrds, installCrds, ocmCrds } from '../hub/index.ts';
import { ClusterPool, playKubelet } from '../testbed/index.ts';
import { checkOut, findVersionBefore, revisionHas } from '../upgrade/index.ts';
import { DeployingArgoCd } from './argo-cd.ts';
import { type ChartValues, type TriedChart, triedCharts } from './charts.ts';
import { coveringTable } from './covering.ts';
import { helmInstaller, type Installer, type InstallerOptions, kubectlInstaller } from './installers.ts';
import { everything, fieldsOfTwo, fingerprint, nameOf } from './objects.ts';
import { places, type Surrounding } from './places.ts';

// Every chart, brought by every tool that people use to every kind of cluster that they have: installed, upgraded with equal and
// with other values, from the version before, rolled back and removed. The table has every two of chart, tool, cluster and first
// version together in some row; its first rows, which have most of them, are tried in every run, and all with THOROUGH=1.
// SURROUNDINGS=all tries each row that there can be, and SURROUNDINGS=<part of a row's title> those.
//
// API server and controllers are real, and so are the pods that they make, with everything that may refuse them: Pod Security,
// quotas, admission policies. No pod runs: a stand-in says that it does. e2e/hub and e2e/upgrade run what the charts deliver.

const root = join(import.meta.dirname, '../..');
const jobs = resourceType<KubeObject & { status?: { succeeded?: number } }>({
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
});

const tools: Readonly<Record<string, (options: InstallerOptions) => Installer | Promise<Installer>>> = {
  'Helm 4': (options) => helmInstaller(options),
  'Helm 3': (options) => helmInstaller(options, 3),
  'kubectl apply': (options) => kubectlInstaller(options),
  'kubectl apply --server-side': (options) => kubectlInstaller(options, '--server-side'),
  'Argo CD': async ({ cluster }) => (await argoCd()).installer(cluster),
};

const before = 'the version before';
const columns = {
  chart: triedCharts.map(({ name }) => name),
  place: places.map(({ name }) => name),
  tool: Object.keys(tools),
  begin: ['this version', before],
};
const placeOf = (name: string) => places.find((place) => place.name === name) as Surrounding;
const chartOf = (name: string) => triedCharts.find((chart) => chart.name === name) as TriedChart;

const wish = process.env.SURROUNDINGS;
const titleOf = (row: Record<keyof typeof columns, string>) =>
  `${row.chart}, ${row.tool}, ${row.place}, from ${row.begin}`;
const { revision } = findVersionBefore(root);
const hadBefore = (chart: string) =>
  revision !== undefined && revisionHas(root, revision, `charts/${chart}/Chart.yaml`);
/**
 * Rows that fail and are not mended: Argo CD takes a CRD of the hub's chart that is not established yet for failed, and ends the sync,
 * which its users repeat. They are tried when SURROUNDINGS names them.
 */
const open = ({ chart, tool }: Record<keyof typeof columns, string>) =>
  chart === 'argocd-agent-addon' && tool === 'Argo CD';
const isPossible = (row: Record<keyof typeof columns, string>) =>
  row.begin !== before ||
  (![chartOf(row.chart), placeOf(row.place)].some((one) => one.refusesBefore) && hadBefore(row.chart));
const rows = wish
  ? allRows().filter((row) => isPossible(row) && (wish === 'all' || titleOf(row).includes(wish)))
  : coveringTable(columns, isPossible)
      .filter((row) => !open(row))
      .slice(0, effort(10, Number.POSITIVE_INFINITY));

function allRows() {
  const { chart, place, tool, begin } = columns;
  return chart.flatMap((c) =>
    tool.flatMap((t) => place.flatMap((p) => begin.map((b) => ({ chart: c, place: p, tool: t, begin: b })))),
  );
}

const merged = (...all: ChartValues[]) =>
  all.reduce((one, other) => mergedPatches(one as MergePatch, other as MergePatch) as ChartValues);

/** A line for each row. */
const results: string[] = [];
let started: Promise<DeployingArgoCd> | undefined;
/** One for all rows that ask for it. */
function argoCd(): Promise<DeployingArgoCd> {
  started ??= DeployingArgoCd.start(folder);
  return started;
}
let pool: ClusterPool;
let folder: string;
let chartsBefore: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surroundings-'));
  chartsBefore = join(folder, 'before');
  if (revision !== undefined) {
    await checkOut(root, revision, chartsBefore, ['charts']);
  }
  pool = new ClusterPool({
    prepare: async ({ client }) => installCrds(client, await ocmCrds('hub')),
    idleMs: 120_000,
    failed: (error) => console.error(error),
  });
});
afterAll(async () => {
  await (await started)?.stop();
  await pool?.stop();
  await rm(folder, { recursive: true, force: true });
  const left = wish ? [] : coveringTable(columns, isPossible).filter(open);
  console.log(['What was tried:', ...results.sort(), ...left.map((row) => `open ${titleOf(row)}`)].join('\n'));
});

describe('a chart', { timeout: 400_000 }, () => {
  for (const row of rows) {
    const tags = row.begin === before ? { tags: 'version-before' as const } : {};
    test(titleOf(row), tags, async () => {
      const steps: string[] = [];
      const since = performance.now();
      const said = (how: string) =>
        results.push(
          `${how}  ${titleOf(row)}: ${steps.join(', ')} (${((performance.now() - since) / 1000).toFixed(1)} s)`,
        );
      try {
        await tryRow(row, steps);
        said('ok ');
      } catch (error) {
        said('RED');
        throw error;
      }
    });
  }
});

async function tryRow(row: Record<keyof typeof columns, string>, steps: string[]): Promise<void> {
  const { cluster, giveBack } = await pool.lend();
  const ended = new AbortController();
  const place = placeOf(row.place);
  const chart = chartOf(row.chart);
  const { client } = cluster;
  try {
    void playKubelet(client, ended.signal).catch(() => undefined);
    if (chart.needsArgoCd) {
      await installCrds(client, await argoCdCrds());
    }
    await place.prepare(cluster, chart);
    await podsMade();
    const found = await everything(client);
    const options = { cluster, folder: await mkdtemp(join(folder, 'row-')), apiVersions: place.apiVersions ?? [] };
    const tool = (await tools[row.tool]?.(options)) as Installer;
    const isOwn = place.name === 'own Argo CD';
    const unseen = isOwn && chart.unseen.hubArgoCD ? { hubArgoCD: { install: false } } : {};
    const values = merged(chart.values, tool.isBlind ? merged(chart.unseen, unseen) : {}, place.values(chart));
    const release = { name: chart.name, namespace: chart.namespace, chart: chart.folder, values };

    const added = async () =>
      [...(await everything(client))].filter(([name]) => !found.has(name)).map(([, object]) => object);
    const prints = async () =>
      Object.fromEntries((await added()).filter(isKept).map((object) => [nameOf(object), fingerprint(object)]));
    const step = async (name: string, work: () => Promise<void>) => {
      steps.push(name);
      await work();
      await podsMade();
      const all = await added();
      expect(all.flatMap(fieldsOfTwo), `${name}: fields with two owners`).toEqual([]);
      steps[steps.length - 1] = `${name} ✓`;
    };

    if (row.begin === before) {
      const was = join(chartsBefore, 'charts', chart.name);
      await step(`installed as ${before}`, () => tool.apply({ ...release, chart: was }));
      await step('upgraded to this', () => tool.apply(release));
    } else {
      await step('installed', () => tool.apply(release));
    }
    const first = await prints();
    await step('upgraded with equal values', () => tool.apply(release));
    expect(differences(first, await prints()), 'what an equal upgrade writes').toEqual([]);
    await step('with others', () => tool.apply({ ...release, values: merged(values, chart.changed) }));
    expect(differences(first, await prints())).not.toEqual([]);
    await step('rolled back', () => tool.rollBack(release));
    expect(Object.keys(await prints()).sort()).toEqual(Object.keys(first).sort());
    await step('removed', () => tool.remove());
    const stays = [...chart.spaces.map((name) => `Namespace ${name}`), ...(chart.needsArgoCd ? [] : crdsOf(isOwn))];
    const expected = stays.filter((name) => !found.has(name)).sort();
    await until(async () => expect((await added()).map(nameOf).sort(), 'what is left').toEqual(expected));
    const now = await everything(client);
    for (const [name, object] of found) {
      if (object.kind !== 'Namespace') {
        expect(now.has(name) && fingerprint(now.get(name) as KubeObject), name).toBe(fingerprint(object));
      } else {
        expect(now.get(name)?.metadata).toMatchObject({ uid: object.metadata.uid, labels: object.metadata.labels });
      }
    }
  } finally {
    ended.abort();
    await giveBack();
  }

  /** Everything that makes pods has made those that it wants: nobody refused one. */
  async function podsMade(): Promise<void> {
    await until(
      'all pods',
      async () => {
        for (const type of [deployments, statefulSets]) {
          for (const { metadata, spec, status } of await client.list(type)) {
            const wanted = spec?.replicas ?? 1;
            const { observedGeneration, replicas = 0, readyReplicas = 0, updatedReplicas = 0 } = status ?? {};
            const isMade = [replicas, readyReplicas, updatedReplicas].every((count) => count === wanted);
            if (!isMade || observedGeneration !== metadata.generation) {
              throw new Error(`${type.kind} ${metadata.name}: ${JSON.stringify(status)}`);
            }
          }
        }
        const open = (await client.list(jobs)).find(({ status }) => !status?.succeeded);
        return (
          open === undefined || Promise.reject(new Error(`Job ${open.metadata.name}: ${JSON.stringify(open.status)}`))
        );
      },
      { timeoutMs: 90_000 },
    );
  }
}

/** Which objects of two sets of fingerprints differ, each with the first difference. */
function differences(one: Readonly<Record<string, string>>, other: Readonly<Record<string, string>>): string[] {
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();
  return names
    .filter((name) => one[name] !== other[name])
    .map((name) => {
      const [was, is] = [one[name] ?? 'nothing', other[name] ?? 'nothing'];
      const at = Math.max(0, [...was].findIndex((letter, index) => is[index] !== letter) - 60);
      return `${name}: ${was.slice(at, at + 160)} became ${is.slice(at, at + 160)}`;
    });
}

/** The CRDs that stay, because a deletion would take all their objects. */
const crdsOf = (hasOwn: boolean) =>
  [
    'gitopsclusters.apps.open-cluster-management.io',
    ...(hasOwn ? [] : ['applications', 'applicationsets', 'appprojects'].map((one) => `${one}.argoproj.io`)),
  ].map((name) => `CustomResourceDefinition ${name}`);

/** Whether an equal upgrade must leave an object alone: all but Helm's records. */
function isKept(object: KubeObject & { type?: string }): boolean {
  return object.type !== 'helm.sh/release.v1' && !['Pod', 'ReplicaSet', 'IPAddress'].includes(object.kind ?? '');
}
