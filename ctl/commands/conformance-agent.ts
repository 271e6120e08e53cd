import { checkPairing, createAuthMethod, parseAuth } from '../../lib/auth/index.ts';
import { splitHostPort } from '../../lib/base/index.ts';
import { boolFlag, durationFlag, ExitError, FatalError, listFlag, oneOf, stringFlag } from '../../lib/ops/index.ts';
import type { ServerTls } from '../../lib/wire/index.ts';
import { agentCases } from '../conformance/agent-cases.ts';
import { runCases } from '../conformance/case.ts';
import { AgentHost } from '../conformance/host.ts';
import { conformanceReport } from '../conformance/report.ts';
import { ctlCommand } from '../ctl-command.ts';
import { flaggedFile } from './conformance-file.ts';

/** `conformance agent`: whether an agent speaks the protocol. */
export const agentConformance = ctlCommand({
  name: 'conformance agent',
  summary: 'Check whether an agent speaks the protocol of docs/protocol.md',
  description:
    'Listens as a principal that has nothing but cases, and reports what the first agent that comes says to them.\nStart the agent when this listens. A managed agent gets Applications, AppProjects and repositories named conformance-…, which are deleted again. Nothing else on its cluster is changed.',
  ignoresConfig: true,
  flags: {
    listen: stringFlag({ usage: 'address and port', default: '127.0.0.1:8443' }),
    cert: stringFlag({ usage: "file with the principal's certificate (PEM)" }),
    key: stringFlag({ usage: "file with the certificate's key (PEM)" }),
    'client-ca': stringFlag({ usage: "file with the authorities that agents' certificates come from (PEM)" }),
    plaintext: boolFlag({ usage: 'listen without TLS' }),
    websocket: boolFlag({ usage: 'take WebSocket, too' }),
    auth: stringFlag({
      usage: 'how agents log in, as --auth of argocd-agent principal',
      default: 'mtls:subject:CN=([^,]+)',
    }),
    wait: durationFlag({ usage: 'maximum time until an agent comes', default: 300_000 }),
    timeout: durationFlag({ usage: 'maximum time for one answer', default: 30_000 }),
    skip: listFlag({ usage: 'leave out cases with one of these texts in their names' }),
    output: stringFlag({ usage: 'format: text or json', default: 'text', short: 'o', check: oneOf('text', 'json') }),
  },
  run: async (flags, ctl) => {
    const { host: address, port } = splitHostPort(flags.listen) ?? {};
    if (address === undefined || port === undefined) {
      throw new FatalError(`--listen: "${flags.listen}" is no address and port`);
    }
    const choice = parseAuth(flags.auth);
    checkPairing(choice, { plaintext: flags.plaintext });
    const host = await AgentHost.start({
      address,
      port,
      tls: flags.plaintext ? 'plaintext' : await tlsOf(flags),
      method: await createAuthMethod(choice),
      version: '0.0.0-conformance',
      webSocket: flags.websocket,
      timeoutMs: flags.timeout,
      silenceMs: Math.min(2_000, flags.timeout),
    });
    try {
      ctl.say(`listens on ${address}:${host.port}; start the agent now`);
      const { agent } = await host.session({ timeoutMs: flags.wait, signal: ctl.signal }).catch((cause: unknown) => {
        throw new FatalError('No agent came, or none could log in', { cause });
      });
      const results = await runCases(agentCases, host, {
        signal: ctl.signal,
        skip: flags.skip,
        done: ({ outcome, name }) => ctl.say(`${outcome}: ${name}`),
      });
      ctl.print(conformanceReport(results, `${agent.agent} (${agent.mode})`, flags.output));
      if (results.some(({ outcome }) => outcome === 'failed')) {
        throw new ExitError(1);
      }
    } finally {
      await host.close();
    }
  },
});

async function tlsOf(flags: {
  readonly cert: string;
  readonly key: string;
  readonly 'client-ca': string;
}): Promise<ServerTls> {
  const { cert, key, 'client-ca': clientCa } = flags;
  if (cert === '' || key === '') {
    throw new FatalError('--cert and --key are needed, or --plaintext');
  }
  return {
    cert: await flaggedFile(cert, '--cert'),
    key: await flaggedFile(key, '--key'),
    ...(clientCa === ''
      ? {}
      : { clientCa: await flaggedFile(clientCa, '--client-ca'), requireClientCertificate: true }),
  };
}
