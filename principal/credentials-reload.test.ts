import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { until } from '../lib/base/testing.ts';
import { OpenConnections } from '../lib/credentials/index.ts';
import { createLogger, parseKeyPair, parseTrust, Reloadable, type TlsKeyPair } from '../lib/ops/index.ts';
import { createAuthority, generateJwtKey, issueCertificate } from '../lib/pki/index.ts';
import type { ServerTls } from '../lib/wire/index.ts';
import type { SigningKey } from './credentials.ts';
import { proxyRedis } from './live/redis/start.ts';
import { proxyResources } from './live/resources/start.ts';
import { serveAgents } from './sessions/agent-server.ts';

// Key material that changes while a port is being opened: after it was read, before its changes are followed.

const logger = createLogger({ level: 'fatal' });

async function pairs() {
  const authority = await createAuthority({ commonName: 'authority' });
  const issue = async () => {
    const usages = ['server'] as const;
    const { certificate, key } = await issueCertificate({ authority, commonName: 'x', hosts: ['127.0.0.1'], usages });
    return { 'tls.crt': certificate, 'tls.key': key };
  };
  const [before, after] = await Promise.all([issue(), issue()]);
  return { authority, before, after };
}

function live<T>(
  parse: ConstructorParameters<typeof Reloadable<T>>[0]['parse'],
  fields: Record<string, string>,
): Reloadable<T> {
  const value = new Reloadable<T>({ origin: 'Secret argocd/x', parse, logger });
  value.offer(fields);
  return value;
}

/** A proxy that takes a while to listen, and its key material. */
function slowProxy(meanwhile: () => void) {
  const served: (string | undefined)[] = [];
  const start = async ({ tls }: { tls: ServerTls | undefined }) => {
    served.push(tls?.cert);
    meanwhile();
    return { port: 1, setTls: (next: ServerTls) => served.push(next.cert), close: async () => undefined };
  };
  return { served, start };
}

/** Starts a proxy whose certificate changes while its port is being taken; resolves when it serves with the newest one. */
async function servesWith(
  newest: string,
  served: readonly unknown[],
  run: (common: { logger: typeof logger; signal: AbortSignal }) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const running = run({ logger, signal: stop.signal });
  await until(() => expect(served.at(-1)).toBe(newest));
  stop.abort();
  await running;
}

test('the resource proxy serves with the newest certificate', async () => {
  const { authority, before, after } = await pairs();
  const resourceProxy = live<TlsKeyPair>(parseKeyPair, before);
  const resourceProxyTrust = live<string>((fields) => parseTrust(fields), { 'ca.crt': authority.certificate });
  const { served, start } = slowProxy(() => resourceProxy.offer(after));
  const settings = { flags: { 'resource-proxy-listen': ':0', 'terminal-idle-timeout': 0 }, tls: { settings: {} } };
  const credentials = { resourceProxy, resourceProxyTrust };
  await servesWith(after['tls.crt'], served, (common) =>
    proxyResources({ settings, credentials, caches: {}, live: { serveResources: start }, ...common } as never),
  );
});

test('the Redis proxy serves with the newest certificate', async () => {
  const { before, after } = await pairs();
  const redisProxy = live<TlsKeyPair>(parseKeyPair, before);
  const { served, start } = slowProxy(() => redisProxy.offer(after));
  const settings = {
    flags: { 'redis-proxy-listen': ':0', namespace: 'argocd' },
    tls: { settings: {} },
    redis: { address: '127.0.0.1:1', tls: 'off' },
  };
  await servesWith(after['tls.crt'], served, (common) =>
    proxyRedis({ settings, credentials: { redisProxy }, caches: {}, live: { serveRedis: start }, ...common } as never),
  );
});

test('agents are served with the newest certificate, and tokens are signed with the newest key', async () => {
  const { authority, before, after } = await pairs();
  const [first, second] = await Promise.all([generateJwtKey(2048), generateJwtKey(2048)]);
  const server = live<TlsKeyPair>(parseKeyPair, before);
  const signingKey = live<SigningKey>((fields) => ({ key: fields['jwt.key'] ?? '', former: [] }), { 'jwt.key': first });
  const served = await serveAgents({
    settings: {
      tls: { from: 'secrets', requireClientCertificate: false, settings: {} },
      flags: {
        namespace: 'argocd',
        // Read when everything else has been.
        get 'listen-host'() {
          server.offer(after);
          signingKey.offer({ 'jwt.key': second });
          return '127.0.0.1';
        },
        'listen-port': 0,
        'grpc-max-message-size': 1_000_000,
        'keepalive-min-interval': 0,
      },
    },
    credentials: { server, clientTrust: undefined, signingKey },
    method: { name: 'any' },
    connections: new OpenConnections({ logger }),
    logger,
    signal: new AbortController().signal,
  } as never);
  try {
    const socket = connect({ host: '127.0.0.1', port: served.server.port, ca: authority.certificate });
    await once(socket, 'secureConnect');
    expect(socket.getPeerX509Certificate()?.toString().trim()).toBe(leafOf(after['tls.crt']));
    socket.destroy();
    expect(served.tokens.rotate(second)).toBe(false);
  } finally {
    await served.server.close();
  }
});

/** The first certificate of a chain, as Node.js prints it. */
const leafOf = (pem: string) => new X509Certificate(pem).toString().trim();
