import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { delayed } from './delayed.ts';

/** A bad network between two TCP peers on this machine: a proxy that delays, cuts and swallows what passes. */
export interface Network {
  /** The port to connect to instead of the target's. */
  readonly port: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /** From now on everything takes this long on its way, in each direction. */
  delay(ms: number): void;
  /** From now on a connection that nothing passes through for this long is cut, as many proxies do. */
  closeIdle(ms: number): void;
  /** Cuts the connections that are open now. New ones work. */
  cut(): void;
  /** No connection is let in until `heal`; those that are open are cut. */
  refuse(): void;
  /**
   * Until `heal` nothing arrives any more, in either direction, and neither end is told: what a lost route looks like.
   * Connections that are open now never work again, as after the loss of a NAT table.
   */
  blackHole(): void;
  /** Ends what `refuse` and `blackHole` began, for new connections. */
  heal(): void;
  close(): Promise<void>;
}

/** Where the far end listens. */
export interface FarEnd {
  readonly host: string;
  readonly port: number;
}

/**
 * Starts a network in front of a far end, which is asked for at each connection and refuses it while it is undefined.
 * @param address where it listens; loopback unless told otherwise
 */
export async function startNetwork(target: () => FarEnd | undefined, address = '127.0.0.1'): Promise<Network> {
  const sockets = new Set<Socket>();
  const links = new Set<{ isLost: boolean }>();
  let state: 'up' | 'refusing' | 'lost' = 'up';
  let delayMs = 0;
  let idleMs = 0;
  let accepted = 0;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).setNoDelay();
    socket.setTimeout(idleMs).on('timeout', () => socket.destroy());
  };
  const server = createServer((client) => {
    accepted++;
    keep(client);
    client.on('error', () => client.destroy());
    const farEnd = target();
    if (state === 'refusing' || farEnd === undefined) {
      client.destroy();
      return;
    }
    if (state === 'lost') {
      return; // it connects, as far as the near end of a tunnel is concerned, and hears nothing
    }
    const upstream = connect(farEnd.port, farEnd.host);
    keep(upstream);
    const link = { isLost: false };
    links.add(link);
    const end = () => {
      links.delete(link);
      // Neither end of a lost connection hears of the other's death.
      if (link.isLost) {
        return;
      }
      client.destroy();
      upstream.destroy();
    };
    const way = { delayMs: () => delayMs, isLost: () => link.isLost };
    pipeline(client, delayed(way), upstream).then(end, end);
    pipeline(upstream, delayed(way), client).then(end, end);
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const cut = () => {
    for (const socket of sockets) {
      socket.destroy();
    }
  };
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    delay(ms) {
      delayMs = ms;
    },
    closeIdle(ms) {
      idleMs = ms;
      for (const socket of sockets) {
        socket.setTimeout(ms);
      }
    },
    cut,
    refuse() {
      state = 'refusing';
      cut();
    },
    blackHole() {
      state = 'lost';
      for (const link of links) {
        link.isLost = true;
      }
    },
    heal() {
      state = 'up';
    },
    async close() {
      state = 'refusing';
      cut();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
