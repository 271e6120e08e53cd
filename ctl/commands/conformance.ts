import { boolFlag, durationFlag, ExitError, FatalError, listFlag, oneOf, stringFlag } from '../../lib/ops/index.ts';
import type { ClientTls } from '../../lib/wire/index.ts';
import { runCases } from '../conformance/case.ts';
import { loginCases } from '../conformance/login-cases.ts';
import { Player } from '../conformance/player.ts';
import { conformanceReport } from '../conformance/report.ts';
import { streamCases } from '../conformance/stream-cases.ts';
import { ctlCommand } from '../ctl-command.ts';
import { flaggedFile } from './conformance-file.ts';

/** `conformance principal`: whether a principal speaks the protocol. */
export const principalConformance = ctlCommand({
  name: 'conformance principal',
  summary: 'Check whether a principal speaks the protocol of docs/protocol.md',
  description:
    'Plays an agent at any principal of argocd-agent, case by case, and reports what was seen.\nUse an agent name of its own: a connected agent of this name would lose its connection. Nothing on the hub is changed.',
  arguments: ['HOST:PORT'],
  ignoresConfig: true,
  flags: {
    'client-cert': stringFlag({ usage: "file with the agent's certificate (PEM)" }),
    'client-key': stringFlag({ usage: "file with the certificate's key (PEM)" }),
    ca: stringFlag({
      usage: "file with the authorities that the principal's certificate comes from; default: the system's",
    }),
    plaintext: boolFlag({ usage: 'connect without TLS' }),
    creds: stringFlag({ usage: 'how to log in: mtls:any, header:any or userpass:FILE', default: 'mtls:any' }),
    mode: stringFlag({ usage: 'mode of the agent', default: 'managed', check: oneOf('managed', 'autonomous') }),
    'agent-version': stringFlag({
      usage:
        "version that the agent names; argocd-agent's principal takes only its own; default: what the principal says",
    }),
    timeout: durationFlag({ usage: 'maximum time for one answer', default: 10_000 }),
    skip: listFlag({ usage: 'leave out cases with one of these texts in their names' }),
    output: stringFlag({ usage: 'format: text or json', default: 'text', short: 'o', check: oneOf('text', 'json') }),
  },
  run: async (flags, ctl) => {
    const [target = ''] = ctl.args;
    const { hostname, port } = addressOf(target);
    const { method, credentials } = await credentialsOf(flags.creds);
    const player = await Player.meet({
      host: hostname,
      port,
      tls: flags.plaintext ? 'plaintext' : await tlsOf(flags),
      mode: flags.mode,
      method,
      credentials,
      version: flags['agent-version'],
      timeoutMs: flags.timeout,
      signal: ctl.signal,
    }).catch((cause: unknown) => {
      throw new FatalError(`The principal at ${target} cannot be asked for its version`, { cause });
    });
    try {
      const results = await runCases([...streamCases, ...loginCases], player, {
        signal: ctl.signal,
        skip: flags.skip,
        done: ({ outcome, name }) => ctl.say(`${outcome}: ${name}`),
      });
      ctl.print(conformanceReport(results, target, flags.output));
      if (results.some(({ outcome }) => outcome === 'failed')) {
        throw new ExitError(1);
      }
    } finally {
      player.close();
    }
  },
});

/** @throws FatalError for what is no `host:port` */
function addressOf(target: string): { readonly hostname: string; readonly port: number } {
  const [, host = '', port = ''] = /^(.+):(\d+)$/.exec(target) ?? [];
  if (host === '' || Number(port) < 1 || Number(port) > 65_535) {
    throw new FatalError(`"${target}" is not the address of a principal: host:port`);
  }
  return { hostname: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
}

async function tlsOf(flags: { readonly 'client-cert': string; readonly 'client-key': string; readonly ca: string }) {
  const { 'client-cert': cert, 'client-key': key, ca } = flags;
  if ((cert === '') !== (key === '')) {
    throw new FatalError('--client-cert and --client-key go together');
  }
  const tls: ClientTls = {
    ...(cert === ''
      ? {}
      : { cert: await flaggedFile(cert, '--client-cert'), key: await flaggedFile(key, '--client-key') }),
    ...(ca === '' ? {} : { ca: await flaggedFile(ca, '--ca') }),
  };
  return tls;
}

/** As the agent reads its `--creds`. */
async function credentialsOf(
  creds: string,
): Promise<{ readonly method: string; readonly credentials: Readonly<Record<string, string>> }> {
  const [, method = '', file = ''] = /^(mtls|header|userpass):(.+)$/.exec(creds) ?? [];
  if (method === '') {
    throw new FatalError('--creds must be mtls:any, header:any or userpass:FILE');
  }
  if (method !== 'userpass') {
    return { method, credentials: {} };
  }
  const [line = ''] = (await flaggedFile(file, '--creds')).split(/\r?\n/, 1);
  const colon = line.indexOf(':');
  if (colon < 1) {
    throw new FatalError(`the first line of ${file} is not <name>:<password>`);
  }
  return { method, credentials: { clientid: line.slice(0, colon), clientsecret: line.slice(colon + 1) } };
}
