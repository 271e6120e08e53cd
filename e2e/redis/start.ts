import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../testbed/index.ts';
import { buildTool } from '../tools/index.ts';

/** A Redis process. */
export interface Redis {
  readonly port: number;
  /** False for the stand-in where no redis-server is installed: it has no TLS and notifies of nothing. */
  readonly isReal: boolean;
  stop(): Promise<void>;
}

/** Starts a Redis on 127.0.0.1 that keeps nothing; resolves when it takes connections. */
export async function startRedis(options: { port?: number; args?: readonly string[] } = {}): Promise<Redis> {
  const { path, origin } = await buildTool('redis-server');
  const { args = [] } = options;
  const port = options.port ?? (await freePort());
  const folder = mkdtempSync(join(tmpdir(), 'redis-'));
  const listens = args.includes('--tls-port') ? [] : ['--port', `${port}`];
  const common = ['--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'];
  const child = spawn(path, [...listens, ...common, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  const ready = Promise.withResolvers<void>();
  let output = '';
  const take = (chunk: Buffer) => {
    output += chunk.toString();
    if (output.includes('Ready to accept connections')) {
      ready.resolve();
    }
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  child.once('exit', () => ready.reject(new Error(`Redis has ended:\n${output}`)));
  child.once('error', (error) => ready.reject(error));
  await ready.promise;
  return {
    port,
    isReal: origin === 'installed',
    async stop() {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
