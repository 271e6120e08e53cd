import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../lib/kube/index.ts';
import { addonChart, agentChart, helm, principalChart, pullChart, withoutHub } from './helm.ts';

// Who may read metrics and health, by the policies of the charts.

interface Rendered extends KubeObject {
  spec?: { ingress?: readonly { from?: readonly object[]; ports?: readonly { port: unknown }[] }[] };
}

describe.each([
  ['argocd-agent-principal of argocd-agent-addon', addonChart, 'argocd-agent-addon-test'],
  ['argocd-agent-addon-controller of argocd-agent-addon', addonChart, 'argocd-agent-addon-test'],
  ['fleet-argocd-agent-principal of argocd-agent-principal', principalChart, 'argocd-agent-principal-test'],
  ['fleet-agent-helm of argocd-agent-agent', agentChart, 'argocd-agent-agent-test'],
  ['argocd-pull-integration of argocd-pull-integration', pullChart, 'argocd-pull-integration-test'],
])('the policy %s', (what, chart, testPod) => {
  const [name] = what.split(' ');
  const path = chart === principalChart ? 'networkPolicy.ingress.metrics' : 'networkPolicy.metrics';

  async function render(values: Record<string, unknown>): Promise<Rendered[]> {
    const sets = Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);
    const text = await helm(['template', 'fleet', chart, '--namespace', 'argocd', ...withoutHub(chart), ...sets]);
    return parseAllDocuments(text).flatMap((document) => (document.toJS() as Rendered | null) ?? []);
  }

  /** The rules about metrics and health of the program's own policy. */
  async function rulesOf(values: Record<string, unknown>) {
    const objects = await render(values);
    const [own] = objects.filter(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === name);
    const rules = own?.spec?.ingress ?? [];
    return rules.filter(({ ports = [] }) => ports.some(({ port }) => port === 'metrics' || port === 'healthz'));
  }

  const podSelector = { matchLabels: { 'app.kubernetes.io/name': testPod } };
  /** The add-on's controller may be in another namespace than the test. */
  const ofTests =
    name === 'argocd-agent-addon-controller'
      ? {
          from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'argocd' } }, podSelector }],
          ports: [{ port: 'metrics' }, { port: 'healthz' }],
        }
      : { from: [{ podSelector }], ports: [{ port: 'healthz' }] };
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
    expect(await rulesOf({})).toEqual([byName(usual), ofTests]);
  });

  it('admits the namespaces that the values name, and no others', async () => {
    expect(await rulesOf({ [`${path}.namespaces`]: ['observability'] })).toEqual([byName(['observability']), ofTests]);
    expect(await rulesOf({ [`${path}.namespaces`]: [] })).toEqual([ofTests]);
  });

  it('admits what a label selector of the values names instead', async () => {
    const namespaceSelector = { matchLabels: { purpose: 'metrics' } };
    expect(await rulesOf({ [`${path}.namespaceSelector`]: namespaceSelector })).toEqual([
      { from: [{ namespaceSelector }], ports },
      ofTests,
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
