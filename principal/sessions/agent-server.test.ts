import { expect, test } from 'vitest';
import { Attacker } from '../../e2e/hostile/index.ts';
import { until } from '../../lib/base/testing.ts';
import { createLogger, parseKeyPair, Reloadable, type TlsKeyPair } from '../../lib/ops/index.ts';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { serveAgents } from './agent-server.ts';

const logger = createLogger({ level: 'fatal' });

test('an agent is looked at again when it opens its stream: it may have lost its cluster Secret since it logged in', async () => {
  const authority = await createAuthority({ commonName: 'authority' });
  const issued = await issueCertificate({ authority, commonName: 'x', hosts: ['127.0.0.1'], usages: ['server'] });
  const server = new Reloadable<TlsKeyPair>({ origin: 'Secret argocd/x', parse: parseKeyPair, logger });
  server.offer({ 'tls.crt': issued.certificate, 'tls.key': issued.key });
  const heard: string[] = [];
  const served = await serveAgents({
    settings: {
      tls: { from: 'secrets', requireClientCertificate: false, settings: {} },
      flags: {
        namespace: 'argocd',
        'listen-host': '127.0.0.1',
        'listen-port': 0,
        'grpc-max-message-size': 1_000_000,
        'keepalive-min-interval': 0,
      },
    },
    credentials: { server, clientTrust: undefined, signingKey: undefined },
    method: { name: 'any' },
    modes: { agents: { has: () => false, clustersOf: () => [] }, recorded: () => undefined },
    refused: () => undefined,
    called: () => undefined,
    loggedIn: (agent: string) => heard.push(`looked at ${agent}`),
    sessions: {
      subscribe: ({ agent }: { agent: string }) => {
        heard.push(`stream of ${agent}`);
        return { event: () => undefined, closed: () => undefined };
      },
    },
    logger,
    signal: new AbortController().signal,
  } as never);
  try {
    const { accessToken } = await served.tokens.issue({ agent: 'edge', mode: 'managed' });
    const attacker = await Attacker.connect({ port: served.server.port, ca: authority.certificate });
    attacker.subscribe(accessToken);
    await until(() => expect(heard).toContain('stream of edge'));
    expect(heard).toContain('looked at edge');
    attacker.close();
  } finally {
    await served.server.close();
  }
});
