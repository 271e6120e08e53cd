import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import type { Application } from '../lib/argocd/index.ts';
import { applicationMetrics } from './application-metrics.ts';

const shop: Application = {
  metadata: { namespace: 'argocd', name: 'shop', labels: { 'team.example/name': 'blue', secret: 'no' } },
  spec: {
    source: { repoURL: 'https://git.example/shop' },
    destination: { name: 'c1', namespace: 'shop' },
    syncPolicy: { automated: {} },
  },
  status: { sync: { status: 'OutOfSync' }, health: { status: 'Degraded' }, operationState: { phase: 'Failed' } },
};

async function scrape(application: Application, labels: readonly string[] = []): Promise<string> {
  const registry = new Registry();
  applicationMetrics(registry, labels, () => [{ application, agent: 'c1' }]);
  return await registry.metrics();
}

test("Applications have Argo CD's own metric, with their agent", async () => {
  const text = await scrape(shop);
  expect(text).toContain(
    'argocd_app_info{namespace="argocd",name="shop",project="default",agent_name="c1",autosync_enabled="true",' +
      'repo="https://git.example/shop",dest_server="c1",dest_namespace="shop",sync_status="OutOfSync",' +
      'health_status="Degraded",operation=""} 1',
  );
  expect(text).toContain(
    'argocd_app_operation_phase{namespace="argocd",name="shop",project="default",phase="Failed"} 1',
  );
  expect(text).not.toContain('argocd_app_labels');
});

test('only the labels that are asked for are shown', async () => {
  const text = await scrape(shop, ['team.example/name', 'absent']);
  expect(text).toContain(
    'argocd_app_labels{namespace="argocd",name="shop",project="default",label_team_example_name="blue",label_absent=""} 1',
  );
  expect(text).not.toContain('secret');
});

test('an Application that says nothing, or nonsense, is shown all the same', async () => {
  const spec = { project: 'p', source: 7, syncPolicy: { automated: { enabled: false } } } as Application['spec'];
  const text = await scrape({ metadata: { name: 'odd', namespace: 'argocd' }, spec });
  expect(text).toMatch(/project="p".*autosync_enabled="false",repo="".*sync_status="Unknown"/);
  expect(text).not.toContain('argocd_app_operation_phase{');
});
