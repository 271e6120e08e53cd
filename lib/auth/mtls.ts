import { isDnsLabel } from '../base/index.ts';
import { AuthError } from './errors.ts';
import type { ClientInfo } from './identity.ts';
import type { AuthKind } from './kind.ts';
import type { AuthMethod } from './method.ts';
import { compilePattern, type GoExpression } from './pattern.ts';
import { fingerprintOf, subjectOf, urisOf } from './subject.ts';

/** `mtls:subject:<re>`, `mtls:uri:<re>`, and `mtls:<re>`, which is about the subject. */
export const mtlsKind: AuthKind<{
  readonly method: 'mtls';
  /** The part of the client certificate that names the agent. */
  readonly source: 'subject' | 'uri';
  /** Its first group is the agent's name. */
  readonly pattern: GoExpression;
}> = {
  forms: 'mtls:subject:<re>, mtls:uri:<re>',
  parse(config) {
    const prefix = /^(subject|uri):/.exec(config);
    const source = prefix?.[1] === 'uri' ? 'uri' : 'subject';
    return { method: 'mtls', source, pattern: compilePattern(config.slice(prefix?.[0].length ?? 0)) };
  },
  misfit: ({ plaintext }) => (plaintext ? 'mtls authentication cannot be used with --insecure-plaintext' : undefined),
  create: (choice, { isRevoked }) =>
    mtlsMethod({ ...choice, ...(isRevoked === undefined ? undefined : { isRevoked }) }),
};

/**
 * Takes the agent's name from its verified client certificate: the first group of an expression over the subject (as Go
 * prints it) or over each URI among the alternative names.
 *
 * @param isRevoked whether a certificate is blocked, by its fingerprint (`fingerprintOf`)
 */
export function mtlsMethod(options: {
  readonly source: 'subject' | 'uri';
  readonly pattern: GoExpression;
  isRevoked?(fingerprint: string): boolean;
}): AuthMethod {
  const { source, pattern } = options;
  const identify = ({ certificate }: ClientInfo): string => {
    if (certificate === undefined) {
      throw new AuthError('no-credentials', 'The agent showed no client certificate that holds');
    }
    const subject = subjectOf(certificate);
    const texts = source === 'subject' ? [subject] : urisOf(certificate);
    const name = texts.map((text) => pattern.firstGroup(text)).find((found) => found !== undefined && found !== '');
    const about = `The client certificate of "${subject}"${source === 'uri' ? ` (URIs: ${texts.join(' ') || 'none'})` : ''}`;
    if (name === undefined) {
      throw new AuthError('bad-credentials', `${about} does not match ${pattern}, so it names no agent`);
    }
    if (!isDnsLabel(name)) {
      throw new AuthError('bad-name', `${about} names the agent "${name}", which is no DNS label`, { agent: name });
    }
    if (options.isRevoked?.(fingerprintOf(certificate))) {
      throw new AuthError('revoked', `${about} is on the blocklist`, { agent: name });
    }
    return name;
  };
  return { name: 'mtls', identify, authenticate: async (_request, peer) => ({ agent: identify(peer) }) };
}
