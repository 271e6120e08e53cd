import type { X509Certificate } from 'node:crypto';
import { AuthError, type TokenAuthority } from '../../../lib/auth/index.ts';
import { isDnsLabel } from '../../../lib/base/index.ts';
import type { SocketCertificate } from '../../../lib/credentials/index.ts';

/** A refused caller of the resource proxy. */
export class CallerRefusedError extends Error {
  override readonly name = 'CallerRefusedError';
  /** HTTP status: 401 for an unknown caller, 400 for an invalid name of an agent, 403 for a request about another agent. */
  readonly status: 400 | 401 | 403;

  constructor(status: 400 | 401 | 403, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Determines the agent of a caller of the resource proxy, by argocd-agent's rules: a bearer token is for the agent that it
 * names, and an invalid token is refused; without a token the common name of the client certificate counts.
 */
export class CallerNames {
  readonly #tokens: Pick<TokenAuthority, 'verifyResourceProxy'>;

  constructor(tokens: Pick<TokenAuthority, 'verifyResourceProxy'>) {
    this.#tokens = tokens;
  }

  /**
   * @param caller.url the requested URL. Argo CD's URLs name the agent in the query, and its client omits the query; a query that is sent
   *   must name the caller's own agent
   * @throws CallerRefusedError
   */
  async agentOf(caller: {
    readonly authorization: string | undefined;
    readonly certified: Pick<SocketCertificate, 'certificate' | 'problem'> | undefined;
    readonly url?: string | undefined;
  }): Promise<string> {
    const { authorization = '', certified, url = '' } = caller;
    if (certified === undefined || certified.problem() !== undefined) {
      throw new CallerRefusedError(401, 'authentication failed');
    }
    const token = bearerOf(authorization);
    const name = token !== undefined ? await this.#ofToken(token) : commonNameOf(certified.certificate);
    if (name === '') {
      throw new CallerRefusedError(401, 'authentication failed');
    }
    if (!isDnsLabel(name)) {
      throw new CallerRefusedError(400, 'invalid agent name');
    }
    const other = namedIn(url).find((named) => named !== name);
    if (other !== undefined) {
      const named = other.slice(0, 63);
      throw new CallerRefusedError(403, `the credentials are those of agent ${name}, the query names agent ${named}`);
    }
    return name;
  }

  async #ofToken(token: string): Promise<string> {
    try {
      return await this.#tokens.verifyResourceProxy(token);
    } catch (error) {
      if (!(error instanceof AuthError)) {
        throw error;
      }
      throw new CallerRefusedError(401, 'authentication failed');
    }
  }
}

/** The token of a header `Authorization`; undefined when it holds none. */
export function bearerOf(authorization = ''): string | undefined {
  return authorization.startsWith('Bearer ') ? authorization.slice('Bearer '.length) : undefined;
}

/** The agents that the query of a URL names; mostly none. */
function namedIn(url: string): string[] {
  const question = url.indexOf('?');
  return question < 0 ? [] : new URLSearchParams(url.slice(question)).getAll('agentName');
}

/** The common name of a certificate's subject, empty without one; of several none counts. */
function commonNameOf(certificate: X509Certificate): string {
  // Node gives nothing for an empty subject, whatever its types say.
  const subject: string | undefined = certificate.subject;
  const names = (subject ?? '').split('\n').filter((part) => part.startsWith('CN='));
  return names.length === 1 ? (names[0]?.slice('CN='.length) ?? '') : '';
}
