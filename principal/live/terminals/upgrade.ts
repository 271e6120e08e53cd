import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { chosenProtocol } from '../../../lib/live/index.ts';

const webSockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  /** A message of a terminal's viewer; pasted text comes in pieces. */
  maxPayload: 1024 * 1024,
  handleProtocols: (offered) => chosenProtocol(offered) ?? false,
  ...{
    /** Time limit, in ms, for the viewer to read the sent data and to close. */
    closeTimeout: 10_000,
  },
});

/** Whether a request wants to become a WebSocket. */
export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/**
 * The fault of a request for a terminal, as in the original: HTTP status and message. Undefined for one that can become a
 * WebSocket; then the rest of the handshake is checked by {@link upgrade}.
 */
export function handshakeFault(request: IncomingMessage): [code: number, message: string] | undefined {
  const { headers, method } = request;
  const isUpgrade = headers.connection?.split(',').some((option) => option.trim().toLowerCase() === 'upgrade');
  if (!isUpgrade) {
    return [400, 'terminals are served over WebSocket: the request has no `Connection: Upgrade`'];
  }
  if (!isWebSocket(request)) {
    return [426, 'terminals are served over WebSocket alone: `Upgrade: websocket` is missing'];
  }
  if (method !== 'GET') {
    return [405, `a WebSocket begins with GET, not ${method}`];
  }
  const offered = headers['sec-websocket-protocol'];
  // Without one the oldest is spoken.
  if (offered !== undefined && chosenProtocol(offered.split(',').map((name) => name.trim())) === undefined) {
    return [400, 'none of the subprotocols in Sec-WebSocket-Protocol is spoken here: v5.channel.k8s.io is'];
  }
  return undefined;
}

/** Turns a request into a WebSocket. One whose handshake is wrong is answered with 400, and its connection ends. */
export function upgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  opened: (webSocket: WebSocket) => void,
): void {
  webSockets.handleUpgrade(request, socket, head, opened);
}
