import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { noLog } from '../../e2e/peer/index.ts';
import { createPeerIdentity } from './peer-identity.ts';
import { servePeers } from './peer-server.ts';

test('connections that are from no replica are refused, and the log says so once', async () => {
  const lines: string[] = [];
  let refused = 0;
  const peers = await servePeers({
    host: '127.0.0.1',
    port: 0,
    identity: await createPeerIdentity(),
    metrics: { refused: () => refused++, received: () => undefined } as never,
    logger: { ...noLog, warn: (_fields: object, line: string) => lines.push(line) } as never,
  });
  for (let count = 0; count < 20; count++) {
    const stranger = connect({ port: peers.port, host: '127.0.0.1', rejectUnauthorized: false });
    stranger.on('error', () => undefined);
    stranger.resume();
    await once(stranger, 'close');
  }
  await peers.close();
  expect([refused, lines]).toEqual([
    20,
    ['The server for other replicas ends a connection: it is from no live replica'],
  ]);
});
