import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type KubeObject, namespaces } from '../../lib/kube/index.ts';
import { addonChart, agentChart, helm, installCrds, principalChart, publishedCrds, pullChart } from '../hub/index.ts';
import { borrowCluster, type SharedCluster } from '../testbed/index.ts';

// What the charts render for the Prometheus operator, against the operator's own CRDs: an API server that refuses unknown
// fields takes it.

let cluster: SharedCluster;
beforeAll(async () => {
  cluster = await borrowCluster();
  await cluster.client.create(namespaces, { metadata: { name: 'monitoring' } });
  await installCrds(cluster.client, await publishedCrds('prometheus-operator'));
});
afterAll(() => cluster?.stop());

type Typed = KubeObject & { apiVersion: string; kind: string };

async function monitoringObjects(chart: string, values: readonly string[]): Promise<Typed[]> {
  const install = chart === addonChart ? ['--set', 'hubArgoCD.install=false'] : [];
  const args = values.flatMap((value) => ['--set', value]);
  const text = await helm(['template', 'x', chart, '--namespace', 'monitoring', ...install, ...args]);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Typed | null)
    .filter((object): object is Typed => object?.apiVersion === 'monitoring.coreos.com/v1');
}

/** What the API server says to an object, with every unknown field an error. */
async function verdict({ kind, metadata, ...rest }: Typed): Promise<string> {
  const plural = `${kind.toLowerCase()}s`;
  const path = `/apis/monitoring.coreos.com/v1/namespaces/monitoring/${plural}?fieldValidation=Strict&dryRun=All`;
  const body = { kind, ...rest, metadata: { ...metadata, namespace: 'monitoring' } };
  try {
    await (await cluster.client.request(path, { method: 'POST', body })).body.text();
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

describe.each([
  [principalChart, everything, ['PrometheusRule', 'ServiceMonitor']],
  [agentChart, everything, ['PrometheusRule', 'ServiceMonitor']],
  [addonChart, everything, ['PrometheusRule', 'ServiceMonitor', 'ServiceMonitor']],
  [pullChart, ['podMonitor.enabled=true'], ['PodMonitor']],
])('%s', (chart, values, kinds) => {
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
