import { FatalError } from '../lib/ops/index.ts';
import type { PrincipalFlags } from './flags.ts';

/** What the flags mean together. */
export interface PrincipalOptions {
  readonly flags: PrincipalFlags;
  readonly auth: AuthChoice;
  readonly tls: 'plaintext' | { readonly files: boolean; readonly requireClientCertificate: boolean };
}

/** The one way in which agents authenticate. */
export interface AuthChoice {
  readonly method: 'mtls';
  /** What of the certificate names the agent. */
  readonly source: 'subject' | 'uri';
  /** Its first group is the agent's name. */
  readonly pattern: RegExp;
}

/**
 * Checks the flags against each other.
 * @throws FatalError that names the flag and what to do
 */
export function principalOptions(flags: PrincipalFlags): PrincipalOptions {
  if (flags.namespace === '') {
    throw new FatalError(
      "namespace is required for principal identity: set --namespace (ARGOCD_PRINCIPAL_NAMESPACE) to Argo CD's namespace",
    );
  }
  const auth = parseAuth(flags.auth);
  const plaintext = flags['insecure-plaintext'];
  if (plaintext && auth.method === 'mtls') {
    throw new FatalError('--auth mtls needs TLS: it cannot be combined with --insecure-plaintext');
  }
  const files = flags['tls-cert'] !== '' || flags['tls-key'] !== '';
  if (files && (flags['tls-cert'] === '' || flags['tls-key'] === '')) {
    throw new FatalError('Both --tls-cert and --tls-key have to be given');
  }
  const [low, high] = [flags['tls-min-version'], flags['tls-max-version']];
  if (low !== '' && high !== '' && low > high) {
    throw new FatalError(`--tls-max-version ${high} is lower than --tls-min-version ${low}`);
  }
  return {
    flags,
    auth,
    tls: plaintext
      ? 'plaintext'
      : { files, requireClientCertificate: flags['require-client-certs'] || auth.method === 'mtls' },
  };
}

function parseAuth(text: string): AuthChoice {
  const help = 'set --auth (ARGOCD_PRINCIPAL_AUTH) to mtls:subject:<regular expression>, e.g. mtls:subject:CN=([^,]+)';
  const colon = text.indexOf(':');
  if (colon < 0) throw new FatalError(`invalid auth string ${JSON.stringify(text)}: ${help}`);
  const method = text.slice(0, colon);
  if (method === 'userpass' || method === 'header') {
    throw new FatalError(`--auth: the method ${method} is not supported by this version: ${help}`);
  }
  if (method !== 'mtls') throw new FatalError(`--auth: unknown auth method: ${method}: ${help}`);
  const config = text.slice(colon + 1);
  const prefix = /^(subject|uri):/.exec(config);
  const source = prefix?.[1] === 'uri' ? 'uri' : 'subject';
  const expression = prefix === null ? config : config.slice(prefix[0].length);
  let pattern: RegExp;
  try {
    pattern = new RegExp(expression);
  } catch (error) {
    throw new FatalError(`--auth: ${(error as Error).message}`, { cause: error });
  }
  const groups = new RegExp(`${expression}|`).exec('')?.length ?? 1;
  if (groups < 2) {
    throw new FatalError(
      `--auth: the regular expression ${JSON.stringify(expression)} has no group that captures the agent's name`,
    );
  }
  return { method: 'mtls', source, pattern };
}
