import { AuthError, type AuthMethod, isDnsLabel, type PeerInfo } from '../lib/auth/index.ts';
import type { AuthChoice } from './options.ts';

export function mtlsMethod({ source, pattern }: AuthChoice): AuthMethod {
  return {
    name: 'mtls',
    authenticate: async (_request, peer: PeerInfo) => {
      const { certificate } = peer;
      if (certificate === undefined) throw new AuthError('no-credentials', 'the agent showed no valid certificate');
      const subject = certificate.subject.split('\n').reverse().join(',');
      const name = pattern.exec(source === 'subject' ? subject : (certificate.subjectAltName ?? ''))?.[1];
      if (name === undefined || !isDnsLabel(name))
        throw new AuthError('bad-name', `the certificate's subject ${subject} names no agent`);
      return name;
    },
  };
}
