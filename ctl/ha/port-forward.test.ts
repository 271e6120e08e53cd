import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { ApiError } from '../../lib/kube/index.ts';
import { type ForwardedPort, forwardPort } from './port-forward.ts';

// The node's end is played by a WebSocket server of this process. e2e/hub/without-ocm.slow.it.test.ts has a real API server in between.

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) {
    end();
  }
});

const pod = { namespace: 'argocd', name: 'principal-0', port: 8405 };
const { signal } = new AbortController();
/** The number of the port, little-endian, as each channel begins with. */
const number = Buffer.from([0xd5, 0x20]);
const message = (channel: number, ...parts: Buffer[]) => Buffer.concat([Buffer.from([channel]), ...parts]);

/** A forwarded port whose node does with each connection what `serve` says. */
async function forwarded(serve: (node: WebSocket) => void): Promise<ForwardedPort & { readonly asked: string[] }> {
  const asked: string[] = [];
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  server.on('connection', serve);
  const webSocket = async (path: string, options: { protocols: readonly string[] }) => {
    asked.push(`${path} ${options.protocols}`);
    const { port } = server.address() as AddressInfo;
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, [...options.protocols]);
    // Later would be too late: messages follow at once.
    socket.once('open', () => socket.pause());
    await once(socket, 'open');
    return socket;
  };
  const port = await forwardPort({ webSocket }, pod, signal);
  ends.push(() => {
    port.close();
    for (const client of server.clients) {
      client.terminate();
    }
    server.close();
  });
  return Object.assign(port, { asked });
}

async function connected({ port }: ForwardedPort) {
  const socket = connect({ host: '127.0.0.1', port });
  await once(socket, 'connect');
  return socket;
}

test('what both ends send arrives, and the end of the connection', async () => {
  const sent = randomBytes(3_000_000);
  const port = await forwarded((node) => {
    node.send(message(0, number));
    node.send(message(1, number));
    let received = 0;
    node.on('message', (data: Buffer) => {
      expect(data[0]).toBe(0);
      node.send(data);
      received += data.length - 1;
      if (received === sent.length) {
        node.close();
      }
    });
  });
  const socket = await connected(port);
  const echo = buffer(socket);
  socket.write(sent);
  expect((await echo).equals(sent)).toBe(true);
  socket.end();
  expect(port.asked).toEqual(['/api/v1/namespaces/argocd/pods/principal-0/portforward?ports=8405 v4.channel.k8s.io']);
  expect(port.failure).toBeUndefined();
});

test('data may come in the message with the number of the port', async () => {
  const port = await forwarded((node) => {
    node.send(message(0, number, Buffer.from('hel')));
    node.send(message(0, Buffer.from('lo')));
    node.close();
  });
  expect((await buffer(await connected(port))).toString()).toBe('hello');
});

test('what a node says of a port that it cannot forward is kept', async () => {
  const port = await forwarded((node) => {
    node.send(message(0, number));
    node.send(message(1, number));
    node.send(message(1, Buffer.from('connection refused')));
    node.close();
  });
  const socket = await connected(port);
  socket.resume();
  await once(socket, 'close');
  expect(port.failure).toMatchObject({ name: 'ForwardError', message: 'connection refused' });
});

test('so is what the API server says', async () => {
  const refusal = new ApiError({ status: 403, message: 'pods "principal-0" is forbidden' });
  const port = await forwardPort({ webSocket: () => Promise.reject(refusal) }, pod, signal);
  ends.push(() => port.close());
  const socket = await connected(port);
  socket.resume();
  await once(socket, 'close');
  expect(port.failure).toBe(refusal);
});
