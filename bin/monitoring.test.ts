import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { agentMetrics } from '../agent/metrics.ts';
import { controllerRegistry } from '../controller/daemon/index.ts';
import { addonChart, agentChart, principalChart } from '../e2e/hub/helm.ts';
import { alertsIn, expressionsOf, metricsOf } from '../e2e/monitoring/expressions.ts';
import {
  certificateMetrics,
  createLogger,
  createRegistry,
  fleetEvents,
  kubeRequestMetrics,
  queueMetrics,
} from '../lib/ops/index.ts';
import { applicationMetrics } from '../principal/application-metrics.ts';
import { auditLog } from '../principal/audit/audit-log.ts';
import { fleetMetrics } from '../principal/fleet-metrics.ts';
import { haMetrics } from '../principal/ha/metrics.ts';
import { HaStateMachine } from '../principal/ha/states.ts';
import { liveMetrics } from '../principal/live/metrics.ts';
import { outOfStepMetric, principalMetrics } from '../principal/metrics.ts';
import { replicaMetrics } from '../principal/replicas/metrics.ts';

const root = join(import.meta.dirname, '..');
const page = readFileSync(join(root, 'docs/metrics.md'), 'utf8');
const charts = [principalChart, addonChart, agentChart];

/** The names that a registry has, without the process's own. */
async function namesOf(registry: Registry): Promise<string[]> {
  const metrics = await registry.getMetricsAsJSON();
  return metrics.map(({ name }) => name).filter((name) => !/^(process|nodejs)_/.test(name));
}

/** What makes a program have events of the fleet. */
function sink(registry: Registry, metrics: string) {
  const flags = { 'events-sink-url': 'http://127.0.0.1', 'events-sink-token-path': '', 'events-mode': 'binary' };
  return { flags, source: '', metrics, registry, logger: createLogger() };
}

function controller(): Registry {
  const registry = controllerRegistry(() => undefined);
  fleetEvents(sink(registry, 'gitops_controller'));
  return registry;
}

function principal(): Registry {
  const registry = createRegistry();
  kubeRequestMetrics(registry, () => '');
  queueMetrics(registry, 'argocd_principal');
  principalMetrics(registry, {
    connections: () => [],
    disconnected: () => [],
    gpgKeys: () => 0,
    isRedisConnected: () => true,
  });
  outOfStepMetric(registry, () => []);
  fleetMetrics(registry, () => []);
  certificateMetrics(registry, 'argocd_principal_certificate_expiration_timestamp_seconds', () => []);
  applicationMetrics(registry, ['team'], () => []);
  auditLog(
    { 'audit-log-path': '-', 'audit-log-maxsize': 0, 'audit-webhook-url': '', 'audit-webhook-token-path': '' },
    registry,
    createLogger(),
  );
  fleetEvents(sink(registry, 'argocd_principal'));
  liveMetrics(
    registry,
    () => true,
    () => new Map(),
  );
  replicaMetrics(registry, { agents: () => 0, live: () => 1, isLeader: () => true, isCurrent: () => true });
  haMetrics(registry, new HaStateMachine(), {
    followers: () => 0,
    lag: () => ({ objects: 0, ms: 0 }),
    refused: () => 0,
    isFollowing: () => false,
    lastSequence: () => 0,
    isFenced: () => true,
  });
  return registry;
}

function agent(): Registry {
  const registry = createRegistry();
  kubeRequestMetrics(registry, () => '');
  agentMetrics(registry, {
    mode: 'managed',
    outOfStep: () => 0,
    oldestMs: () => 0,
    certificates: () => [],
    isRedisConnected: () => true,
  });
  return registry;
}

const registries = [principal(), agent(), controller()];
const known = new Set((await Promise.all(registries.map(namesOf))).flat());
const own = new Set(
  (await Promise.all(registries.map((one) => one.getMetricsAsJSON()))).flat().map(({ name }) => name),
);

test('docs/metrics.md has every metric, and no metric that does not exist', () => {
  const tables = page.replace(/These metrics of argocd-agent are not provided[\s\S]*?\n## /, '\n## ');
  const named = new Set(
    Array.from(
      tables.matchAll(/`((?:argocd|principal|agent|grpc|rest_client|gitops)_[a-z_]+)`/g),
      ([, name = '']) => name,
    ).filter((name) => name !== 'agent_name'),
  );
  expect([...known].filter((name) => !named.has(name))).toEqual([]);
  expect([...named].filter((name) => !known.has(name))).toEqual([]);
});

describe.each(charts)('%s', (chart) => {
  const folder = join(chart, 'files/monitoring');
  const files = readdirSync(folder);

  test.each(files)('no expression of %s names a metric that does not exist', (file) => {
    const expressions = expressionsOf(join(folder, file));
    expect(expressions.length).toBeGreaterThan(0);
    for (const expression of expressions) {
      const names = metricsOf(expression);
      expect(names.length, expression).toBeGreaterThan(0);
      const base = (name: string) => (own.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''));
      expect(
        names.filter((name) => !own.has(base(name))),
        expression,
      ).toEqual([]);
    }
  });

  test.each(files)('no expression of %s shows what other programs have under the same name', (file) => {
    for (const expression of expressionsOf(join(folder, file))) {
      const isCommon = metricsOf(expression).some((name) => /^(process|nodejs|rest_client)_/.test(name));
      expect(/ and on \(job, instance\) (argocd|gitops)_/.test(expression), expression).toBe(isCommon);
    }
  });

  test.each(files.filter((file) => file.endsWith('alerts.yaml')))('every alert of %s has its runbook', (file) => {
    const runbooks = readFileSync(join(root, 'docs/runbooks.md'), 'utf8');
    for (const { alert, labels, annotations } of alertsIn(join(folder, file))) {
      expect(['warning', 'critical']).toContain(labels.severity);
      expect(annotations.runbook_url).toBe(`RUNBOOKS#${alert.toLowerCase()}`);
      expect(runbooks).toContain(`### ${alert}\n\n**Means**: `);
      expect(annotations.summary).toBeTruthy();
    }
  });
});

test('a file that two charts deliver is the same in both', () => {
  const read = (chart: string, file: string) => readFileSync(join(chart, 'files/monitoring', file), 'utf8');
  const shared = readdirSync(join(principalChart, 'files/monitoring'));
  expect(shared).toHaveLength(3);
  for (const file of shared) {
    expect(read(addonChart, file), file).toBe(read(principalChart, file));
  }
});

test('finds the metrics in an expression, and only them', () => {
  const expression =
    'histogram_quantile(0.9, sum by (a_b, le) (rate(x_y_bucket{c_d="e_f", g=~"h_i|j"}[$__rate_interval]))) > on(k_l) group_left() m_n or vector(0)';
  expect(metricsOf(expression)).toEqual(['x_y_bucket', 'm_n']);
});
