/**
 * Why an authentication failed.
 *
 * | code | meaning |
 * |---|---|
 * | `configuration` | the authentication method itself is set up wrongly (a flag, a file, a key) |
 * | `unknown-method` | the agent uses a method that is not configured |
 * | `no-credentials` | the request has no credentials for the method |
 * | `bad-credentials` | the credentials are wrong |
 * | `bad-name` | the proved identity is no valid agent name |
 * | `revoked` | the certificate is on the blocklist |
 * | `bad-token` | the token is malformed, forged, expired, for another purpose or from another issuer |
 * | `wrong-certificate` | the token is valid, but the connection (its certificate, its proxy's header) belongs to another agent |
 * | `bad-enrolment` | the agent asks for a certificate with a token that does not count, or a request that cannot be granted |
 * | `wrong-mode` | the agent is registered in the other mode |
 * | `too-many-logins` | too many passwords wait to be checked; the agent must retry later |
 * | `too-often` | the agent logs in too often; it must retry later |
 */
export type AuthErrorCode =
  | 'configuration'
  | 'unknown-method'
  | 'no-credentials'
  | 'bad-credentials'
  | 'bad-name'
  | 'revoked'
  | 'bad-token'
  | 'wrong-certificate'
  | 'bad-enrolment'
  | 'wrong-mode'
  | 'too-many-logins'
  | 'too-often';

const hints: Readonly<Partial<Record<AuthErrorCode, string>>> = {
  'unknown-method': "The agent's --creds and the principal's --auth must name the same method.",
  'no-credentials': "Check the agent's --creds and its client certificate or password.",
  'bad-credentials': "Check the agent's certificate or password against the principal's --auth.",
  'bad-name': "Give the agent credentials whose name is a DNS label and not the principal's namespace.",
  revoked:
    'To let it in again remove its fingerprint from ConfigMap argocd-agent-tls-blocklist, or give it a new certificate.',
  'bad-token':
    'The agent logs in again by itself. If this goes on, its clock or the signing key of another principal may be the cause.',
  'wrong-certificate': 'Each agent needs credentials of its own. If nobody mixed them up, the token was stolen.',
  'too-many-logins':
    'Hashes of a lower bcrypt cost are checked faster. If the log shows wrong passwords, somebody guesses.',
  'too-often':
    "Two agents with the same name take the connection from each other, or somebody else has the agent's credentials.",
  'bad-enrolment': 'Make a new token with argocd-agent enroll NAME --again, and apply what it prints to the cluster.',
  'wrong-mode':
    "To let it change its mode, set annotation argocd-agent.argoproj-labs.io/agent-mode of the agent's cluster Secret to the new one.",
};

/** A refusal, worded for the operator of the principal. It never contains a secret. */
export class AuthError extends Error {
  override readonly name = 'AuthError';
  readonly code: AuthErrorCode;
  /** What the operator can do about it. */
  readonly hint?: string;
  /** The claimed name, if there was one. */
  readonly agent?: string;
  /** A detail for the agent besides the refusal itself; only for agents with valid credentials. */
  readonly answer?: string;

  constructor(
    code: AuthErrorCode,
    message: string,
    options: { agent?: string; answer?: string; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    const hint = hints[code];
    if (hint !== undefined) {
      this.hint = hint;
    }
    if (options.agent !== undefined) {
      this.agent = options.agent;
    }
    if (options.answer !== undefined) {
      this.answer = options.answer;
    }
  }
}
