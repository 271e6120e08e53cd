import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy that can turn into a black hole. */
export interface TcpProxy {
  port: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /**
   * Keeps the connections that are open now, but forwards nothing on them any more, in either direction: both ends see
   * the same as with a crashed middlebox or a lost route. Later connections work.
   */
  blackHole(): void;
  /** `true` closes all connections and refuses new ones until called with `false`. */
  refuse(isRefusing: boolean): void;
  close(): Promise<void>;
}

/** Starts a proxy in front of 127.0.0.1:`target`, on a free port unless told otherwise. */
export async function startTcpProxy(target: number, port = 0): Promise<TcpProxy> {
  const pairs = new Set<[Socket, Socket]>();
  let accepted = 0;
  let isRefusing = false;
  const server = createServer((client) => {
    accepted++;
    if (isRefusing) {
      client.destroy();
      return;
    }
    const upstream = connect(target, '127.0.0.1');
    const pair: [Socket, Socket] = [client, upstream];
    pairs.add(pair);
    client.pipe(upstream);
    upstream.pipe(client);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of pair) {
      socket.on('error', end).on('close', end);
    }
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const cut = () => {
    for (const pair of pairs) {
      for (const socket of pair) {
        socket.destroy();
      }
    }
  };
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    blackHole() {
      for (const [client, upstream] of pairs) {
        client.unpipe(upstream).pause();
        upstream.unpipe(client).pause();
      }
    },
    refuse(isNow) {
      isRefusing = isNow;
      if (isNow) {
        cut();
      }
    },
    async close() {
      cut();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
