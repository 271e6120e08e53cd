import {
  AuthRequest as AuthRequestMessage,
  AuthResponse,
  RefreshTokenRequest,
} from '../../../proto/gen/authapi/auth.ts';
import { CertificateResponse, EnrollRequest, RenewRequest } from '../../../proto/gen/enrolmentapi/enrolment.ts';
import {
  type AgentIdentity,
  AuthError,
  type AuthRequest,
  type ClientInfo,
  commonNameOf,
  isAgentMode,
  type Login,
} from '../../auth/index.ts';
import type { ServerCall } from '../grpc/server/server-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { paths } from '../methods.ts';
import { AgentRate } from './agent-rate.ts';
import type { CertificateService, WireServerOptions } from './server-options.ts';

/** Longest text of an unauthenticated client that is logged. */
const loggedCharacters = 100;

/** Texts that argocd-agent's principal answers with; agents and people know them. */
const answers = {
  authenticationFailed: 'authentication failed',
  enrolmentFailed: 'enrolment refused',
  invalidAuthenticationData: 'invalid authentication data',
  versionRequired: 'agent version is required',
  tooManyLogins: 'too many logins at once',
} as const;

/** Authenticates agents: logins, renewals of tokens, and calls that carry a token. */
export class AuthCalls {
  readonly #options: WireServerOptions;
  readonly #logins = new AgentRate();
  readonly #renewals = new AgentRate();

  constructor(options: WireServerOptions) {
    this.#options = options;
  }

  /** Answers a login (protobuf in, protobuf out), and tells whose it was. @throws GrpcError */
  async authenticate(bytes: Uint8Array, peer: ClientInfo): Promise<{ agent: string; answer: Uint8Array }> {
    const { logger, tokens, version, principalNamespace } = this.#options;
    const message = AuthRequestMessage.decode(bytes);
    const { mode } = message;
    if (!isAgentMode(mode)) {
      throw new GrpcError(grpcStatus.unknown, `unknown agent mode: ${mode.slice(0, 64)}`);
    }
    const request: AuthRequest = { ...message, mode };
    const about = { peer: peer.address, method: shortened(message.method), mode, version: shortened(message.version) };
    let login: Login;
    try {
      login = await this.#options.authenticate(request, peer);
    } catch (error) {
      throw this.#refused(error, peer, about, answers.authenticationFailed);
    }
    if (message.version === '') {
      throw new GrpcError(grpcStatus.invalidArgument, answers.versionRequired);
    }
    const identity: AgentIdentity = { ...login, mode };
    const { agent } = login;
    try {
      this.#requireAgentName(agent);
      if (!this.#logins.tryTake(agent)) {
        throw new AuthError('too-often', `It logs in more than ${AgentRate.text}`, { agent });
      }
      await this.#options.authorize?.(identity, peer);
      await this.#options.authenticated?.(identity, request, peer);
    } catch (error) {
      throw this.#refused(error, peer, { ...about, agent }, answers.authenticationFailed);
    }
    const pair = await tokens.issue(identity);
    logger.info({ ...about, agent }, 'An agent has logged in');
    return { agent, answer: AuthResponse.encode({ ...pair, version, principalNamespace }).finish() };
  }

  /** Answers a renewal of an access token. @throws GrpcError */
  async refreshToken(bytes: Uint8Array, peer: ClientInfo): Promise<Uint8Array> {
    const { tokens } = this.#options;
    const { refreshToken } = RefreshTokenRequest.decode(bytes);
    try {
      const pair = await tokens.refresh(refreshToken, async (identity) => {
        const { agent } = identity;
        this.#requireAgentName(agent);
        if (!this.#renewals.tryTake(agent)) {
          throw new AuthError('too-often', `It renews its token more than ${AgentRate.text}`, { agent });
        }
        await this.#options.authorize?.(identity, peer);
      });
      return AuthResponse.encode(
        AuthResponse.fromPartial({ accessToken: pair.accessToken, refreshToken: pair.refreshToken ?? '' }),
      ).finish();
    } catch (error) {
      throw this.#refused(error, peer, { peer: peer.address, call: paths.refreshToken }, answers.authenticationFailed);
    }
  }

  /** Answers an exchange of a token for a certificate. @throws GrpcError */
  async enroll(bytes: Uint8Array, service: CertificateService, peer: ClientInfo): Promise<Uint8Array> {
    const { token, request } = EnrollRequest.decode(bytes);
    try {
      return CertificateResponse.encode(await service.enroll(token, request)).finish();
    } catch (error) {
      throw this.#refused(error, peer, { peer: peer.address, call: paths.enroll }, answers.enrolmentFailed);
    }
  }

  /** Answers a renewal of the certificate of an agent that has logged in. @throws GrpcError */
  async renewCertificate(call: ServerCall, bytes: Uint8Array, service: CertificateService, peer: ClientInfo) {
    const { agent } = await this.identify(call, peer);
    const { request } = RenewRequest.decode(bytes);
    try {
      return CertificateResponse.encode(await service.renew(agent, request)).finish();
    } catch (error) {
      throw this.#refused(error, peer, { peer: peer.address, call: paths.renew }, answers.enrolmentFailed);
    }
  }

  /** Who makes a call: the checks that argocd-agent's principal makes, in its order. @throws GrpcError */
  async identify(call: ServerCall, peer: ClientInfo): Promise<AgentIdentity> {
    const { tokens, matchCertificateSubject } = this.#options;
    try {
      const token = call.header('authorization');
      if (!token) {
        throw new AuthError('bad-token', 'The call carries no token');
      }
      const identity = await tokens.verifyAccess(token);
      const { agent } = identity;
      this.#requireAgentName(agent);
      if (matchCertificateSubject && peer.encrypted) {
        const name = peer.certificate === undefined ? undefined : commonNameOf(peer.certificate);
        if (name !== agent) {
          throw new AuthError(
            'wrong-certificate',
            `The token is of agent ${agent}, the client certificate of ${name === undefined ? 'nobody' : `"${name}"`}`,
            { agent },
          );
        }
      }
      await this.#options.authorize?.(identity, peer);
      return identity;
    } catch (error) {
      throw this.#refused(error, peer, { peer: peer.address, call: call.path }, answers.invalidAuthenticationData);
    }
  }

  #requireAgentName(agent: string): void {
    if (agent === this.#options.principalNamespace) {
      throw new AuthError('bad-name', `The agent is named like the principal's namespace, ${agent}`, { agent });
    }
  }

  /** The log gets the reason, the agent only the fact. */
  #refused(error: unknown, peer: ClientInfo, about: object, answer: string): GrpcError {
    if (error instanceof AuthError) {
      const { agent, code, hint } = error;
      const known = {
        ...(agent === undefined ? undefined : { agent }),
        code,
        ...(hint === undefined ? undefined : { hint }),
      };
      this.#options.logger.warn({ ...about, ...known }, `An agent is refused: ${error.message}`);
      this.#options.refused?.(code, peer);
      if (code === 'too-many-logins' || code === 'too-often') {
        return new GrpcError(grpcStatus.unavailable, answers.tooManyLogins);
      }
      const reason = error.answer === undefined ? '' : `: ${error.answer}`;
      return new GrpcError(grpcStatus.unauthenticated, `${answer}${reason}`);
    }
    if (error instanceof GrpcError) {
      return error;
    }
    this.#options.logger.error({ ...about, error }, 'Checking an agent failed');
    return new GrpcError(grpcStatus.unavailable, 'the principal cannot check credentials now');
  }
}

/** A text of an unauthenticated client, cut for the log. */
export function shortened(text: string): string {
  return text.length <= loggedCharacters ? text : `${text.slice(0, loggedCharacters)}…`;
}
