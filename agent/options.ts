import { readFileSync } from 'node:fs';
import { FatalError } from '../lib/ops/index.ts';
import { type RedisSettings, redisSettings } from '../lib/redis/index.ts';
import type { AgentFlags } from './flags.ts';

/** How the agent proves who it is: the method's name on the wire, and what goes with it. */
export interface Credentials {
  readonly method: string;
  readonly credentials: Readonly<Record<string, string>>;
}

/** What the flags mean together. */
export interface AgentOptions {
  readonly flags: AgentFlags;
  readonly mode: 'managed' | 'autonomous';
  readonly credentials: Credentials;
  readonly redis: RedisSettings;
  readonly tls: 'plaintext' | { readonly verify: boolean; readonly files: boolean };
}

/**
 * Checks the flags against each other; `given` are those of the command line.
 * @throws FatalError that names the flag and what to do
 */
export function agentOptions(flags: AgentFlags, given: ReadonlySet<string> = new Set()): AgentOptions {
  if (flags['server-address'] === '') {
    throw new FatalError(
      'No remote specified: set --server-address (ARGOCD_AGENT_REMOTE_SERVER) to the host name or address of the principal',
    );
  }
  if (flags.namespace === '') {
    throw new FatalError(
      "--namespace (ARGOCD_AGENT_NAMESPACE) is empty: set it to Argo CD's namespace on this cluster",
    );
  }
  if (flags['agent-mode'] !== 'managed') {
    throw new FatalError(
      `--agent-mode ${flags['agent-mode']} (ARGOCD_AGENT_MODE) is not supported by this version: set it to managed`,
    );
  }
  if (flags['create-namespace'] && !flags['destination-based-mapping']) {
    throw new FatalError('--create-namespace (ARGOCD_AGENT_CREATE_NAMESPACE) needs --destination-based-mapping');
  }
  const files = flags['tls-client-cert'] !== '' || flags['tls-client-key'] !== '';
  if (files && (flags['tls-client-cert'] === '' || flags['tls-client-key'] === '')) {
    throw new FatalError('Both --tls-client-cert and --tls-client-key have to be given');
  }
  const [low, high] = [flags['tls-min-version'], flags['tls-max-version']];
  if (low !== '' && high !== '' && low > high) {
    throw new FatalError(`--tls-max-version ${high} is lower than --tls-min-version ${low}`);
  }
  return {
    flags,
    mode: 'managed',
    credentials: readCredentials(flags.creds),
    tls: flags['insecure-plaintext'] ? 'plaintext' : { verify: !flags['insecure-tls'], files },
    redis: redisSettings({
      address: { flag: 'redis-addr', value: flags['redis-addr'] },
      username: flags['redis-username'],
      password: flags['redis-password'],
      credentialsFolder: flags['redis-creds-dir-path'],
      tls: {
        enabled: flags['redis-tls-enabled'],
        insecure: { flag: 'redis-tls-insecure', value: flags['redis-tls-insecure'] },
        caPath: { flag: 'redis-tls-ca-path', value: flags['redis-tls-ca-path'] },
        caSecretName: {
          flag: 'redis-tls-ca-secret-name',
          value: flags['redis-tls-ca-secret-name'],
          isGiven: given.has('redis-tls-ca-secret-name'),
        },
      },
    }),
  };
}

/** `userpass:<file>`, `mtls:<anything>`, `header:<anything>`, or nothing for no method, as the original reads `--creds`. */
function readCredentials(creds: string): Credentials {
  if (creds === '') return { method: '', credentials: {} };
  const colon = creds.indexOf(':');
  const method = creds.slice(0, Math.max(colon, 0));
  if (!['mtls', 'userpass', 'header'].includes(method)) {
    throw new FatalError(
      '--creds (ARGOCD_AGENT_CREDS) is an invalid cred string: it must be mtls:any, userpass:<file> or header:any',
    );
  }
  if (method !== 'userpass') return { method, credentials: {} };
  const file = creds.slice(colon + 1);
  let line: string;
  try {
    line = readFileSync(file, 'utf8').split('\n')[0] ?? '';
  } catch (error) {
    throw new FatalError(`--creds: the credential file cannot be read: ${(error as Error).message}`, { cause: error });
  }
  const split = line.indexOf(':');
  if (split < 0) throw new FatalError(`--creds: the first line of ${file} is not <name>:<password>`);
  return { method, credentials: { clientid: line.slice(0, split), clientsecret: line.slice(split + 1) } };
}
