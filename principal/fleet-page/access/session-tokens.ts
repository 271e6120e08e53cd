import { jwtVerify } from 'jose';
import { argoAccount } from './accounts.ts';

/** A token that is not accepted. The message is for the log, not for the caller. */
export class TokenRefusedError extends Error {
  override readonly name = 'TokenRefusedError';
}

/** Argo CD's settings that decide about a token: the data of `argocd-cm` and of Secret `argocd-secret`. */
export interface ArgoSettings {
  readonly settings: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
}

/** What a token says. */
export interface ArgoSession {
  readonly account: string;
  /** When the token ends; undefined for one that does not. */
  readonly expires: Date | undefined;
}

const longestToken = 8_192;
/** HMAC accepts any key, an empty one as well, with which everybody could sign. Argo CD's own has 32 bytes. */
const shortestKey = 16;

/**
 * Verifies a session token or an API token that Argo CD's server issued, by its rules (`util/session/sessionmanager.go`): signed
 * with `server.secretkey` by HS256, from issuer `argocd`, in its time, of an account that exists, is enabled and may have such
 * a token, with an identifier that is not revoked, and not from before the last change of the password. Tokens of project
 * roles, which are for programs, are refused.
 *
 * @param isRevoked rejects when that cannot be found out
 * @throws TokenRefusedError
 */
export async function verifySession(
  token: string,
  { settings, secrets }: ArgoSettings,
  isRevoked: (id: string) => Promise<boolean>,
): Promise<ArgoSession> {
  const key = new TextEncoder().encode(secrets['server.secretkey'] ?? '');
  if (key.length < shortestKey) {
    throw new TokenRefusedError('Secret argocd-secret has no usable server.secretkey');
  }
  if (token.length > longestToken) {
    throw new TokenRefusedError('the token is too long');
  }
  const { payload } = await jwtVerify(token, key, {
    algorithms: ['HS256'],
    issuer: 'argocd',
    requiredClaims: ['iat', 'sub', 'jti'],
  }).catch((error: Error) => {
    throw new TokenRefusedError(error.message, { cause: error });
  });
  // Whoever has the key may sign anything: the types are not those of the library's declaration.
  const { sub, jti: id, iat = 0, exp } = payload as { sub: unknown; jti: unknown; iat?: number; exp?: number };
  const [account = '', use, ...more] = typeof sub === 'string' ? sub.split(':') : [];
  if (more.length > 0 || typeof id !== 'string' || id === '') {
    throw new TokenRefusedError('it is not the token of an account');
  }
  const capability = use === 'login' ? 'login' : 'apiKey';
  const known = argoAccount(account, settings, secrets);
  if (known?.isEnabled !== true || !known.capabilities.has(capability)) {
    throw new TokenRefusedError(`account ${account} does not exist, is disabled, or may not have such a token`);
  }
  if (capability === 'apiKey' && !known.tokens.has(id)) {
    throw new TokenRefusedError(`account ${account} has no such token any more`);
  }
  if (known.passwordChanged !== undefined && iat * 1000 < known.passwordChanged.getTime()) {
    throw new TokenRefusedError(`the password of account ${account} has changed since`);
  }
  const revoked = await isRevoked(id).catch((error: Error) => {
    throw new TokenRefusedError(`Redis does not say whether the token is revoked: ${error.message}`, { cause: error });
  });
  if (revoked) {
    throw new TokenRefusedError('the token is revoked');
  }
  return { account, expires: exp === undefined ? undefined : new Date(exp * 1000) };
}
