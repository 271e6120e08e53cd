import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { until } from '../../base/testing.ts';
import { KubeClient } from '../client.ts';
import type { ClientOptions } from '../client-options.ts';
import { ConnectionError } from '../errors.ts';
import { type ScriptedServer, startScriptedServer } from '../testing/scripted-server.ts';

// What keeps a WebSocket from being opened; that it opens is tested on a real API server.

let server: ScriptedServer;
const clients: KubeClient[] = [];

beforeAll(async () => {
  server = await startScriptedServer();
});
afterAll(() => server.close());
beforeEach(() => {
  server.requests.length = 0;
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
});

const path = '/api/v1/namespaces/ns/pods/a/exec?command=sh';
const protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];

function open(options: ClientOptions & { signal?: AbortSignal } = {}) {
  const client = KubeClient.fromKubeconfig(server.kubeconfig, undefined, options);
  clients.push(client);
  return client.webSocket(path, { protocols, signal: options.signal });
}

test("a refusal carries the server's message", async () => {
  server.answer((_, response) => {
    const status = { kind: 'Status', code: 403, reason: 'Forbidden', message: 'pods "a" is forbidden: no create' };
    response.writeHead(403, { 'content-type': 'application/json' }).end(JSON.stringify(status));
  });
  await expect(open()).rejects.toMatchObject({
    name: 'ApiError',
    status: 403,
    reason: 'Forbidden',
    serverMessage: 'pods "a" is forbidden: no create',
    message: expect.not.stringContaining('command'),
  });
  expect(server.requests).toHaveLength(1);
  expect(server.requests[0]).toMatchObject({
    method: 'GET',
    url: path,
    headers: { upgrade: 'websocket', 'sec-websocket-protocol': protocols.join(','), 'user-agent': 'argocd-fleet' },
  });
});

test('credentials that are refused are read again, once', async () => {
  server.answer((_, response) => void response.writeHead(401).end());
  await expect(open()).rejects.toMatchObject({ status: 401 });
  expect(server.requests).toHaveLength(2);
});

test('the handshake has a time limit', async () => {
  server.answer(() => undefined);
  await expect(open({ requestTimeoutMs: 50 })).rejects.toThrow(ConnectionError);
});

test('an aborted caller does not wait any longer', async () => {
  server.answer(() => undefined);
  const left = new AbortController();
  const opening = open({ signal: left.signal });
  const outcome = expect(opening).rejects.toThrow('turned away');
  await until(() => server.requests.length === 1);
  left.abort(new Error('turned away'));
  await outcome;
  await expect(open({ signal: left.signal })).rejects.toThrow('turned away');
});

test('a server that is not there', async () => {
  const client = KubeClient.fromKubeconfig(await server.kubeconfigVia(1));
  clients.push(client);
  await expect(client.webSocket(path, { protocols })).rejects.toMatchObject({ name: 'ConnectionError', sent: false });
});
