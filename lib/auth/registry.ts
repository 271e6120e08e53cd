import type { AuthChoice } from './choice.ts';
import { AuthError } from './errors.ts';
import { headerMethod } from './header.ts';
import type { AgentIdentity, AuthRequest, ClientInfo } from './identity.ts';
import type { AuthMethod } from './method.ts';
import { mtlsMethod } from './mtls.ts';
import { userFile } from './user-file.ts';
import { userpassMethod } from './userpass.ts';

/**
 * Sets up the method that `--auth` asks for.
 *
 * @param options.isRevoked whether a client certificate is blocked; only `mtls` asks
 * @param options.warn takes what is wrong with a user database
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
 * Lets the one configured method decide.
 *
 * @throws AuthError `unknown-method` when the agent uses another one
 */
export async function authenticateWith(method: AuthMethod, request: AuthRequest, peer: ClientInfo): Promise<string> {
  if (request.method !== method.name) {
    const used = request.method === '' ? 'no method' : `the method "${request.method.slice(0, 32)}"`;
    throw new AuthError('unknown-method', `The agent uses ${used}; this principal takes ${method.name} only`);
  }
  return method.authenticate(request, peer);
}

/**
 * Checks that a token and the connection that it came over speak of the same agent.
 *
 * @throws AuthError `wrong-certificate` when the connection is somebody else's, and what the method throws
 */
export function checkTokenHolder(method: AuthMethod, { agent }: AgentIdentity, peer: ClientInfo): void {
  const holder = method.identify?.(peer);
  if (holder === undefined || holder === agent) {
    return;
  }
  const shown = method.name === 'mtls' ? 'client certificate' : 'connection';
  throw new AuthError('wrong-certificate', `The token is of agent ${agent}, the ${shown} of agent ${holder}`, {
    agent,
  });
}
