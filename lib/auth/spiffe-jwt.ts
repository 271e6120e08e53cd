import { isDnsLabel } from '../base/index.ts';
import { AuthError } from './errors.ts';
import type { AuthKind, SvidJudge } from './kind.ts';
import type { AuthMethod } from './method.ts';
import { compilePattern, type GoExpression } from './pattern.ts';

/** For whom agents have their JWT-SVIDs made, as argocd-agent's do. */
export const svidAudience = 'argocd-agent-principal';

/**
 * How long a login counts whose JWT-SVID ends sooner, in seconds. JWT-SVIDs live for minutes, so that a copied one is soon worth
 * nothing; an hour is how long SPIRE's X.509-SVIDs keep a connection open.
 */
const shortestLoginSeconds = 3_600;

/** Until when a login with a JWT-SVID counts, in seconds of Unix time. */
export function loginEnd(svidExpires: number, nowSeconds: number): number {
  return Math.max(svidExpires, nowSeconds + shortestLoginSeconds);
}

/** `spiffe-jwt:<re>`. */
export const spiffeJwtKind: AuthKind<{
  readonly method: 'spiffe-jwt';
  /** Its first group, in a SPIFFE ID, is the agent's name. */
  readonly pattern: GoExpression;
}> = {
  forms: 'spiffe-jwt:<re>',
  parse: (config) => ({ method: 'spiffe-jwt', pattern: compilePattern(config) }),
  misfit: ({ plaintext }) =>
    plaintext ? 'spiffe-jwt authentication cannot be used with --insecure-plaintext: tokens could be read' : undefined,
  create({ pattern }, { svids }) {
    if (svids === undefined) {
      throw new AuthError('configuration', 'spiffe-jwt needs the SPIFFE Workload API: set --spire-agent-socket');
    }
    return spiffeJwtMethod({ pattern, svids });
  },
};

/**
 * Takes the agent's name from a JWT-SVID (credential `token`): the first group of an expression over its SPIFFE ID. A bundle
 * counts for the IDs of its own trust domain alone, and of these for those that the expression admits.
 *
 * A login ends with its JWT-SVID, or an hour after it if that is later. It ends before when the key that has signed the JWT-SVID
 * is not in the bundle any more.
 */
export function spiffeJwtMethod(options: {
  readonly pattern: GoExpression;
  readonly svids: SvidJudge;
  readonly now?: () => number;
}): AuthMethod {
  const { pattern, svids, now = Date.now } = options;
  const seconds = () => Math.floor(now() / 1_000);
  return {
    name: 'spiffe-jwt',
    async authenticate({ credentials: { token } }) {
      if (token === undefined || token === '') {
        throw new AuthError('no-credentials', 'The request has no JWT-SVID (token)');
      }
      const { id, expires, key } = await svids.judge(token, svidAudience).catch((cause: Error) => {
        throw new AuthError('bad-credentials', `The JWT-SVID was refused: ${cause.message}`, { cause });
      });
      const name = pattern.firstGroup(id);
      if (!name) {
        throw new AuthError('bad-credentials', `The SPIFFE ID ${id} does not match ${pattern}, so it names no agent`);
      }
      if (!isDnsLabel(name)) {
        const about = `The SPIFFE ID ${id} names the agent "${name}", which is no DNS label`;
        throw new AuthError('bad-name', about, { agent: name });
      }
      return { agent: name, credential: `${loginEnd(expires, seconds())}.${key}` };
    },
    async check({ agent, credential = '' }) {
      const [, until, key] = /^(\d{1,15})\.([A-Za-z0-9_-]{43})$/.exec(credential) ?? [];
      if (until === undefined || key === undefined) {
        throw new AuthError('bad-token', `The token of "${agent}" is not of a login with a JWT-SVID`, { agent });
      }
      if (!svids.trusts(key)) {
        const about = `The key that has signed the JWT-SVID of "${agent}" is not trusted any more`;
        throw new AuthError('bad-credentials', about, { agent });
      }
      if (Number(until) <= seconds()) {
        throw new AuthError('bad-token', `The login of "${agent}" has ended: it needs a new JWT-SVID`, { agent });
      }
    },
  };
}
