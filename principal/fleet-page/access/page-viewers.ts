import type { X509Certificate } from 'node:crypto';
import { commonNameOf } from '../../../lib/auth/index.ts';
import { isLocalAccount } from './accounts.ts';
import type { PolicySubject } from './argo-policy.ts';
import { type ArgoSettings, TokenRefusedError, verifySession } from './session-tokens.ts';

/** Somebody who asks for the page and has proved who they are. */
export interface PageViewer extends PolicySubject {
  /** When the proof ends; undefined for one that does not by itself. */
  readonly expires: Date | undefined;
}

/** What of a request says who sent it. */
export interface PageCaller {
  /** The address of the other end of the connection. */
  readonly address: string;
  /** The client certificate, verified against the authority of the proxies. */
  readonly certificate: X509Certificate | undefined;
  header(name: 'authorization' | 'cookie' | 'x-forwarded-user' | 'x-forwarded-groups'): string | undefined;
}

/** Which authenticating proxies may name the viewer in headers. */
export interface TrustedProxies {
  /** Whether programs of the same pod may. */
  readonly loopback: boolean;
  /** Common names and DNS names of client certificates that may. */
  readonly names: ReadonlySet<string>;
}

const longestHeader = 8_192;
const mostGroups = 500;

/**
 * Who sent a request: an authenticating proxy's `X-Forwarded-User` and `X-Forwarded-Groups` (separated by commas) if the connection
 * is from a trusted one, else Argo CD's own session token, from the cookie `argocd.token` or as a bearer token. From anybody else
 * the headers mean nothing.
 *
 * @throws TokenRefusedError when nothing proves who it is
 */
export async function identifyViewer(
  caller: PageCaller,
  options: {
    readonly proxies: TrustedProxies;
    readonly argo: ArgoSettings;
    readonly isRevoked: (id: string) => Promise<boolean>;
  },
): Promise<PageViewer> {
  const user = caller.header('x-forwarded-user') ?? '';
  if (user !== '' && isTrusted(caller, options.proxies)) {
    return proxied(user, caller.header('x-forwarded-groups') ?? '', options.argo);
  }
  const token = tokenOf(caller);
  if (token === undefined) {
    throw new TokenRefusedError('there is no token');
  }
  const { account, expires } = await verifySession(token, options.argo, options.isRevoked);
  return { name: account, groups: [], expires };
}

function isTrusted({ address, certificate }: PageCaller, { loopback, names }: TrustedProxies): boolean {
  if (certificate !== undefined && namesOf(certificate).some((name) => names.has(name))) {
    return true;
  }
  return loopback && /^(127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/.test(address);
}

function namesOf(certificate: X509Certificate): string[] {
  const alternatives = (certificate.subjectAltName ?? '').split(', ');
  const hosts = alternatives.flatMap((each) => (each.startsWith('DNS:') ? [each.slice('DNS:'.length)] : []));
  return [commonNameOf(certificate) ?? '', ...hosts].filter((name) => name !== '');
}

/** The names of Argo CD's accounts and roles mean other people in its policy: a proxy cannot give them, as users or as groups. */
function proxied(user: string, groups: string, argo: ArgoSettings): PageViewer {
  if (user.length > 256 || groups.length > longestHeader) {
    throw new TokenRefusedError("the proxy's headers are too long");
  }
  const isOfArgo = (name: string) => /^(role|proj):/.test(name) || isLocalAccount(name, argo);
  if (isOfArgo(user)) {
    throw new TokenRefusedError(`the proxy names ${user}, which is not a user of an identity provider`);
  }
  const list = groups
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '' && !isOfArgo(group));
  return { name: user, groups: list.slice(0, mostGroups), expires: undefined };
}

function tokenOf(caller: PageCaller): string | undefined {
  const authorization = caller.header('authorization') ?? '';
  if (/^bearer /i.test(authorization)) {
    return authorization.slice('bearer '.length).trim();
  }
  const cookies = (caller.header('cookie') ?? '').split(';').map((cookie) => cookie.trim());
  const found = cookies.find((cookie) => cookie.startsWith('argocd.token='));
  return found?.slice('argocd.token='.length);
}
