import { readFile, writeFile } from 'node:fs/promises';
import { request as ask, createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { parse } from 'yaml';
import type { SharedCluster } from '../../e2e/testbed/index.ts';

/** What {@link startRelay} does to the API server's answers. */
export interface RelayFault {
  /** How far its clock is ahead. Default 0. */
  readonly aheadMs?: number;
  /** How much longer an answer takes. Default: no longer. */
  readonly delayMs?: (path: string) => number;
}

/** A way to an API server that has a fault. */
export interface Relay {
  /** A kubeconfig with the contexts `hub` and `east`; one of them leads through the relay. */
  readonly kubeconfig: string;
  close(): Promise<void>;
}

/** Starts a relay in front of an API server; whoever asks it is an administrator. */
export async function startRelay(cluster: SharedCluster, side: 'hub' | 'east', fault: RelayFault): Promise<Relay> {
  const { ca, server: target } = cluster;
  const [admin, own] = await Promise.all([
    cluster.issueCertificate({ commonName: 'relay', organizations: ['system:masters'] }),
    cluster.issueCertificate({ commonName: 'relay', hosts: ['127.0.0.1'] }),
  ]);
  const server = createServer({ cert: own.certificate, key: own.key }, (request, response) => {
    const { method, url = '/', headers } = request;
    const onward = ask(new URL(url, target), { ca, cert: admin.certificate, key: admin.key, method, headers });
    onward.on('error', () => response.destroy());
    onward.on('response', (answer) => {
      const timer = setTimeout(() => {
        const date = new Date(Date.now() + (fault.aheadMs ?? 0)).toUTCString();
        response.writeHead(answer.statusCode ?? 502, { ...answer.headers, date });
        pipeline(answer, response, () => undefined);
      }, fault.delayMs?.(url) ?? 0);
      response.on('close', () => clearTimeout(timer));
    });
    pipeline(request, onward, () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const config = parse(await readFile(cluster.kubeconfig, 'utf8'));
  const [direct] = config.contexts;
  const relayed = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clusterOf = { server: relayed, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  config.clusters.push({ name: 'relay', cluster: clusterOf });
  config.users.push({ name: 'nobody', user: {} });
  config.contexts = ['hub', 'east'].map((name) => ({
    name,
    context: name === side ? { cluster: 'relay', user: 'nobody' } : direct.context,
  }));
  config['current-context'] = 'hub';
  const kubeconfig = join(cluster.dir, `relay-${side}`);
  await writeFile(kubeconfig, JSON.stringify(config));
  return {
    kubeconfig,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
