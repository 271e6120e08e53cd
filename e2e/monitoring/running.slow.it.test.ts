import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { issueCertificate } from '../../lib/pki/index.ts';
import { addonChart, agentChart } from '../hub/index.ts';
import { ProxyClient } from '../live/index.ts';
import { application, freePort, namespace, type Pair, pairApplications, startPair } from '../pair/index.ts';
import { type Redis, startRedis } from '../redis/index.ts';
import { hastyRules, panelQueriesOf } from './expressions.ts';
import { type Prometheus, startPrometheus } from './prometheus.ts';

// A real Prometheus scrapes a principal and an agent at work, with the alerts and dashboards that the charts deliver.

const monitoring = (chart: string, file: string) => join(chart, 'files/monitoring', file);
const panels = ['fleet-dashboard.json', 'cluster-dashboard.json'].flatMap((file) =>
  panelQueriesOf(monitoring(addonChart, file)),
);

describe('Prometheus beside a principal and an agent', { tags: 'prometheus' }, () => {
  let pair: Pair;
  let redis: { hub: Redis; cluster: Redis };
  let prometheus: Prometheus;
  beforeAll(async () => {
    redis = { hub: await startRedis(), cluster: await startRedis() };
    const ports = { resources: await freePort(), redis: await freePort() };
    pair = await startPair({
      principal: { resourceProxy: ports.resources, redisProxy: ports.redis, redis: redis.hub.port },
      agent: { redis: redis.cluster.port },
    });
    prometheus = await startPrometheus({
      targets: { principal: { port: pair.principalMetricsPort }, agent: { port: pair.agentMetricsPort } },
      rules: [
        hastyRules(monitoring(addonChart, 'principal-alerts.yaml')),
        hastyRules(monitoring(agentChart, 'agent-alerts.yaml')),
      ],
    });
    // Something of everything: a change on its way, a report, a live request.
    const { hub, managed } = pair;
    await hub.client.create(pairApplications, application({ name: 'guestbook', namespace: pair.name }));
    const key = { name: 'guestbook', namespace };
    await until('the copy', () => managed.client.get(pairApplications, key));
    await managed.client.mergePatch(pairApplications, key, { status: { health: { status: 'Healthy' } } });
    const client = await issueCertificate({ authority: pair.authority, commonName: pair.name, usages: ['client'] });
    await new ProxyClient(ports.resources, pair.authority, client).send('GET', '/version');
  });
  afterAll(async () => {
    await prometheus?.stop();
    await pair?.stop();
    await Promise.all([redis?.hub.stop(), redis?.cluster.stop()]);
  });

  test('every panel of the dashboards has data', async () => {
    expect(panels.length).toBeGreaterThan(25);
    for (const { expr } of panels) {
      const expression = expr.replaceAll('$agent', pair.name);
      for (const { metric } of await prometheus.dataOf(expression)) {
        expect(metric.job ?? 'principal', expression).toBe('principal');
      }
    }
  });

  test('no alert is raised while all is well', async () => {
    await until(async () => expect(await prometheus.firing()).toEqual([]));
  });

  test.each<[fault: string, alerts: string[], begin: () => Promise<void>, end: () => Promise<void>]>([
    [
      'the agent is gone',
      ['ArgoCDAgentDisconnected'],
      async () => {
        await pair.agent.stop();
      },
      async () => pair.agent.start(),
    ],
    [
      'the principal is gone',
      ['ArgoCDAgentNotConnected', 'ArgoCDAgentPrincipalDown'],
      async () => {
        await pair.principal.stop('SIGKILL');
      },
      async () => pair.principal.start(),
    ],
    [
      "the hub's Redis is gone",
      ['ArgoCDAgentRedisDisconnected'],
      async () => {
        await redis.hub.stop();
      },
      async () => {
        redis.hub = await startRedis({ port: redis.hub.port });
      },
    ],
    [
      "the cluster's Redis is gone",
      ['ArgoCDAgentClusterRedisDisconnected'],
      async () => {
        await redis.cluster.stop();
      },
      async () => {
        redis.cluster = await startRedis({ port: redis.cluster.port });
      },
    ],
  ])('%s: %j', async (_, alerts, begin, end) => {
    await begin();
    await until(async () => expect(await prometheus.firing()).toEqual(alerts));
    await end();
    await until(async () => expect(await prometheus.firing()).toEqual([]));
  });
});
