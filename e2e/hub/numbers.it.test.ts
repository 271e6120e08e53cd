import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { addonChart, agentChart, helm, hubArgoCdChart, principalChart, pullChart, withoutHub } from './helm.ts';

// Helm reads every number of a values file as a floating point number.

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'values-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function render(chart: string, values: object) {
  const file = join(folder, 'values.yaml');
  writeFileSync(file, stringify(values));
  const text = await helm(['template', 'fleet', chart, ...withoutHub(chart), '--values', file]);
  return parseAllDocuments(text).flatMap((document) => (document.toJS() as KubeObject & { data?: object }) ?? []);
}

const written = {
  'principal.x.million': 1_000_000,
  'principal.x.bytes': 268_435_456,
  'principal.x.exact': Number.MAX_SAFE_INTEGER,
  'principal.x.negative': -104_857_600,
  'principal.x.small': 12,
  'principal.x.fraction': 1_234_567.5,
  'principal.x.tiny': 0.000_01,
  'principal.x.half': 0.5,
  'principal.x.text': '1e6',
  'principal.x.truth': true,
};
const expected = {
  ...Object.fromEntries(Object.entries(written).map(([key, value]) => [key, String(value)])),
  'principal.x.tiny': '0.00001',
};

it.each([
  [addonChart, 'argocd-agent-params', { principal: { params: written } }],
  [addonChart, 'argocd-cmd-params-cm', { hubArgoCD: { params: written } }],
  [addonChart, 'argocd-cm', { hubArgoCD: { config: written } }],
  [addonChart, 'argocd-rbac-cm', { hubArgoCD: { rbac: written } }],
  [hubArgoCdChart, 'argocd-cm', { config: written }],
  [principalChart, 'argocd-agent-params', { configMapData: written }],
  [agentChart, 'argocd-agent-params', { params: written }],
])('%s writes numbers into %s as they are', async (chart, name, values) => {
  const objects = await render(chart, values);
  const map = objects.find(
    ({ kind, metadata, data }) =>
      kind === 'ConfigMap' && (metadata.name === name || 'principal.x.half' in (data ?? {})),
  );
  expect(map?.data).toMatchObject(expected);
});

it.each([
  [pullChart, { concurrency: 2_000_000, test: { timeoutSeconds: 3_000_000 } }, ['--concurrency=2000000', '3000000']],
  [addonChart, { test: { timeoutSeconds: 3_000_000 } }, ['3000000']],
  [agentChart, { tests: { timeoutSeconds: 3_000_000 } }, ['3000000']],
  [principalChart, { tests: { timeoutSeconds: 3_000_000 } }, ['3000000']],
])('%s gives them to its programs as they are: %j', async (chart, values, texts) => {
  const rendered = JSON.stringify(await render(chart, values));
  for (const text of texts) {
    expect(rendered).toContain(`"${text}"`);
  }
});
