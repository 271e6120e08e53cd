import { Server as HttpServer } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { Server, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { networkOf } from '../base/index.ts';
import { beginInTurns } from './connection-turns.ts';
import { guard } from './guard.ts';
import { IdleConnections } from './idle-connections.ts';
import { NetworkShares } from './network-shares.ts';
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
 * Limits the open connections of a server, to be called when it has its listeners. A few begin in each turn of the event loop, and of
 * a few the first bytes are read. When there are as many as there may be, the oldest connection of the network with most makes room for
 * one of a network with fewer: nobody keeps the others out. When no network has more, the connection of HTTP makes room that has had no
 * request for longest.
 */
export function limitConnections(server: Server, caps: ConnectionCaps, refusals: RefusalLog): void {
  const shares = new NetworkShares<Socket>();
  const idle = server instanceof HttpServer || server instanceof HttpsServer ? new IdleConnections(server) : undefined;

  const refuse = (socket: Socket, network: string, why: string) => {
    socket.destroy();
    refusals.add(why, network, { connections: shares.size });
  };
  const remember = (socket: Socket, network: string) => {
    shares.add(network, socket);
    idle?.add(socket);
    socket.once('close', () => shares.delete(network, socket));
  };
  const makeRoom = (newcomer: string): boolean => {
    const place = shares.placeFor(newcomer);
    if (place !== undefined) {
      shares.delete(place.network, place.connection);
      refuse(place.connection, place.network, 'there are too many, and most are from its address');
      return true;
    }
    const longest = idle?.first;
    if (longest === undefined) {
      return false;
    }
    const network = networkOf(longest.remoteAddress ?? '');
    shares.delete(network, longest);
    refuse(longest, network, 'there are too many, and it has been idle for longest');
    return true;
  };

  beginInTurns(server, 'connection');
  if (server instanceof TlsServer) {
    beginInTurns(server, 'secureConnection');
  }
  guard(server, 'connection', (socket: Socket) => {
    const network = networkOf(socket.remoteAddress ?? '');
    const own = shares.of(network);
    socket.on('error', () => undefined);
    if (own >= caps.connectionsPerNetwork) {
      refuse(socket, network, 'there are too many from its address');
      return false;
    }
    if (shares.size >= caps.connections && !makeRoom(network)) {
      refuse(socket, network, 'there are too many');
      return false;
    }
    remember(socket, network);
    return true;
  });
}
