import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ConnectionPool } from './connection.ts';
import type { Credentials } from './credentials.ts';

// The limit is less than the time in which a connection has to be made.
test('a request is given up at once while a server accepts its connection and is silent', async () => {
  const server = createServer(() => undefined);
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const credentials = {
    server: `https://127.0.0.1:${port}`,
    proxyUrl: undefined,
    current: async () => ({ tls: {}, headers: {}, tlsFingerprint: '' }),
  } as unknown as Credentials;
  const pool = new ConnectionPool(credentials, 4);
  const stop = new AbortController();
  const answer = pool.send({ method: 'GET', path: '/version', timeoutMs: 60_000, signal: stop.signal });
  const failure = expect(answer).rejects.toThrow('it is over');
  await once(server, 'connection');
  stop.abort(new Error('it is over'));
  await failure;
  await pool.close();
}, 5_000);
