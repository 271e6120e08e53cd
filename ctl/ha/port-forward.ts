import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { KubeClient } from '../../lib/kube/index.ts';

/** Channels of Kubernetes' protocol for one forwarded port. */
const channels = { data: 0, error: 1 } as const;
const protocol = 'v4.channel.k8s.io';
/** Each channel begins with the number of the port, in this many bytes. */
const portBytes = 2;

/** A node could not forward a port of a pod; the message is the node's. */
export class ForwardError extends Error {
  override readonly name = 'ForwardError';
}

/** A port of this machine that leads to one of a pod. */
export interface ForwardedPort {
  readonly port: number;
  /** Why a connection was not forwarded, as the API server or the node says (ForwardError); undefined when neither said anything. */
  readonly failure: Error | undefined;
  close(): void;
}

/** Forwards a free port of 127.0.0.1 to a port of a pod, one WebSocket for each connection. */
export async function forwardPort(
  client: Pick<KubeClient, 'webSocket'>,
  pod: { readonly namespace: string; readonly name: string; readonly port: number },
  signal: AbortSignal,
): Promise<ForwardedPort> {
  const path = `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}/portforward?ports=${pod.port}`;
  const sockets = new Set<Socket>();
  let failure: Error | undefined;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('close', () => sockets.delete(socket));
    socket.pause();
    client
      .webSocket(path, { protocols: [protocol], signal })
      .then((webSocket) => join(webSocket, socket))
      .catch((error: Error) => socket.destroy(error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get failure() {
      return failure;
    },
    close: () => {
      server.close();
      for (const socket of sockets) {
        socket.destroy();
      }
    },
  };
}

/** Joins the two, until one of them ends. */
function join(webSocket: Awaited<ReturnType<KubeClient['webSocket']>>, socket: Socket): void {
  const greeted = new Set<number>();
  webSocket.on('message', (message: Buffer) => {
    const [channel = channels.data] = message;
    const body = message.subarray(greeted.has(channel) ? 1 : 1 + portBytes);
    greeted.add(channel);
    if (body.length === 0) {
      return;
    }
    if (channel === channels.error) {
      socket.destroy(new ForwardError(body.toString()));
    } else if (!socket.write(body)) {
      webSocket.pause();
      socket.once('drain', () => webSocket.resume());
    }
  });
  webSocket.on('close', () => socket.end());
  socket.on('close', () => webSocket.close());
  socket.on('data', (part: Buffer) => {
    socket.pause();
    webSocket.send(Buffer.concat([Buffer.from([channels.data]), part]), () => socket.resume());
  });
  webSocket.resume();
  socket.resume();
}
