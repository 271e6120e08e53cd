import { beforeAll, expect, test } from 'vitest';
import { createChain } from '../../e2e/certificate-chain/index.ts';
import { TokenAuthority } from '../auth/index.ts';
import { isIssuedBy } from '../pki/index.ts';
import { runWireClient, serveWire } from './index.ts';
import { createSigningKey } from './testing/certificates.ts';

// A root, an issuing authority below it, and certificates of that one, which are shown with it.

const silent = () => undefined;
const logger = { debug: silent, info: silent, warn: silent, error: silent };

let made: Awaited<ReturnType<typeof createChain>>;
beforeAll(async () => {
  made = await createChain();
});

async function connects(trusted: { agent: string; principal: string }): Promise<string> {
  const server = await serveWire({
    address: '127.0.0.1',
    port: 0,
    tls: { ...made.server, clientCa: trusted.principal, requireClientCertificate: true },
    version: '1',
    principalNamespace: 'argocd',
    tokens: TokenAuthority.fromPem(createSigningKey()),
    authenticate: async () => ({ agent: 'edge' }),
    subscribe: () => ({ event: silent, closed: silent }),
    logger,
  });
  const stop = new AbortController();
  const { promise, resolve } = Promise.withResolvers<string>();
  const done = runWireClient({
    server: `127.0.0.1:${server.port}`,
    tls: () => ({ ca: trusted.agent, ...made.agent }),
    credentials: () => ({ method: 'mtls', credentials: {} }),
    mode: 'managed',
    version: '1',
    agentNamespace: 'argocd',
    onConnected: () => {
      resolve('connected');
      return { event: silent, closed: silent };
    },
    onDisconnected: (error) => resolve(error.message),
    signal: stop.signal,
    backoff: { initialMs: 2_000, maxMs: 2_000 },
    logger,
  });
  const result = await promise;
  stop.abort();
  await done;
  await server.close();
  return result;
}

test.each([
  ['root', 'root'],
  ['issuing', 'root'],
  ['root', 'issuing'],
  ['issuing', 'issuing'],
] as const)(
  'an agent that trusts the %s authority and a principal that trusts the %s one',
  async (agent, principal) => {
    expect(await connects({ agent: made[agent], principal: made[principal] })).toBe('connected');
  },
);

test('a chain is of an authority above or in it, as TLS judges', async () => {
  const { root, issuing, server } = made;
  const other = await createChain();
  expect(isIssuedBy(server.cert, root)).toBe(true);
  expect(isIssuedBy(server.cert, issuing)).toBe(true);
  expect(isIssuedBy(server.leaf, issuing)).toBe(true);
  expect(isIssuedBy(server.leaf, root), 'nobody shows the one between').toBe(false);
  expect(isIssuedBy(server.cert, other.root)).toBe(false);
  expect(isIssuedBy(server.leaf + other.issuing + issuing, root), 'with others between').toBe(true);
  expect(isIssuedBy(server.leaf + server.leaf, server.leaf), 'a certificate is no authority of itself').toBe(false);
});
