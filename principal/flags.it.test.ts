import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  application,
  freePort,
  metricsNow,
  namespace,
  type Pair,
  pairApplications,
  pairAppProjects,
  put,
  startPair,
} from '../e2e/pair/index.ts';
import { programCommand } from '../e2e/programs/index.ts';
import { until } from '../lib/base/testing.ts';
import { secrets } from '../lib/kube/index.ts';

let pair: Pair;
let profiles: number;
const logs = () => ({
  details: () => `${pair.principal.output.slice(-3_000)}\n---\n${pair.agent.output.slice(-3_000)}`,
});

beforeAll(async () => {
  profiles = await freePort();
  pair = await startPair({
    principal: {
      args: [
        '--insecure-tls-generate',
        `--pprof-port=${profiles}`,
        '--full-detail=all',
        '--label-selector=fleet=yes',
        '--enable-websocket',
      ],
    },
    agent: {
      args: ['--insecure-tls', '--enable-websocket', '--buffer-informer-event-interval=1500ms', '--full-detail=events'],
    },
  });
});
afterAll(async () => {
  await pair?.stop();
});

const labels = { fleet: 'yes' };
const labelled = (name: string) => application({ name, namespace: pair.name, metadata: { labels } });

/** The principal's counters of Application events. */
async function processed(): Promise<number> {
  const text = await metricsNow(pair.principalMetricsPort);
  const [, count = '0'] =
    /principal_event_processing_time_count\{status="success",agent_name="cluster1",resource_type="application"\} (\d+)/.exec(
      text,
    ) ?? [];
  return Number(count);
}

test('agents connect over WebSocket to a principal whose certificate was made at its start', async () => {
  await pair.principal.says(/certificate made at this start/);
  await pair.agent.says(/Connected to the principal/);
});

test('only selected objects are handled', async () => {
  const { hub, managed } = pair;
  await hub.client.create(pairApplications, application({ name: 'other', namespace: pair.name }));
  await hub.client.create(pairApplications, labelled('ours'));
  await until('it arrives', () => managed.client.get(pairApplications, { name: 'ours', namespace }), logs());
  expect(await managed.client.get(pairApplications, { name: 'other', namespace })).toBeUndefined();
});

test('reports about one Application are kept apart, and the last state arrives', async () => {
  const { hub, managed } = pair;
  await hub.client.create(pairApplications, labelled('busy'));
  await until('it arrives', () => managed.client.get(pairApplications, { name: 'busy', namespace }), logs());
  const before = await processed();
  const began = performance.now();
  for (let n = 1; n <= 30; n++) {
    const status = { health: { status: 'Progressing', message: `step ${n}` } };
    await managed.client.mergePatch(pairApplications, { name: 'busy', namespace }, { status });
  }
  await until(
    'the last state is on the hub',
    async () => {
      const there = await hub.client.get(pairApplications, { name: 'busy', namespace: pair.name });
      return (there?.status?.health as { message?: string } | undefined)?.message === 'step 30';
    },
    logs(),
  );
  // One at once, one in each interval since, and those that were sent before.
  const most = 3 + Math.ceil((performance.now() - began) / 1_500);
  expect((await processed()) - before).toBeLessThanOrEqual(most);
});

test('full detail shows whole objects, and no secrets', async () => {
  const { hub, managed } = pair;
  await hub.client.create(pairAppProjects, {
    metadata: { name: 'shown', namespace, labels },
    spec: { sourceRepos: ['*'], sourceNamespaces: ['*'], destinations: [{ name: '*', namespace: '*', server: '*' }] },
  });
  const secret = { url: 'https://example.com/r.git', project: 'shown', password: 'do-not-show-me' };
  await put(hub.client, 'repo-shown', secret, {
    labels: { ...labels, 'argocd.argoproj.io/secret-type': 'repository' },
  });
  await until('the repository', () => managed.client.get(secrets, { name: 'repo-shown', namespace }), logs());
  for (const category of ['events', 'informers']) {
    await pair.principal.says(new RegExp(`log_category=${category}.*kind.*|log_category=${category}`));
  }
  await pair.principal.says(/event_target=repository.*redacted: Secret/);
  await pair.agent.says(/log_category=events direction=received.*redacted: Secret/);
  const encoded = Buffer.from(secret.password).toString('base64');
  for (const { output } of [pair.principal, pair.agent]) {
    expect(output.includes(secret.password) || output.includes(encoded)).toBe(false);
  }
});

test('profiles can be had on the loopback address', async () => {
  const page = await (await fetch(`http://127.0.0.1:${profiles}/debug/pprof/`)).text();
  expect(page).toContain('/debug/pprof/heap');
  const profile = (await (await fetch(`http://127.0.0.1:${profiles}/debug/pprof/profile?seconds=0.2`)).json()) as {
    nodes: unknown[];
  };
  expect(profile.nodes.length).toBeGreaterThan(1);
});

test("the originals' metrics of calls are there", async () => {
  const text = await (await fetch(`http://127.0.0.1:${pair.principalMetricsPort}/metrics`)).text();
  const labels = (service: string, method: string, type: string) =>
    `grpc_type="${type}",grpc_service="${service}",grpc_method="${method}"`;
  const login = labels('authapi.Authentication', 'Authenticate', 'unary');
  // More than one if the agent had to reconnect on a busy machine.
  expect(text).toMatch(new RegExp(`grpc_server_handled_total\\{${login},grpc_code="OK"\\} [1-9]`));
  const subscription = labels('eventstreamapi.EventStream', 'Subscribe', 'bidi_stream');
  expect(text).toMatch(new RegExp(`grpc_server_started_total\\{${subscription}\\} [1-9]`));
  expect(text).toMatch(/rest_client_requests_total\{code="200",method="GET",host="127\.0\.0\.1:\d+"\} \d+/);
});

test('list prints the cipher suites, and nothing is started', () => {
  const [node, file] = programCommand('argocd-agent');
  const { status, stdout } = spawnSync(node, [file, 'agent', '--tls-ciphersuites=list'], { encoding: 'utf8' });
  expect([status, stdout.includes('TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256')]).toEqual([0, true]);
});
