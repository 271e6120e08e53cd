import { AuthError } from './errors.ts';
import type { AgentIdentity, AuthRequest, ClientInfo, Login } from './identity.ts';
import type { AuthMethod } from './method.ts';

/**
 * Authenticates by the configured method.
 *
 * @throws AuthError `unknown-method` when the agent uses another one
 */
export async function authenticateWith(method: AuthMethod, request: AuthRequest, peer: ClientInfo): Promise<Login> {
  if (request.method !== method.name) {
    const used = request.method === '' ? 'no method' : `the method "${request.method.slice(0, 32)}"`;
    throw new AuthError('unknown-method', `The agent uses ${used}; this principal takes ${method.name} only`);
  }
  return method.authenticate(request, peer);
}

/**
 * Checks that a token and its connection name the same agent, and that the credentials of the agent's login are still
 * valid.
 *
 * @throws AuthError `wrong-certificate` when the connection belongs to another agent, and errors of the method
 */
export async function checkToken(method: AuthMethod, identity: AgentIdentity, peer: ClientInfo): Promise<void> {
  const { agent } = identity;
  const holder = method.identify?.(peer);
  if (holder === undefined || holder === agent) {
    return method.check?.(identity);
  }
  const shown = method.name === 'mtls' ? 'client certificate' : 'connection';
  throw new AuthError('wrong-certificate', `The token is of agent ${agent}, the ${shown} of agent ${holder}`, {
    agent,
  });
}
