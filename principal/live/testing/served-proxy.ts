import { TokenAuthority } from '../../../lib/auth/index.ts';
import { OpenConnections } from '../../../lib/credentials/index.ts';
import { createLogger } from '../../../lib/ops/index.ts';
import { createAuthority, generateJwtKey, issueCertificate, type KeyCertificate } from '../../../lib/pki/index.ts';
import { CallerNames } from '../resources/callers.ts';
import { type ResourceProxy, type ResourceProxyOptions, serveResourceProxy } from '../resources/resource-proxy.ts';
import { TerminalSessions } from '../terminals/terminal-sessions.ts';

/** A resource proxy on a loopback port, and what a caller for the agent `edge` needs. */
export interface ServedProxy {
  readonly proxy: ResourceProxy;
  readonly authority: KeyCertificate;
  /** The caller's certificate. */
  readonly client: KeyCertificate;
}

/** Most bytes of an answer in tests. */
export const mostAnswerBytes = 1024 * 1024;

/** Serves a resource proxy whose agents the test plays. */
export async function serveProxy(
  agents: Pick<ResourceProxyOptions, 'exchange' | 'bodies' | 'send' | 'isConnected' | 'connected' | 'audit'> &
    Partial<Pick<ResourceProxyOptions, 'logger'>>,
): Promise<ServedProxy> {
  const logger = createLogger({ level: 'fatal' });
  const authority = await createAuthority({ commonName: 'ca' });
  const server = await issueCertificate({ authority, commonName: 'proxy', hosts: ['127.0.0.1'], usages: ['server'] });
  const client = await issueCertificate({ authority, commonName: 'edge', usages: ['client'] });
  const proxy = await serveResourceProxy({
    host: '127.0.0.1',
    port: 0,
    tls: { cert: server.certificate, key: server.key, clientCa: authority.certificate },
    callers: new CallerNames(TokenAuthority.fromPem(await generateJwtKey(2048))),
    connections: new OpenConnections({ logger }),
    terminals: new TerminalSessions(),
    terminalIdleMs: 0,
    mostAnswerBytes,
    metrics: { request: () => undefined, failed: () => undefined },
    logger,
    ...agents,
  });
  return { proxy, authority, client };
}
