import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { until } from '../../lib/base/testing.ts';
import { events, type KubeObject, namespaces } from '../../lib/kube/index.ts';
import {
  addonChart,
  agentChart,
  helm,
  installCrds,
  principalChart,
  publishedCrds,
  pullChart,
  withoutHub,
} from '../hub/index.ts';
import type { Program } from '../pair/index.ts';
import { borrowCluster, type SharedCluster } from '../testbed/index.ts';
import { madeForPrometheus, monitoringNamespace, startPrometheusOperator } from './prometheus-operator.ts';

// What the charts render for the Prometheus operator: an API server with the operator's own CRDs, which refuses unknown
// fields, takes it, and the operator itself makes what Prometheus reads from it.

let cluster: SharedCluster;
beforeAll(async () => {
  cluster = await borrowCluster();
  await cluster.client.create(namespaces, { metadata: { name: monitoringNamespace } });
  await installCrds(cluster.client, await publishedCrds('prometheus-operator'));
});
afterAll(() => cluster?.stop());

type Typed = KubeObject & { apiVersion: string; kind: string };

async function monitoringObjects(chart: string, values: readonly string[], release = 'x'): Promise<Typed[]> {
  const args = values.flatMap((value) => ['--set', value]);
  const text = await helm([
    'template',
    release,
    chart,
    '--namespace',
    monitoringNamespace,
    ...withoutHub(chart),
    ...args,
  ]);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Typed | null)
    .filter((object): object is Typed => object?.apiVersion === 'monitoring.coreos.com/v1');
}

/** Makes an object. The API server takes unknown fields for errors. */
async function post(to: SharedCluster, { kind, metadata, ...rest }: Typed, query = ''): Promise<void> {
  const path = `/apis/monitoring.coreos.com/v1/namespaces/${monitoringNamespace}/${kind.toLowerCase()}s`;
  const body = { kind, ...rest, metadata: { ...metadata, namespace: monitoringNamespace } };
  await (await to.client.request(`${path}?fieldValidation=Strict${query}`, { method: 'POST', body })).body.text();
}

/** What the API server says to an object. */
async function verdict(object: Typed): Promise<string> {
  try {
    await post(cluster, object, '&dryRun=All');
    return 'taken';
  } catch (error) {
    return (error as Error).message;
  }
}

const everything = [
  'serviceMonitor.enabled=true',
  'serviceMonitor.interval=30s',
  'serviceMonitor.scrapeTimeout=10s',
  'serviceMonitor.additionalLabels.release=prometheus',
  'serviceMonitor.relabelings[0].targetLabel=cluster',
  'serviceMonitor.relabelings[0].replacement=hub',
  'prometheusRule.enabled=true',
  'prometheusRule.runbooks=https://example.com/runbooks.md',
];

const charts: readonly (readonly [chart: string, values: readonly string[], kinds: readonly string[]])[] = [
  [principalChart, everything, ['PrometheusRule', 'ServiceMonitor']],
  [agentChart, everything, ['PrometheusRule', 'ServiceMonitor']],
  [addonChart, everything, ['PrometheusRule', 'ServiceMonitor', 'ServiceMonitor']],
  [pullChart, ['podMonitor.enabled=true'], ['PodMonitor']],
];

describe.each(charts)('%s', (chart, values, kinds) => {
  test('has what the operator’s schemas admit', async () => {
    const objects = await monitoringObjects(chart, values);
    expect(objects.map(({ kind }) => kind).sort()).toEqual(kinds);
    for (const object of objects) {
      expect([object.kind, object.metadata.name, await verdict(object)]).toEqual([
        object.kind,
        object.metadata.name,
        'taken',
      ]);
    }
  });
});

test('the schemas notice a field that they do not know', async () => {
  const [monitor] = await monitoringObjects(principalChart, everything);
  expect(await verdict({ ...(monitor as Typed), spec: { endpints: [] } } as Typed)).toMatch(/endpints/);
});

describe('the operator itself', { tags: ['prometheus-operator', 'prometheus'] }, () => {
  let hub: SharedCluster;
  let operator: Program;
  let folder: string;
  const objects: Typed[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'prometheus-operator-'));
    hub = await borrowCluster();
    operator = await startPrometheusOperator(hub);
    for (const [index, [chart, values]] of charts.entries()) {
      objects.push(...(await monitoringObjects(chart, values, `fleet${index}`)));
    }
    for (const object of objects) {
      await post(hub, object);
    }
  });
  afterAll(async () => {
    await operator?.stop('SIGKILL');
    await hub?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const monitors = () => objects.filter(({ kind }) => kind !== 'PrometheusRule');
  const check = (...args: string[]) => promisify(execFile)('promtool', ['check', ...args]);

  test('has Prometheus scrape every monitor, with settings that Prometheus knows', async () => {
    const jobsOf = ({ kind, metadata: { name } }: Typed) =>
      `${kind[0]?.toLowerCase()}${kind.slice(1)}/${monitoringNamespace}/${name}/0`;
    const wanted = monitors().map(jobsOf).sort();
    expect(wanted).toHaveLength(5);
    const scraped = async () => (await madeForPrometheus(hub)).scraped;
    await until('all are scraped', async () => (await scraped()).length === wanted.length);
    const configs = await scraped();
    expect(configs.map((one) => one.job_name).sort(), 'each has one endpoint').toEqual(wanted);
    const file = join(folder, 'prometheus.yaml');
    // Debian's promtool is built without the service discovery of Kubernetes.
    const known = configs.map(({ kubernetes_sd_configs: _, ...rest }) => rest);
    await writeFile(file, stringify({ scrape_configs: known }));
    expect((await check('config', '--syntax-only', file)).stdout).toContain('SUCCESS');
  });

  test('gives every rule to Prometheus as the chart has it', async () => {
    type Groups = { groups: { name: string; rules: object[] }[] };
    const ruleSets = objects.filter(({ kind }) => kind === 'PrometheusRule') as (Typed & { spec: Groups })[];
    await until(async () => Object.keys((await madeForPrometheus(hub)).rules).length === ruleSets.length);
    const { rules } = await madeForPrometheus(hub);
    const bare = ({ groups }: Groups) => groups.map(({ name, rules }) => ({ name, rules }));
    const given = Object.values(rules).map((text) => bare(parse(text) as Groups));
    expect(given).toEqual(expect.arrayContaining(ruleSets.map(({ spec }) => bare(spec))));
    for (const [name, text] of Object.entries(rules)) {
      await writeFile(join(folder, name), text);
      expect((await check('rules', join(folder, name))).stdout).toContain('SUCCESS');
    }
  });

  test('refuses none of them, and says so of a rule that is wrong', async () => {
    const refused = async () =>
      (await hub.client.list(events, { namespace: monitoringNamespace }))
        .filter(({ reason }) => reason === 'InvalidConfiguration')
        .map(({ regarding }) => regarding?.name);
    const wrong = { groups: [{ name: 'wrong', rules: [{ alert: 'Wrong', expr: 'up ==' }] }] };
    await post(hub, {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PrometheusRule',
      metadata: { name: 'wrong' },
      spec: wrong,
    } as Typed);
    await until('it is refused', async () => (await refused()).length > 0);
    expect(new Set(await refused())).toEqual(new Set(['wrong']));
  });
});
