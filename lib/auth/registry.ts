import type { AuthChoice } from './choice.ts';
import { AuthError } from './errors.ts';
import { headerMethod } from './header.ts';
import type { AgentIdentity, AuthRequest, ClientInfo, Login } from './identity.ts';
import type { AuthMethod } from './method.ts';
import { mtlsMethod } from './mtls.ts';
import { userFile } from './user-file.ts';
import { userpassMethod } from './userpass.ts';

/**
 * Creates the method that `--auth` selects.
 *
 * @param options.isRevoked whether a client certificate is blocked; only `mtls` asks
 * @param options.warn receives problems of a user database
 * @throws AuthError `configuration` when the user database cannot be read
 */
export async function createAuthMethod(
  choice: AuthChoice,
  options: { isRevoked?(fingerprint: string): boolean; warn?(message: string): void } = {},
): Promise<AuthMethod> {
  const { isRevoked } = options;
  switch (choice.method) {
    case 'mtls':
      return mtlsMethod({ ...choice, ...(isRevoked === undefined ? undefined : { isRevoked }) });
    case 'header':
      return headerMethod(choice);
    case 'userpass': {
      const users = await userFile(choice.file, options.warn);
      return userpassMethod(users);
    }
  }
}

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
