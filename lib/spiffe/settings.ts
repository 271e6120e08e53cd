import { FatalError, stringFlag } from '../ops/index.ts';
import { endpointProblem } from './workload-call.ts';

/** How a program uses the SPIFFE Workload API. */
export interface SpireSettings {
  /** Its address, without `endpointProblem`. */
  readonly endpoint: string;
  /** How agents prove who they are: by a JWT-SVID when they log in, or by an X.509-SVID in TLS. */
  readonly method: 'jwt' | 'mtls';
}

/** The flags that principal and agent share: argocd-agent's, and a second name of the first one. */
export function spireFlags(prefix: 'ARGOCD_PRINCIPAL' | 'ARGOCD_AGENT') {
  const check = (value: string) => (value === '' ? undefined : endpointProblem(value));
  return {
    'spire-agent-socket': stringFlag({
      usage:
        'address of the SPIFFE Workload API (unix:///path or tcp://ip:port), from which certificates and authorities for the connection between principal and agents come, instead of Secrets',
      env: `${prefix}_SPIRE_AGENT_SOCKET`,
      check,
    }),
    'spire-auth-method': stringFlag({
      usage:
        'with --spire-agent-socket, how agents prove who they are: jwt (by a JWT-SVID at every login) or mtls (by an X.509-SVID in TLS)',
      env: `${prefix}_SPIRE_AUTH_METHOD`,
    }),
    'spiffe-endpoint-socket': stringFlag({
      usage: 'the same as --spire-agent-socket; --spire-auth-method is mtls then unless it is given',
      env: `${prefix}_SPIFFE_ENDPOINT_SOCKET`,
      check,
    }),
  };
}

/** The values of these flags, and of those that exclude them. */
interface SpireFlagValues {
  readonly 'spire-agent-socket': string;
  readonly 'spire-auth-method': string;
  readonly 'spiffe-endpoint-socket': string;
  readonly 'insecure-plaintext': boolean;
}

/**
 * Checks the flags against each other; undefined when the Workload API is not used.
 * @throws FatalError that names the flag; the texts are argocd-agent's where it has the check
 */
export function spireSettings(flags: SpireFlagValues): SpireSettings | undefined {
  const other = flags['spiffe-endpoint-socket'];
  const endpoint = flags['spire-agent-socket'] || other;
  const method = flags['spire-auth-method'] || (flags['spire-agent-socket'] === '' && other !== '' ? 'mtls' : '');
  if (other !== '' && other !== endpoint) {
    throw new FatalError('--spire-agent-socket and --spiffe-endpoint-socket name different sockets: set one of them');
  }
  if (endpoint !== '' && method === '') {
    throw new FatalError("--spire-auth-method is required when --spire-agent-socket is set (use 'jwt' or 'mtls')");
  }
  if (endpoint === '' && method !== '') {
    throw new FatalError('--spire-auth-method requires --spire-agent-socket to be set');
  }
  if (endpoint === '') {
    return undefined;
  }
  if (method !== 'jwt' && method !== 'mtls') {
    throw new FatalError(`--spire-auth-method must be 'jwt' or 'mtls', got ${JSON.stringify(method)}`);
  }
  if (flags['insecure-plaintext']) {
    throw new FatalError(
      '--spire-agent-socket cannot be used with --insecure-plaintext; SPIRE provides TLS credentials',
    );
  }
  return { endpoint, method };
}
