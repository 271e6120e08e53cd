import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

/** The subprotocol of forwarded ports that kubelets speak over WebSocket; kubectl's own is SPDY in a WebSocket. */
export const forwardProtocol = 'v4.channel.k8s.io';

const webSockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  handleProtocols: () => forwardProtocol,
});

/** Data of a pod that may wait to be read. */
const mostWaitingBytes = 256 * 1024;

/** A pod whose ports are forwarded. */
export interface ForwardedPod {
  readonly name: string;
  /** Where one of its ports is reached on this machine. */
  locate(port: number): { readonly host: string; readonly port: number };
}

/** Whether a request for forwarded ports offers the subprotocol that is spoken here. */
export function offersForwarding({ headers }: IncomingMessage): boolean {
  const offered = headers['sec-websocket-protocol']?.split(',').map((one) => one.trim()) ?? [];
  return offered.includes(forwardProtocol);
}

/**
 * Forwards ports of a pod as a kubelet does: each has a channel for data and one for errors, whose first message is the number of
 * the port. When a port has ended, so has the connection.
 */
export function serveForward(
  request: IncomingMessage,
  socket: IncomingMessage['socket'],
  head: Buffer,
  pod: ForwardedPod,
  ports: readonly number[],
): void {
  webSockets.handleUpgrade(request, socket, head, (webSocket) => {
    webSocket.pause();
    webSocket.on('error', () => undefined);
    const forwarded = ports.map((port, index) => forward(webSocket, pod, port, 2 * index));
    void Promise.all(forwarded).then(() => webSocket.close(1000));
  });
}

/** Resolves when the port has ended. */
async function forward(webSocket: WebSocket, pod: ForwardedPod, port: number, channel: number): Promise<void> {
  const send = (to: number, data: Buffer, sent?: () => void) =>
    webSocket.send(Buffer.concat([Buffer.from([to]), data]), sent);
  const number = Buffer.alloc(2);
  number.writeUInt16LE(port);
  send(channel, number);
  send(channel + 1, number);
  let socket: Socket;
  try {
    socket = await socketTo(pod, port);
  } catch (error) {
    const why = `error forwarding port ${port} to pod ${pod.name}: ${(error as Error).message}`;
    send(channel + 1, Buffer.from(why));
    webSocket.resume();
    return;
  }
  socket.on('error', () => undefined);
  webSocket.on('message', (message: Buffer) => {
    if (message[0] === channel && !socket.write(message.subarray(1))) {
      webSocket.pause();
      socket.once('drain', () => webSocket.resume());
    }
  });
  webSocket.on('close', () => socket.destroy());
  socket.on('data', (data: Buffer) => {
    send(channel, data, () => {
      if (webSocket.bufferedAmount <= mostWaitingBytes / 2) {
        socket.resume();
      }
    });
    if (webSocket.bufferedAmount > mostWaitingBytes) {
      socket.pause();
    }
  });
  webSocket.resume();
  if (!socket.closed) {
    await once(socket, 'close');
  }
}

/**
 * Connects to a port from inside a pod. What listens on all addresses has the pod's own here, and what listens on 127.0.0.1 that of
 * this machine.
 */
async function socketTo(pod: ForwardedPod, port: number): Promise<Socket> {
  const own = pod.locate(port);
  try {
    return await connected(own);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') {
      throw error;
    }
    return connected({ host: '127.0.0.1', port });
  }
}

async function connected(to: { readonly host: string; readonly port: number }): Promise<Socket> {
  const socket = connect(to);
  await once(socket, 'connect');
  return socket;
}
