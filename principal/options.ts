import { type AuthChoice, AuthError, checkPairing, parseAuth } from '../lib/auth/index.ts';
import { FatalError } from '../lib/ops/index.ts';
import { type PrincipalFlags, principalFlags } from './flags.ts';

/** What the flags mean together. */
export interface PrincipalOptions {
  readonly flags: PrincipalFlags;
  readonly auth: AuthChoice;
  readonly tls: 'plaintext' | { readonly files: boolean; readonly requireClientCertificate: boolean };
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
  const plaintext = flags['insecure-plaintext'];
  const auth = authOf(flags.auth, plaintext);
  const files = flags['tls-cert'] !== '' || flags['tls-key'] !== '';
  if (files && (flags['tls-cert'] === '' || flags['tls-key'] === '')) {
    throw new FatalError('Both --tls-cert and --tls-key have to be given');
  }
  // An empty lowest version means the default, as in the original.
  const [low, high] = [flags['tls-min-version'] || principalFlags['tls-min-version'].default, flags['tls-max-version']];
  if (high !== '' && low > high) {
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

function authOf(text: string, plaintext: boolean): AuthChoice {
  try {
    const choice = parseAuth(text);
    checkPairing(choice, { plaintext });
    return choice;
  } catch (error) {
    if (!(error instanceof AuthError)) throw error;
    const example = 'for example mtls:subject:CN=([^,]+)';
    throw new FatalError(`--auth (ARGOCD_PRINCIPAL_AUTH): ${error.message}; ${example}`, { cause: error });
  }
}
