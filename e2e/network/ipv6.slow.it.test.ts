import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { application, namespace, pairApplications, startPair } from '../pair/index.ts';

// Principal, agent and the agent's API server are reached at ::1 alone.

test.each(['::1', '[::1]'])('an Application comes and goes where there is only IPv6: %s', async (address) => {
  const pair = await startPair({
    idle: true,
    principal: { args: [`--listen-host=${address}`] },
  });
  onTestFinished(() => pair.stop());
  const kubeconfig = await overIpv6(pair.managed.kubeconfig);
  const agent = await pair.otherAgent({ kubeconfig, args: [`--server-address=${address}`] });
  pair.principal.start();
  agent.start();
  await agent.says(/Connected to the principal/);

  const hub = pair.hub.client;
  await hub.create(pairApplications, application({ name: 'guestbook', namespace: pair.name, spec: {} }));
  const copy = () => pair.managed.client.get(pairApplications, { name: 'guestbook', namespace });
  await until('the copy', copy, { details: () => `${pair.principal.output}\n---\n${agent.output}` });
  await hub.delete(pairApplications, { name: 'guestbook', namespace: pair.name });
  await until('the copy is gone', async () => (await copy()) === undefined);
  expect(agent.output).not.toContain('127.0.0.1:');
});

/** A copy of a kubeconfig whose server is a relay on ::1. */
async function overIpv6(kubeconfig: string): Promise<string> {
  const config = JSON.parse(await readFile(kubeconfig, 'utf8')) as {
    clusters: { cluster: { server: string; 'tls-server-name'?: string } }[];
  };
  const [named] = config.clusters;
  if (named === undefined) {
    throw new Error(`${kubeconfig} has no cluster`);
  }
  const port = await relay(Number(new URL(named.cluster.server).port));
  named.cluster.server = `https://[::1]:${port}`;
  named.cluster['tls-server-name'] = '127.0.0.1';
  const folder = await mkdtemp(join(tmpdir(), 'ipv6-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'kubeconfig');
  await writeFile(path, JSON.stringify(config));
  return path;
}

/** Forwards connections from a free port on ::1 to a port on 127.0.0.1. */
async function relay(target: number): Promise<number> {
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined).on('close', () => open.delete(socket));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '::1', resolve));
  onTestFinished(() => {
    for (const socket of open) {
      socket.destroy();
    }
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
