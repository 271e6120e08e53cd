import { mkdir, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { dirname, join } from 'node:path';
import type { Cluster } from './cluster.ts';
import { userFolder } from './folders.ts';

/** Where `testbed up`, `status` and `down` meet: a Unix socket that the running testbed listens on. */
export const controlSocket = (name: string) => join(userFolder(), 'control', `${name}.sock`);

/** What a running testbed tells of itself. */
export interface TestbedStatus {
  pid: number;
  dir: string;
  clusters: { name: string; server: string; kubeconfig: string; processes: Record<string, number | 'down'> }[];
}

/** What this process tells of clusters that it runs. */
export function testbedStatus(dir: string, clusters: readonly Cluster[]): TestbedStatus {
  const described = clusters.map(({ name, server, kubeconfig, etcd, apiServer, controllerManager }) => ({
    name,
    server,
    kubeconfig,
    processes: Object.fromEntries(
      [etcd, apiServer, controllerManager].map((component) => [
        component.name,
        component.running ? component.pid : ('down' as const),
      ]),
    ),
  }));
  return { pid: process.pid, dir, clusters: described };
}

/** A testbed of that name runs already. */
export class AlreadyRunningError extends Error {
  override readonly name = 'AlreadyRunningError';
}

/**
 * Answers the other commands until closed.
 * @throws AlreadyRunningError when another process answers for that name.
 */
export async function listenForControl(
  name: string,
  handlers: { status: () => TestbedStatus | undefined; stop: () => void },
): Promise<{ close(): Promise<void> }> {
  const path = controlSocket(name);
  if ((await callTestbed(name, 'GET')) !== undefined) {
    throw new AlreadyRunningError(`testbed ${name} runs already`);
  }
  await mkdir(dirname(path), { recursive: true });
  // Left behind by one that was killed.
  await rm(path, { force: true });
  const server = createServer((incoming, response) => {
    if (incoming.method === 'DELETE') {
      // The answer ends when this process does: that tells the caller that all is over.
      response.flushHeaders();
      handlers.stop();
    } else {
      response.end(JSON.stringify(handlers.status() ?? null));
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  return {
    async close() {
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
    },
  };
}

/**
 * Asks a running testbed for its status (GET; null while it starts) or to end (DELETE; resolves when it has). Resolves
 * with undefined when none of that name runs.
 */
export function callTestbed(name: string, method: 'GET' | 'DELETE'): Promise<TestbedStatus | null | undefined> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath: controlSocket(name), method, path: '/' }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('close', () => {
        const text = Buffer.concat(parts).toString();
        resolve(text ? (JSON.parse(text) as TestbedStatus | null) : null);
      });
      // An answer that breaks off is how a testbed that was asked to end says that it has.
      response.on('error', () => resolve(null));
    });
    call.once('error', (error: NodeJS.ErrnoException) => {
      // Reset: it ended while it was asked.
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET') {
        resolve(undefined);
      } else {
        reject(error);
      }
    });
    call.end();
  });
}
