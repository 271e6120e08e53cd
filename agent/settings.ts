import { readFileSync } from 'node:fs';
import type { AgentMode } from '../lib/auth/index.ts';
import { FatalError } from '../lib/ops/index.ts';
import { type RedisSettings, redisSettings } from '../lib/redis/index.ts';
import { type SpireSettings, spireSettings } from '../lib/spiffe/index.ts';
import { type LoginCredentials, parseTlsSettings, type TlsSettings } from '../lib/wire/index.ts';
import type { AgentFlags } from './flags.ts';

/** The settings that follow from the flags. */
export interface AgentSettings {
  readonly flags: AgentFlags;
  readonly mode: AgentMode;
  /** But for a JWT-SVID, which is fetched for each login. */
  readonly credentials: LoginCredentials;
  readonly redis: RedisSettings;
  /** Undefined when certificates come from Secrets or files. */
  readonly spire: SpireSettings | undefined;
  readonly tls: 'plaintext' | { readonly verify: boolean; readonly files: boolean; readonly settings: TlsSettings };
}

/**
 * Checks the flags against each other; `given` are those of the command line.
 * @throws FatalError that names the flag and what to do
 */
export function agentSettings(flags: AgentFlags, given: ReadonlySet<string> = new Set()): AgentSettings {
  if (serverAddresses(flags).length === 0) {
    throw new FatalError(
      'No remote specified: set --server-address (ARGOCD_AGENT_REMOTE_SERVER) to the host name or address of the principal',
    );
  }
  if (flags.namespace === '') {
    throw new FatalError(
      "--namespace (ARGOCD_AGENT_NAMESPACE) is empty: set it to Argo CD's namespace on this cluster",
    );
  }
  const mode = flags['agent-mode'] as AgentMode;
  if (mode === 'autonomous' && flags['destination-based-mapping']) {
    throw new FatalError(
      '--destination-based-mapping (ARGOCD_AGENT_DESTINATION_BASED_MAPPING) is only for --agent-mode managed',
    );
  }
  if (flags['create-namespace'] && !flags['destination-based-mapping']) {
    throw new FatalError('--create-namespace (ARGOCD_AGENT_CREATE_NAMESPACE) needs --destination-based-mapping');
  }
  const files = flags['tls-client-cert'] !== '' || flags['tls-client-key'] !== '';
  if (files && (flags['tls-client-cert'] === '' || flags['tls-client-key'] === '')) {
    throw new FatalError('Both --tls-client-cert and --tls-client-key have to be given');
  }
  const spire = readSpire(flags, files);
  return {
    flags,
    mode,
    spire,
    credentials: readCredentials(flags.creds || (spire === undefined ? '' : spireCreds[spire.method]), spire),
    tls: flags['insecure-plaintext']
      ? 'plaintext'
      : { verify: !flags['insecure-tls'], files, settings: tlsSettings(flags) },
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

function readSpire(flags: AgentFlags, files: boolean): SpireSettings | undefined {
  const spire = spireSettings(flags);
  if (spire !== undefined && flags['insecure-tls']) {
    throw new FatalError(
      '--spire-agent-socket cannot be used with --insecure-tls; SPIRE handles certificate verification',
    );
  }
  if (spire === undefined && flags['spire-principal-id'] !== '') {
    throw new FatalError('--spire-principal-id requires --spire-agent-socket to be set');
  }
  const other = files ? '--tls-client-cert' : '--root-ca-path';
  if (spire !== undefined && (files || flags['root-ca-path'] !== '')) {
    throw new FatalError(`--spire-agent-socket cannot be used with ${other}: remove one of them`);
  }
  return spire;
}

function tlsSettings(flags: AgentFlags): TlsSettings {
  try {
    return parseTlsSettings({
      minVersion: flags['tls-min-version'],
      maxVersion: flags['tls-max-version'],
      cipherSuites: flags['tls-ciphersuites'],
    });
  } catch (error) {
    if (!(error instanceof RangeError)) {
      throw error;
    }
    throw new FatalError(`--tls-min-version, --tls-max-version, --tls-ciphersuites: ${error.message}`, {
      cause: error,
    });
  }
}

/** What `--creds` is unless it is given, as with argocd-agent. */
const spireCreds: Readonly<Record<SpireSettings['method'], string>> = { mtls: 'mtls:', jwt: 'spiffe-jwt:' };

/** `userpass:<file>`, `mtls:<anything>`, `header:<anything>`, `spiffe-jwt:<anything>`, or nothing for no method, as the original reads `--creds`. */
function readCredentials(creds: string, spire: SpireSettings | undefined): LoginCredentials {
  if (creds === '') {
    return { method: '', credentials: {} };
  }
  const colon = creds.indexOf(':');
  const method = creds.slice(0, Math.max(colon, 0));
  if (method === 'spiffe-jwt' && spire === undefined) {
    throw new FatalError(
      '--creds (ARGOCD_AGENT_CREDS): spiffe-jwt needs --spire-agent-socket, from which JWT-SVIDs come',
    );
  }
  if (!['mtls', 'userpass', 'header', 'spiffe-jwt'].includes(method)) {
    throw new FatalError(
      '--creds (ARGOCD_AGENT_CREDS) is an invalid cred string: it must be mtls:any, userpass:<file>, header:any or spiffe-jwt:any',
    );
  }
  if (method !== 'userpass') {
    return { method, credentials: {} };
  }
  const file = creds.slice(colon + 1);
  let line: string;
  try {
    line = readFileSync(file, 'utf8').split('\n')[0] ?? '';
  } catch (error) {
    throw new FatalError(`--creds: the credential file cannot be read: ${(error as Error).message}`, { cause: error });
  }
  const split = line.indexOf(':');
  if (split < 0) {
    throw new FatalError(`--creds: the first line of ${file} is not <name>:<password>`);
  }
  return { method, credentials: { clientid: line.slice(0, split), clientsecret: line.slice(split + 1) } };
}

/** The principals of `--server-address`, in order; the last flag counts, as with argocd-agent. */
export function serverAddresses(flags: Pick<AgentFlags, 'server-address'>): string[] {
  return flags['server-address']
    .split(',')
    .map((address) => address.trim())
    .filter((address) => address !== '');
}
