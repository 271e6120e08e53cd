import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { type ClusterAddress, openCluster, type SharedCluster, startCluster } from './cluster.ts';
import type { ClusterPool } from './cluster-pool.ts';
import { removeFolder, workFolder } from './folders.ts';

/** The environment variable that names the socket of the pool. */
const poolVariable = 'TESTBED_POOL';

/** What the pool sends to who connects: one line of JSON. */
type Answer = { address: ClusterAddress } | { error: string };

/**
 * Lends clusters to other processes of this one: each connection to the socket has one cluster, until it closes. Resolves
 * with a function that ends the service.
 */
export async function servePool(pool: ClusterPool, socketPath: string): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    const closed = once(socket, 'close').finally(() => sockets.delete(socket));
    void serveLoan(pool, socket, closed);
  });
  server.listen(socketPath);
  await once(server, 'listening');
  process.env[poolVariable] = socketPath;
  return async () => {
    delete process.env[poolVariable];
    for (const socket of sockets) {
      socket.destroy();
    }
    await new Promise((resolve) => server.close(resolve));
  };
}

async function serveLoan(pool: ClusterPool, socket: Socket, closed: Promise<unknown>): Promise<void> {
  const send = (answer: Answer) => socket.write(`${JSON.stringify(answer)}\n`);
  try {
    const { cluster, giveBack } = await pool.lend();
    const { name, server, kubeconfig } = cluster;
    const { certificate, key } = cluster.authority;
    send({ address: { name, server, kubeconfig, authority: { certificate, key } } });
    if (!socket.closed) {
      await closed;
    }
    await giveBack();
  } catch (error) {
    send({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    socket.end();
  }
}

/**
 * A cluster of the pool of this run, with the CRDs of OCM, of Argo CD and of this project; where there is no pool, a new
 * cluster without them. Others have used it before, and will again when it is stopped: its processes are not the borrower's to
 * stop.
 */
export async function borrowCluster(options: { name?: string } = {}): Promise<SharedCluster> {
  const socketPath = process.env[poolVariable];
  if (socketPath === undefined) {
    return await startCluster(options);
  }
  const { name = 'cluster' } = options;
  const socket = connect(socketPath);
  const [line] = (await once(createInterface({ input: socket }), 'line')) as [string];
  socket.unref();
  const answer = JSON.parse(line) as Answer;
  if ('error' in answer) {
    throw new Error(`the pool has no cluster: ${answer.error}`);
  }
  const dir = await workFolder(name);
  const cluster = await openCluster({ ...answer.address, name }, dir);
  return {
    ...cluster,
    async stop() {
      await cluster.client.close();
      socket.destroy();
      await removeFolder(dir);
    },
  };
}
