import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, Program } from '../testbed/index.ts';
import { getTool } from '../tools/index.ts';

/** A Redis process, which ends with this one. */
export interface Redis {
  readonly port: number;
  /** Ends it, at once unless told otherwise. Resolves with its exit code; -1 when a signal has ended it. */
  stop(signal?: 'SIGKILL' | 'SIGTERM'): Promise<number>;
}

/** How a Redis is started. */
export interface RedisOptions {
  /** Default: a free one. */
  readonly port?: number;
  /** Options of redis-server. */
  readonly args?: readonly string[];
  /** Default: the machine's own redis-server where there is one, otherwise the embedded one. */
  readonly server?: RedisServer;
  /** How many files and connections it may have open. Default: as this process. */
  readonly files?: number;
}

/** Whose executable runs: the machine's own redis-server, or the one that is built from `e2e/tools/redis`. */
export type RedisServer = 'installed' | 'embedded';

/**
 * Starts a Redis on 127.0.0.1 that keeps nothing; resolves when it takes connections.
 * @throws Error with its output when it ends before
 */
export async function startRedis(options: RedisOptions = {}): Promise<Redis> {
  const { args = [], server, files } = options;
  const { path, origin } = await getTool('redis-server', { installed: server !== 'embedded' });
  if (server === 'installed' && origin !== 'installed') {
    throw new Error('there is no redis-server on the PATH (Debian: apt-get install redis-server)');
  }
  const port = options.port ?? (await freePort());
  const folder = mkdtempSync(join(tmpdir(), 'redis-'));
  const listens = args.includes('--tls-port') ? [] : ['--port', `${port}`];
  const common = ['--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'];
  const limited = files === undefined ? [] : ['sh', '-c', `ulimit -n ${files} && exec "$@"`, 'sh'];
  const [command = '', ...words] = [...limited, path, ...listens, ...common, ...args];
  const redis = new Program(words, {}, command);
  try {
    redis.start();
    await redis.says(/Ready to accept connections/);
    return {
      port,
      async stop(signal = 'SIGKILL') {
        const code = await redis.stop(signal);
        rmSync(folder, { recursive: true, force: true });
        return code;
      },
    };
  } catch (error) {
    await redis.stop('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}
