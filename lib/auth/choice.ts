import { AuthError } from './errors.ts';
import { headerKind } from './header.ts';
import { type AuthKind, type AuthSurroundings, splitOnce } from './kind.ts';
import type { AuthMethod } from './method.ts';
import { mtlsKind } from './mtls.ts';
import { spiffeJwtKind } from './spiffe-jwt.ts';
import { userpassKind } from './user-file.ts';

/** The kinds of authentication, by the name of their method. A new one is a file and a line here. */
const kinds = {
  mtls: mtlsKind,
  userpass: userpassKind,
  header: headerKind,
  'spiffe-jwt': spiffeJwtKind,
};

/** The principal's authentication method: its flag `--auth`, parsed. */
export type AuthChoice = ReturnType<(typeof kinds)[keyof typeof kinds]['parse']>;

/**
 * Parses `--auth`: `mtls:subject:<re>`, `mtls:uri:<re>`, `mtls:<re>`, `userpass:<file>`, `header:<name>:<re>` or
 * `spiffe-jwt:<re>`.
 *
 * @throws AuthError `configuration`; its message begins like argocd-agent's
 */
export function parseAuth(text: string): AuthChoice {
  const [method, config] = splitOnce(text);
  if (config === undefined) {
    const forms = Object.values(kinds).map((kind) => kind.forms);
    throw new AuthError('configuration', `invalid auth string "${text}": expected ${forms.join(', ')}`);
  }
  if (!Object.hasOwn(kinds, method)) {
    throw new AuthError('configuration', `unknown auth method: ${method}`);
  }
  return kinds[method as keyof typeof kinds].parse(config);
}

/**
 * Checks that an authentication method fits how the principal listens: certificates need TLS, and a header can be trusted
 * only behind a proxy that terminates TLS.
 *
 * @throws AuthError `configuration`
 */
export function checkPairing(choice: AuthChoice, listener: { readonly plaintext: boolean }): void {
  const misfit = kindOf(choice).misfit?.(listener);
  if (misfit !== undefined) {
    throw new AuthError('configuration', misfit);
  }
}

/**
 * Creates the method that `--auth` selects.
 *
 * @throws AuthError `configuration` when something around it is missing, such as a user database that can be read
 */
export async function createAuthMethod(choice: AuthChoice, surroundings: AuthSurroundings = {}): Promise<AuthMethod> {
  return kindOf(choice).create(choice, surroundings);
}

/** The kind of a choice takes that choice, which the table alone cannot tell the compiler. */
function kindOf(choice: AuthChoice): AuthKind<AuthChoice> {
  return kinds[choice.method] as AuthKind<AuthChoice>;
}
