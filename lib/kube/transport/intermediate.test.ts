import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createChain } from '../../../e2e/certificate-chain/index.ts';
import { configMaps, KubeClient } from '../index.ts';

test.each(['root', 'issuing'] as const)('an API server whose kubeconfig has the %s authority', async (trusted) => {
  const { server: shown, ...authorities } = await createChain();
  const server = createServer({ cert: shown.cert, key: shown.key }, (request, response) => {
    const metadata = { name: 'x', resourceVersion: '1' };
    if (request.url?.includes('watch=')) {
      response.end(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata } })}\n`);
    } else {
      response.end(JSON.stringify({ metadata }));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = await mkdtemp(join(tmpdir(), 'intermediate-'));
  const file = join(folder, 'kubeconfig');
  const { port } = server.address() as AddressInfo;
  const ca = Buffer.from(authorities[trusted]).toString('base64');
  const cluster = { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': ca };
  const config = {
    'current-context': 'c',
    clusters: [{ name: 'c', cluster }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user: { token: 'x' } }],
  };
  await writeFile(file, JSON.stringify(config));
  const client = KubeClient.fromKubeconfig(file);
  try {
    expect(await client.get(configMaps, { namespace: 'ns', name: 'x' })).toMatchObject({ metadata: { name: 'x' } });
    const events = [];
    for await (const event of await client.watch(configMaps, { resourceVersion: '1' })) {
      events.push(event.type);
    }
    expect(events).toEqual(['BOOKMARK']);
  } finally {
    await client.close();
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true });
  }
});
