import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { addonChart, agentChart, helm, principalChart, pullChart } from './helm.ts';

// Who may read metrics and health, by the policies of the charts.

interface Rendered extends KubeObject {
  spec?: { ingress?: readonly { from?: readonly object[]; ports?: readonly { port: unknown }[] }[] };
}

const ofTests = (name: string) => ({
  from: [{ podSelector: { matchLabels: { 'app.kubernetes.io/name': name } } }],
  ports: [{ port: 'healthz' }],
});

describe.each([
  ['argocd-agent-addon', addonChart, 'networkPolicy.metrics', 'argocd-agent-addon-test'],
  ['argocd-agent-principal', principalChart, 'networkPolicy.ingress.metrics', 'argocd-agent-principal-test'],
  ['argocd-agent-agent', agentChart, 'networkPolicy.metrics', 'argocd-agent-agent-test'],
  ['argocd-pull-integration', pullChart, 'networkPolicy.metrics', 'argocd-pull-integration-test'],
])('the policy of chart %s', (_what, chart, path, testPod) => {
  async function render(values: Record<string, unknown>): Promise<Rendered[]> {
    const needed = chart === agentChart ? { agentMode: 'managed', 'server.address': 'hub.example.com' } : {};
    const sets = Object.entries({ ...needed, ...values }).flatMap(([key, value]) => [
      '--set-json',
      `${key}=${JSON.stringify(value)}`,
    ]);
    const text = await helm(['template', 'fleet', chart, '--namespace', 'argocd', ...sets]);
    return parseAllDocuments(text).flatMap((document) => (document.toJS() as Rendered | null) ?? []);
  }

  /** The rules about metrics and health of the program's own policy. */
  async function rulesOf(values: Record<string, unknown>) {
    const objects = await render(values);
    const rules = objects.filter(({ kind }) => kind === 'NetworkPolicy').flatMap(({ spec }) => spec?.ingress ?? []);
    return rules.filter(({ ports = [] }) => ports.some(({ port }) => port === 'metrics' || port === 'healthz'));
  }

  const ports = [{ port: 'metrics' }, { port: 'healthz' }];
  const byName = (values: readonly string[]) => ({
    from: [
      {
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }],
        },
      },
    ],
    ports,
  });

  it('admits the usual namespaces of Prometheus and the test of Helm, and nobody else', async () => {
    const usual = ['monitoring', 'openshift-monitoring', 'openshift-user-workload-monitoring'];
    expect(await rulesOf({})).toEqual([byName(usual), ofTests(testPod)]);
  });

  it('admits the namespaces that the values name, and no others', async () => {
    expect(await rulesOf({ [`${path}.namespaces`]: ['observability'] })).toEqual([
      byName(['observability']),
      ofTests(testPod),
    ]);
    expect(await rulesOf({ [`${path}.namespaces`]: [] })).toEqual([ofTests(testPod)]);
  });

  it('admits what a label selector of the values names instead', async () => {
    const namespaceSelector = { matchLabels: { purpose: 'metrics' } };
    expect(await rulesOf({ [`${path}.namespaceSelector`]: namespaceSelector })).toEqual([
      { from: [{ namespaceSelector }], ports },
      ofTests(testPod),
    ]);
  });

  it('admits the pod of the test of Helm by the label that it has', async () => {
    const pods = (await render({})).filter(({ kind }) => kind === 'Pod');
    expect(pods.map(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'])).toContain(testPod);
  });

  it('refuses what is no namespace', async () => {
    await expect(rulesOf({ [`${path}.namespaces`]: ['Not A Name'] })).rejects.toThrow('namespaces');
  });
});
