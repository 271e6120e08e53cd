import { isDnsLabel } from '../base/index.ts';
import { AuthError } from './errors.ts';
import type { ClientInfo } from './identity.ts';
import type { AuthMethod } from './method.ts';
import type { GoExpression } from './pattern.ts';
import { fingerprintOf, subjectOf, urisOf } from './subject.ts';

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
