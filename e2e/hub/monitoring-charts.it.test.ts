import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { addonChart, agentChart, helm, principalChart, pullChart, withoutHub } from './index.ts';

/** What a chart renders for monitoring. */
async function rendered(chart: string, values: readonly string[]): Promise<KubeObject[]> {
  const args = values.flatMap((value) => ['--set', value]);
  const text = await helm(['template', 'x', chart, '--namespace', 'argocd', ...withoutHub(chart), ...args]);
  const kinds = ['ServiceMonitor', 'PodMonitor', 'PrometheusRule'];
  return parseAllDocuments(text)
    .map((document) => document.toJS() as (KubeObject & { kind: string }) | null)
    .filter((object) => object !== null)
    .filter(({ kind, metadata }) => kinds.includes(kind) || metadata.labels?.grafana_dashboard === '1');
}

const all = ['serviceMonitor.enabled=true', 'prometheusRule.enabled=true', 'prometheusRule.runbooks=https://x/y.md'];
const principal = [...all, 'dashboards.enabled=true'];

describe.each([
  [principalChart, principal, ['ConfigMap', 'ConfigMap', 'PrometheusRule', 'ServiceMonitor']],
  [agentChart, all, ['PrometheusRule', 'ServiceMonitor']],
  [
    addonChart,
    principal,
    ['ConfigMap', 'ConfigMap', 'ConfigMap', 'PrometheusRule', 'ServiceMonitor', 'ServiceMonitor'],
  ],
  [pullChart, ['podMonitor.enabled=true'], ['PodMonitor']],
])('%s', (chart, values, kinds) => {
  it('has nothing for monitoring unless it is asked for', async () => {
    expect(await rendered(chart, [])).toEqual([]);
  });

  it('has what it is asked for', async () => {
    const objects = await rendered(chart, values);
    expect(objects.map(({ kind }) => kind).toSorted()).toEqual(kinds);
    const text = JSON.stringify(objects);
    expect(text).not.toContain('RUNBOOKS');
    if (kinds.includes('PrometheusRule')) {
      expect(text).toContain('"runbook_url":"https://x/y.md#argocdagent');
      // A template of Prometheus, not of Helm.
      expect(text).toContain('{{ $value | humanizeDuration }}');
    }
    for (const { data } of objects as unknown as { data?: Record<string, string> }[]) {
      for (const [file, json] of Object.entries(data ?? {})) {
        expect(file).toMatch(/^argocd-agent-(fleet|cluster|controller)-dashboard\.json$/);
        expect((JSON.parse(json) as { panels: unknown[] }).panels.length).toBeGreaterThan(5);
      }
    }
  });
});
