import { createServer } from 'node:net';

/**
 * A port below 32768 that was free a moment ago: the programs' metrics and health ports must be that low, and ports that
 * the system gives out are higher.
 */
export async function freeLowPort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    const free = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once('error', () => resolve(false));
      server.listen(port, '0.0.0.0', () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
