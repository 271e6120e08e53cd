import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { configMaps, type KubeClient } from '../../lib/kube/index.ts';
import {
  type AgentCluster,
  application,
  argoCdProgram,
  freePort,
  namespace,
  type Pair,
  type Program,
  pairApplications,
  put,
  startPair,
} from '../pair/index.ts';

// Argo CD's own notifications controller on the hub, with Applications of a managed and of an autonomous agent. A small web
// server gets what it sends. The test plays the application controllers of the clusters: it writes status.

let pair: Pair;
let edge: AgentCluster;
let controller: Program;
let sink: Server;
const sent: string[] = [];

beforeAll(async () => {
  sink = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      sent.push(body);
      response.end('ok');
    });
  });
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
  pair = await startPair();
  edge = await pair.addAgent({ name: 'edge', mode: 'autonomous' });
  const { client } = pair.hub;
  await put(client, 'argocd-notifications-secret', {});
  const data = {
    'service.webhook.sink': `url: http://127.0.0.1:${(sink.address() as AddressInfo).port}/`,
    'template.app-deployed': `
webhook:
  sink:
    method: POST
    body: "{{.app.metadata.name}} {{.app.status.operationState.syncResult.revision}}"`,
    'trigger.on-deployed': `
- when: >-
    app.status.operationState != nil and app.status.operationState.phase in ['Succeeded'] and
    app.status.health.status == 'Healthy'
  oncePer: app.status.operationState.syncResult.revision
  send: [app-deployed]`,
    subscriptions: `
- recipients: [sink]
  triggers: [on-deployed]`,
  };
  await client.create(configMaps, { metadata: { namespace, name: 'argocd-notifications-cm' }, data });
  controller = await argoCdProgram('argocd-notifications', pair.hub, [
    `--application-namespaces=${pair.name},${edge.name}`,
    `--metrics-port=${await freePort()}`,
  ]);
  controller.start();
});
afterAll(async () => {
  await controller?.stop('SIGKILL');
  await pair?.stop();
  sink?.close();
});
beforeEach(() =>
  onTestFailed(() => console.error(sent, controller.output.slice(-4_000), pair.principal.output.slice(-3_000))),
);

/** An Application whose status the test writes on its cluster, and which the hub shows in the agent's namespace. */
interface Deployed {
  readonly name: string;
  readonly cluster: KubeClient;
  readonly hubNamespace: string;
}
const onHub = ({ name, hubNamespace }: Deployed) =>
  pair.hub.client.get(pairApplications, { name, namespace: hubNamespace });

let reports = 0;
/** Writes a status with another time on the cluster; resolves when the hub shows it. */
async function report(app: Deployed, revision: string): Promise<void> {
  const reconciledAt = new Date(Date.UTC(2026, 0, 1) + ++reports * 60_000).toISOString().replace('.000', '');
  const status = {
    reconciledAt,
    sync: { status: 'Synced', revision, comparedTo: { source: {}, destination: {} } },
    health: { status: 'Healthy' },
    operationState: {
      phase: 'Succeeded',
      startedAt: '2026-01-01T00:00:00Z',
      finishedAt: '2026-01-01T00:00:10Z',
      message: 'successfully synced',
      operation: { sync: { revision } },
      syncResult: { revision, source: { repoURL: 'https://example.com/repo.git' } },
    },
  };
  await app.cluster.mergePatch(pairApplications, { name: app.name, namespace }, { status });
  await until('the hub shows it', async () => (await onHub(app))?.status?.reconciledAt === reconciledAt);
}

async function restart(program: Program, says: RegExp): Promise<void> {
  await program.stop('SIGKILL');
  const after = program.output.length;
  program.start();
  await program.says(says, { after });
}
const restartPrincipal = async () => {
  const after = pair.principal.output.length;
  await restart(pair.principal, /listen|serves/i);
  await pair.principal.says(new RegExp(`An agent is connected.*\\b${pair.name}\\b`), { after });
};

async function tellsOnce(app: Deployed): Promise<void> {
  const told = (revision: string) => sent.filter((text) => text === `${app.name} ${revision}`).length;
  await report(app, 'aaa');
  await until('it was told', async () => told('aaa') === 1);
  for (let round = 0; round < 3; round++) {
    await report(app, 'aaa');
    await restartPrincipal();
    await report(app, 'aaa');
    await restart(controller, /Controller synced|Controller is running/);
    await report(app, 'aaa');
  }
  await report(app, 'bbb');
  await until('the next release was told', async () => told('bbb') === 1);
  await report(app, 'bbb');
  await report(app, 'ccc');
  await until('the last release was told', async () => told('ccc') === 1);
  expect(sent.filter((text) => text.startsWith(`${app.name} `))).toEqual(
    ['aaa', 'bbb', 'ccc'].map((revision) => `${app.name} ${revision}`),
  );
  // It sends first, and writes down afterwards what it has sent.
  await until('it has written it down', async () =>
    (await onHub(app))?.metadata.annotations?.['notified.notifications.argoproj.io']?.includes('ccc'),
  );
  const local = await app.cluster.get(pairApplications, { name: app.name, namespace });
  expect(local?.metadata.annotations?.['notified.notifications.argoproj.io']).toBeUndefined();
}

test('one release of a managed cluster is told once, whatever restarts and however often status comes', async () => {
  const app = { name: 'shop', cluster: pair.managed.client, hubNamespace: pair.name };
  await pair.hub.client.create(pairApplications, application({ name: app.name, namespace: app.hubNamespace }));
  await until('it is on the cluster', () => app.cluster.get(pairApplications, { name: app.name, namespace }));
  await tellsOnce(app);
});

test('so is one of an autonomous cluster, whose Application on the hub is a mirror', async () => {
  const app = { name: 'till', cluster: edge.cluster.client, hubNamespace: edge.name };
  await app.cluster.create(pairApplications, application({ name: app.name, namespace }));
  await until('the hub shows it', () => onHub(app));
  await tellsOnce(app);
});
