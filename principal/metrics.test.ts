import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { type PrincipalState, principalMetrics } from './metrics.ts';

function start(state: Partial<PrincipalState> = {}) {
  const registry = new Registry();
  const metrics = principalMetrics(registry, {
    connections: () => [],
    disconnected: () => [],
    gpgKeys: () => 0,
    isRedisConnected: () => false,
    ...state,
  });
  return { registry, metrics };
}

/** The metrics of `internal/metrics` of argocd-agent's principal, without those of what this version does not have. */
const original = `
argocd_principal_connected_agents principal_agent_avg_connection_time argocd_principal_agent_connections_total
principal_applications_created principal_applications_updated principal_applications_deleted
principal_app_projects_created principal_app_projects_updated principal_app_projects_deleted
principal_repositories_created principal_repositories_updated principal_repositories_deleted
argocd_principal_gpg_keys_count principal_events_received principal_events_sent
principal_event_processing_time principal_errors
principal_event_writer_send_errors_total argocd_principal_event_writer_events_discarded_total
grpc_server_started_total grpc_server_handled_total grpc_server_handling_seconds
grpc_server_msg_received_total grpc_server_msg_sent_total
`
  .trim()
  .split(/\s+/);

test("the original's metrics are there", () => {
  const { registry } = start();
  for (const name of original) {
    expect(registry.getSingleMetric(name), name).toBeDefined();
  }
});

test('agents are counted by mode, with the mean time of their connections', async () => {
  const since = new Date(Date.now() - 10 * 60_000);
  const { registry } = start({
    connections: () => [
      { agent: 'a', mode: 'managed', since },
      { agent: 'b', mode: 'autonomous', since: new Date() },
    ],
  });
  const text = await registry.metrics();
  expect(text).toContain('argocd_principal_connected_agents 2');
  expect(text).toContain('argocd_principal_connected_agents_by_mode{mode="managed"} 1');
  expect(text).toMatch(/principal_agent_avg_connection_time (4\.9|5)/);
  expect(await registry.metrics()).toContain('argocd_principal_connected_agents_by_mode{mode="managed"} 1');
});

test('agents that have been disconnected for long are counted, each with its Applications, until they are back', async () => {
  let disconnected = [
    { agent: 'a', applications: 2_000 },
    { agent: 'b', applications: 0 },
  ];
  const { registry } = start({ disconnected: () => disconnected });
  const text = await registry.metrics();
  expect(text).toContain('argocd_principal_disconnected_agents 2');
  expect(text).toContain('argocd_principal_disconnected_agent_applications{agent_name="a"} 2000');
  expect(text).toContain('argocd_principal_disconnected_agent_applications{agent_name="b"} 0');
  disconnected = disconnected.slice(1);
  const later = await registry.metrics();
  expect(later).toContain('argocd_principal_disconnected_agents 1');
  expect(later).not.toContain('{agent_name="a"}');
});

test("a forgotten agent's series go, others stay", async () => {
  const { registry, metrics } = start();
  for (const agent of ['gone', 'stays']) {
    metrics.connected(agent);
    metrics.refusedEvent(agent, 'application');
    metrics.unsendable(agent, { eventType: 'create', resourceType: 'application', reason: 'too_large' });
    metrics.processed(agent, 'application', 'success', 0.1);
    metrics.processed(agent, 'appproject', 'failure', 0.1);
  }
  expect(await registry.metrics()).toContain('gone');
  metrics.forgetAgent('gone');
  const text = await registry.metrics();
  expect(text).not.toContain('gone');
  expect(text).toContain('argocd_principal_agent_connections_total{agent_name="stays"} 1');
  expect(text).toContain('argocd_principal_refused_events_total{agent_name="stays",resource_type="application"} 1');
  expect(text).toContain('principal_errors{resource_type="appproject"} 2');
  expect(text).toContain('principal_event_writer_send_errors_total{agent_name="stays",reason="too_large"} 1');
});

test('a fleet of any size costs a bounded number of series', async () => {
  const { registry, metrics } = start();
  for (let agent = 0; agent < 1_000; agent++) {
    metrics.processed(`agent-${agent}`, 'application', 'success', 0.1);
  }
  const text = await registry.metrics();
  expect(text.match(/principal_event_processing_time_count\{/g)).toHaveLength(201);
  expect(text).toContain(
    'principal_event_processing_time_count{status="success",agent_name="(others)",resource_type="application"} 800',
  );
  metrics.forgetAgent('agent-1');
  metrics.processed('agent-999', 'application', 'success', 0.1);
  expect(await registry.metrics()).toContain('agent_name="agent-999"');
});
