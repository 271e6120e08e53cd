import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A registry of images on a loopback address that knows tags, and nothing behind them. */
export interface TagRegistry {
  /** `127.0.0.1:<port>`: the beginning of its images' names. */
  readonly host: string;
  /** Tags by repository; a test changes them. */
  readonly tags: Map<string, string[]>;
  stop(): void;
}

/** Starts it. It answers `/v2/` and `/v2/<repository>/tags/list`, as the registry protocol has them. */
export async function startTagRegistry(): Promise<TagRegistry> {
  const tags = new Map<string, string[]>();
  const server = createServer(({ url = '' }, response) => {
    const repository = /^\/v2\/(.+)\/tags\/list/.exec(url)?.[1];
    const found = repository === undefined ? [] : tags.get(repository);
    const isKnown = /^\/v2\/?$/.test(url) || found !== undefined;
    response.writeHead(isKnown ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(repository === undefined ? {} : { name: repository, tags: found ?? [] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    tags,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
