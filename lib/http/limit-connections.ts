import type { Server, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { networkOf } from '../base/index.ts';
import { beginInTurns } from './connection-turns.ts';
import { guard } from './guard.ts';
import type { RefusalLog } from './refusal-log.ts';

/** How many connections a server may have open. */
export interface ConnectionCaps {
  /** In all. */
  readonly connections: number;
  /**
   * From one address (of IPv6 from one /64). Generous: behind a load balancer or a gateway that keeps no addresses, all clients have
   * the same.
   */
  readonly connectionsPerNetwork: number;
}

/**
 * Limits the open connections of a server, to be called when it has its listeners. A few begin in each turn of the event loop, and a
 * few handshakes or first requests are read. When there are as many as there may be, the oldest
 * connection of the network with most makes room for one of a network with fewer: nobody keeps the others out.
 */
export function limitConnections(server: Server, caps: ConnectionCaps, refusals: RefusalLog): void {
  const networks = new Map<string, Set<Socket>>();
  let open = 0;

  const refuse = (socket: Socket, network: string, why: string) => {
    socket.destroy();
    refusals.add(why, network, { connections: open });
  };
  const remember = (socket: Socket, network: string) => {
    const own = networks.get(network) ?? new Set();
    networks.set(network, own.add(socket));
    open++;
    socket.once('close', () => forget(socket, network));
  };
  const forget = (socket: Socket, network: string) => {
    const own = networks.get(network);
    if (own?.delete(socket)) {
      open--;
      if (own.size === 0) {
        networks.delete(network);
      }
    }
  };
  /** Ends the oldest connection of the network that has most, if that is more than a newcomer's will have. */
  const makeRoom = (newcomers: number): boolean => {
    const [network, sockets] = [...networks].reduce((most, one) => (one[1].size > most[1].size ? one : most));
    const [oldest] = sockets;
    if (oldest === undefined || sockets.size <= newcomers + 1) {
      return false;
    }
    forget(oldest, network);
    refuse(oldest, network, 'there are too many, and most are from its address');
    return true;
  };

  beginInTurns(server, 'connection');
  if (server instanceof TlsServer) {
    beginInTurns(server, 'secureConnection');
  }
  guard(server, 'connection', (socket: Socket) => {
    const network = networkOf(socket.remoteAddress ?? '');
    const own = networks.get(network)?.size ?? 0;
    socket.on('error', () => undefined);
    if (own >= caps.connectionsPerNetwork) {
      refuse(socket, network, 'there are too many from its address');
      return false;
    }
    if (open >= caps.connections && !makeRoom(own)) {
      refuse(socket, network, 'there are too many');
      return false;
    }
    remember(socket, network);
    return true;
  });
}
