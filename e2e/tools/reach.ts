import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFolder } from './cache.ts';
import { ToolError } from './error.ts';
import { httpGet, networkReason } from './http.ts';

const patienceMs = 4000;
/** So long what one process found out holds for the others. */
const memoryMs = 10 * 60_000;

/** What decides whether a server answers, as far as people set it. */
const variables = [
  ...['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'https_proxy', 'http_proxy', 'no_proxy'],
  ...['NODE_EXTRA_CA_CERTS', 'NODE_OPTIONS', 'NODE_TLS_REJECT_UNAUTHORIZED', 'NODE_USE_SYSTEM_CA', 'SSL_CERT_FILE'],
];

/**
 * Asks the servers of files, all at once and once for each, whether they answer within four seconds. For ten minutes, other
 * processes with the same settings of proxy and certificates take the word of the first one for those that do not.
 * @returns the hosts that do not, each with the reason
 * @throws ToolError for a proxy that is no URL
 */
export async function unreachableHosts(urls: readonly string[], signal?: AbortSignal): Promise<Map<string, string>> {
  const byHost = new Map(urls.map((url) => [new URL(url).host, url]));
  const asked = [...byHost].map(async ([host, url]) => [host, await whyUnreachable(url, signal)] as const);
  return new Map((await Promise.all(asked)).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

async function whyUnreachable(url: string, signal: AbortSignal | undefined): Promise<string | undefined> {
  const settings = [new URL(url).origin, ...variables.map((name) => process.env[name])];
  const key = createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, 12);
  const memory = join(cacheFolder(), `unreachable-${key}`);
  const remembered = await recall(memory);
  if (remembered !== undefined) {
    return remembered;
  }
  const late = AbortSignal.timeout(patienceMs);
  try {
    const either = signal ? AbortSignal.any([signal, late]) : late;
    await httpGet(url, { headers: { range: 'bytes=0-0' }, signal: either }, async () => undefined);
    return undefined;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ToolError) {
      throw error;
    }
    const reason = late.aborted ? `no answer within ${patienceMs / 1000} s` : networkReason(error);
    await mkdir(cacheFolder(), { recursive: true });
    await writeFile(memory, reason);
    return reason;
  }
}

async function recall(path: string): Promise<string | undefined> {
  try {
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs < memoryMs) {
      // Empty, it is of a process that was killed meanwhile.
      return (await readFile(path, 'utf8')) || undefined;
    }
    await rm(path, { force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw error;
    }
  }
  return undefined;
}
