import { isDnsLabel } from '../base/index.ts';
import { AuthError } from './errors.ts';
import type { ClientInfo } from './identity.ts';
import { type AuthKind, splitOnce } from './kind.ts';
import type { AuthMethod } from './method.ts';
import { compilePattern, type GoExpression } from './pattern.ts';

/** `header:<name>:<re>`. */
export const headerKind: AuthKind<{
  readonly method: 'header';
  /** Name of a request header, lower case. */
  readonly header: string;
  /** Its first group is the agent's name. */
  readonly pattern: GoExpression;
}> = {
  forms: 'header:<name>:<re>',
  parse(config) {
    const [name = '', pattern] = splitOnce(config).map((part) => part?.trim());
    if (!name || !pattern) {
      throw new AuthError(
        'configuration',
        'header authentication needs a header and an expression: header:<name>:<re>',
      );
    }
    return { method: 'header', header: name.toLowerCase(), pattern: compilePattern(pattern) };
  },
  misfit: ({ plaintext }) =>
    plaintext ? undefined : 'header authentication needs --insecure-plaintext, behind a proxy that ends TLS',
  create: (choice) => headerMethod(choice),
};

/** Takes the agent's name from a request header that a trusted proxy sets. */
export function headerMethod(options: { readonly header: string; readonly pattern: GoExpression }): AuthMethod {
  const { header, pattern } = options;
  const identify = (peer: ClientInfo): string | undefined => {
    const value = peer.header(header);
    if (value === undefined) {
      return undefined;
    }
    const name = pattern.firstGroup(value);
    if (!name) {
      throw new AuthError('bad-credentials', `The header ${header} does not match ${pattern}`);
    }
    if (!isDnsLabel(name)) {
      throw new AuthError('bad-name', `The header ${header} names the agent "${name}", which is no DNS label`, {
        agent: name,
      });
    }
    return name;
  };
  return {
    name: 'header',
    identify,
    async authenticate(_request, peer) {
      const name = identify(peer);
      if (name === undefined) {
        throw new AuthError('no-credentials', `The request has no header ${header}`);
      }
      return { agent: name };
    },
  };
}
