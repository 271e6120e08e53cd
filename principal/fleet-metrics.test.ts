import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createAuthority, parseCertificates } from '../lib/pki/index.ts';
import { fleetMetrics, mostAgentSeries, type ObservedAgent } from './fleet-metrics.ts';

async function scrape(agents: readonly ObservedAgent[]): Promise<string> {
  const registry = new Registry();
  fleetMetrics(registry, () => agents);
  return await registry.metrics();
}

test('each agent has its state, and what is only known of connected ones', async () => {
  const { certificate: pem } = await createAuthority({ commonName: 'test' });
  const [certificate] = parseCertificates(pem);
  const text = await scrape([
    { agent: 'a', isConnected: true, mode: 'managed', version: '0.1.0', certificate, oldestMs: 2_500 },
    { agent: 'b', isConnected: false, mode: '', version: '' },
  ]);
  expect(text).toContain('argocd_principal_agents 2');
  expect(text).toContain('argocd_principal_agent_connected{agent_name="a"} 1');
  expect(text).toContain('argocd_principal_agent_connected{agent_name="b"} 0');
  expect(text).toContain('argocd_principal_agent_info{agent_name="a",mode="managed",version="0.1.0"} 1');
  expect(text).toContain('argocd_principal_oldest_unsent_change_age_seconds{agent_name="a"} 2.5');
  const ends = (certificate?.validToDate.getTime() ?? 0) / 1_000;
  expect(text).toContain(`argocd_principal_agent_certificate_expiration_timestamp_seconds{agent_name="a"} ${ends}`);
  expect(text).not.toMatch(/(info|expiration_timestamp_seconds|age_seconds)\{agent_name="b"/);
});

test('an agent cannot write into the metrics with its version', async () => {
  const text = await scrape([{ agent: 'a', isConnected: true, mode: 'managed', version: '1"} 1\nevil 2' }]);
  expect(text).toContain('version="unreadable"');
});

test('a fleet of any size has a bounded number of series', async () => {
  const names = Array.from({ length: mostAgentSeries + 5 }, (_, i) => `agent-${String(i).padStart(5, '0')}`);
  const text = await scrape(names.toReversed().map((agent) => ({ agent, isConnected: false, mode: '', version: '' })));
  expect(text).toContain(`argocd_principal_agents ${mostAgentSeries + 5}`);
  expect(text.match(/^argocd_principal_agent_connected\{/gm)).toHaveLength(mostAgentSeries);
  expect(text).toContain('"agent-00000"');
  expect(text).not.toContain(`"${names.at(-1)}"`);
});
