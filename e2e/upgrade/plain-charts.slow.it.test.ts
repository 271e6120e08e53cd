import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { secrets } from '../../lib/kube/index.ts';
import { tlsOfSecret } from '../../lib/pki/index.ts';
import { BusyController } from '../chaos/index.ts';
import { principalOf, troubles } from '../fleet/index.ts';
import { helm } from '../hub/index.ts';
import { type Node, standardImages, startNode } from '../node/index.ts';
import { giveAgentCredentials, mapAgent, namespace, prepareCluster } from '../pair/index.ts';
import { Random } from '../random/index.ts';
import { type Cluster, startCluster, waitForObject } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { ApplicationCheck } from './application-check.ts';
import {
  previousHas,
  sincePrevious,
  sourcesOf,
  type TestedVersion,
  versionImage,
  versionRepository,
} from './previous.ts';

// The charts of hubs without Open Cluster Management, upgraded from those of the version before and rolled back, on clusters
// whose nodes run what they deliver.

const agentName = 'edge-1';
const port = process.getuid?.() === 0 ? '443' : '8443';
const principalChart = 'charts/argocd-agent-principal';
const hasPrincipalChart = previousHas(`${principalChart}/Chart.yaml`);
const noPrincipalChart = `the version before has no ${principalChart}`;

/** What is needed, and what more somebody may have set. */
const settings = [
  {
    values: 'the values that are needed',
    mode: 'autonomous',
    principal: { principal: { allowedNamespaces: '*', namespaceCreate: { enable: true } } },
    agent: {},
  },
  {
    values: 'a set of values',
    mode: 'managed',
    principal: {
      principal: {
        destinationBasedMapping: true,
        allowedNamespaces: '*',
        websocket: { enable: true },
        log: { level: 'debug', format: 'json' },
        keepAlive: { minInterval: '1s' },
      },
      pki: { addresses: ['hub.example.com'] },
      podAnnotations: { note: 'x' },
      networkPolicy: { enabled: true },
    },
    agent: {
      agentMode: 'managed',
      destinationBasedMapping: true,
      createNamespace: true,
      allowedNamespaces: '*',
      enableWebSocket: true,
      enableCompression: true,
      keepAliveInterval: '5s',
      logLevel: 'debug',
      logFormat: 'json',
      rbac: { liveAccess: 'view' },
      params: { 'agent.on-application-recreate': 'clear-status' },
      service: { metrics: { port: 9181, targetPort: 8181, annotations: { note: 'x' } } },
      podAnnotations: { note: 'x' },
    },
  },
] as const;

describe.each(settings.map((one) => [one.values, one] as const))(
  `charts without OCM, with %s ${sincePrevious}`,
  { tags: 'version-before' },
  (_, { mode, principal, agent }) => {
    let folder: string;
    let hub: Cluster;
    let edge: Cluster;
    const nodes: Node[] = [];
    let sources: Record<TestedVersion, string>;
    let check: ApplicationCheck;
    const running = new AbortController();

    beforeAll(async () => {
      sources = await sourcesOf();
      folder = await mkdtemp(join(tmpdir(), 'plain-charts-'));
      [hub, edge] = await Promise.all([startCluster({ name: 'hub' }), startCluster({ name: 'edge' })]);
      for (const [cluster, place] of [
        [hub, 'hub'],
        [edge, 'cluster'],
      ] as const) {
        const images = { ...standardImages(toolPath), [versionRepository]: versionImage(place) };
        nodes.push(await startNode({ cluster, dir: join(folder, place), images }));
        await prepareCluster(cluster.client);
      }
      const { client } = edge;
      const controller = new BusyController({ agent: agentName, client, random: new Random(1) });
      controller.run(running.signal).catch((error: unknown) => {
        if (!running.signal.aborted) {
          throw error;
        }
      });
      check = new ApplicationCheck({
        mode,
        hub: hub.client,
        onHub: mode === 'managed' ? namespace : agentName,
        cluster: client,
        destination: { name: mode === 'managed' ? agentName : 'in-cluster', namespace: 'shop' },
        controller,
      });
    });
    afterAll(async () => {
      running.abort();
      await Promise.all(nodes.map((node) => node.stop()));
      await Promise.all([hub?.stop(), edge?.stop()]);
      await rm(folder, { recursive: true, force: true });
    });
    beforeEach(() =>
      onTestFailed(async () => {
        const places = [hub, edge].map(({ name, client }, index) => ({ name, client, node: nodes[index] as Node }));
        console.error(await troubles(places));
      }),
    );

    const release = {
      principal: { name: 'argocd-agent-principal', chart: principalChart, on: () => hub },
      agent: { name: 'edge', chart: 'charts/argocd-agent-agent', on: () => edge },
    };
    async function run(of: keyof typeof release, command: string, ...args: string[]): Promise<string> {
      const { name, on } = release[of];
      return await helm([command, name, ...args, '--namespace', namespace], { kubeconfig: on().kubeconfig });
    }
    async function deploy(of: keyof typeof release, version: TestedVersion, values: object): Promise<void> {
      const args = Object.entries({ ...values, 'image.tag': version }).flatMap(([key, value]) => [
        '--set-json',
        `${key}=${JSON.stringify(value)}`,
      ]);
      const chart = join(sources[version], release[of].chart);
      await run(of, 'upgrade', chart, '--install', '--wait', '--timeout', '5m', ...args);
    }
    const deployPrincipal = (version: TestedVersion) =>
      deploy('principal', version, { ...principal, 'service.port': Number(port) });
    async function deployAgent(version: TestedVersion): Promise<void> {
      const { host } = await principalOf(hub.client);
      await deploy('agent', version, { ...agent, server: host, serverPort: port });
    }

    test('principal and agent of the version before', async () => {
      await deployPrincipal(hasPrincipalChart ? 'previous' : 'current');
      const key = { namespace, name: 'argocd-agent-ca' };
      const authority = tlsOfSecret((await waitForObject(hub.client, secrets, key, Boolean))?.data);
      if (authority === undefined) {
        throw new Error('there is no authority');
      }
      await Promise.all([mapAgent(hub.client, agentName), giveAgentCredentials(edge.client, authority, agentName)]);
      await deployAgent('previous');
      await check.begin();
      await check.check('previous');
    });

    test('the principal is upgraded', async ({ skip }) => {
      skip(!hasPrincipalChart, noPrincipalChart);
      await deployPrincipal('current');
      await check.check('new-principal');
    });

    test('the agent is upgraded, and says that it is connected', async () => {
      await deployAgent('current');
      await check.check('new-agent');
      expect(await run('agent', 'test', '--timeout', '2m')).toContain('Succeeded');
    });

    test('the principal is rolled back', async ({ skip }) => {
      skip(!hasPrincipalChart, noPrincipalChart);
      await run('principal', 'rollback', '1', '--wait', '--timeout', '5m');
      await check.check('old-principal');
    });

    test('the agent is rolled back', async () => {
      await run('agent', 'rollback', '1', '--wait', '--timeout', '5m');
      await check.check('old-agent');
    });
  },
);
