import { decodeJwt } from 'jose';
import { AuthRequest, AuthResponse, RefreshTokenRequest } from '../../../proto/gen/authapi/auth.ts';
import { VersionRequest, VersionResponse } from '../../../proto/gen/versionapi/version.ts';
import { WireError } from '../errors.ts';
import type { GrpcTransport } from '../grpc/client/client.ts';
import { type ClientCall, callUnary } from '../grpc/client/client-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { paths } from '../methods.ts';
import type { WireClientOptions } from './client-options.ts';

/** A token with less than this left is renewed before it is used, as argocd-agent's agent does. */
const renewBelowSeconds = 30;
const versionPrefix = /^argocd-agent-/;

/** When a login has begun, and when it ends: ms of Unix time. */
export interface LoginLife {
  readonly since: number;
  readonly until: number;
}

/** A connection on which we have logged in. */
export class LoggedIn {
  readonly agent: string;
  readonly principalNamespace: string;
  readonly version: string;
  /** Undefined when the login has no end of its own. */
  readonly life: LoginLife | undefined;
  readonly #transport: GrpcTransport;
  readonly #signal: AbortSignal;
  readonly #authenticate: () => Promise<AuthResponse>;
  #accessToken: string;
  /** When the access token ends, by `performance.now()`. */
  #endsAt: number;
  #refreshToken: string;

  /** @param authenticate logs in as it was done for `response` */
  constructor(
    transport: GrpcTransport,
    signal: AbortSignal,
    { response, life }: { readonly response: AuthResponse; readonly life: LoginLife | undefined },
    authenticate: () => Promise<AuthResponse>,
  ) {
    this.#transport = transport;
    this.#signal = signal;
    this.#authenticate = authenticate;
    this.#accessToken = response.accessToken;
    this.#endsAt = endOf(response.accessToken);
    this.#refreshToken = response.refreshToken;
    this.agent = agentOf(response.accessToken);
    this.principalNamespace = response.principalNamespace;
    this.version = response.version;
    this.life = life;
  }

  /** Starts a call that carries the access token, renewed first when it is about to end or was refused. */
  async call(path: string): Promise<ClientCall> {
    if (this.#endsAt - performance.now() <= renewBelowSeconds * 1_000) {
      await this.#renew();
    }
    const token = this.#accessToken;
    const call = this.#transport.call(path, { authorization: token });
    call.onOver((error) => {
      // The principal's clock may have been set, or its key replaced.
      if (error?.code === grpcStatus.unauthenticated && token === this.#accessToken) {
        this.#endsAt = performance.now();
      }
    });
    return call;
  }

  /**
   * A stream may outlive the refresh token: then the agent logs in again. If both fail, this is not a failure
   * yet: the current token may still be valid, and the principal refuses it if not.
   */
  async #renew(): Promise<void> {
    const response = (await answered(() => this.#refresh())) ?? (await answered(this.#authenticate));
    if (response === undefined) {
      return;
    }
    this.#accessToken = response.accessToken;
    this.#endsAt = endOf(response.accessToken);
    if (response.refreshToken !== '') {
      this.#refreshToken = response.refreshToken;
    }
  }

  async #refresh(): Promise<AuthResponse> {
    const request = RefreshTokenRequest.encode({ refreshToken: this.#refreshToken }).finish();
    return AuthResponse.decode(await callUnary(this.#transport.call(paths.refreshToken), request, this.#signal));
  }
}

/** Undefined when the principal refuses, or there are no credentials. */
async function answered(ask: () => Promise<AuthResponse>): Promise<AuthResponse | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof GrpcError || error instanceof WireError) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Logs in. An original principal takes only agents that name its own version: when it refuses ours, it is asked for its
 * version and gets that one. `versions` keeps it for the next login.
 *
 * @throws GrpcError as the principal answered, WireError `protocol` for an unusable answer
 */
export async function logIn(
  transport: GrpcTransport,
  options: WireClientOptions,
  versions: { adopted?: string },
): Promise<LoggedIn> {
  const { signal } = options;
  let life: LoginLife | undefined;
  const authenticate = async (version: string): Promise<AuthResponse> => {
    const { method, credentials, until } = await options.credentials();
    life = until === undefined ? undefined : { since: Date.now(), until };
    const { mode, agentNamespace } = options;
    const request = AuthRequest.encode({ method, credentials: { ...credentials }, mode, version, agentNamespace });
    return AuthResponse.decode(await callUnary(transport.call(paths.authenticate), request.finish(), signal));
  };
  let response: AuthResponse;
  try {
    response = await authenticate(versions.adopted ?? options.version);
  } catch (error) {
    if (!(error instanceof GrpcError) || error.code !== grpcStatus.failedPrecondition) {
      throw error;
    }
    const version = await askVersion(transport, signal);
    options.logger.info({ principal: version, ours: options.version }, 'The principal insists on its own version');
    response = await authenticate(version);
    versions.adopted = version;
  }
  return new LoggedIn(transport, signal, { response, life }, () => authenticate(versions.adopted ?? options.version));
}

async function askVersion(transport: GrpcTransport, signal: AbortSignal): Promise<string> {
  const request = VersionRequest.encode({}).finish();
  const bytes = await callUnary(transport.call(paths.version), request, signal);
  return VersionResponse.decode(bytes).version.replace(versionPrefix, '');
}

function agentOf(token: string): string {
  try {
    const { sub } = decodeJwt(token);
    const subject: unknown = JSON.parse(sub ?? '');
    if (typeof subject === 'object' && subject !== null && 'clientID' in subject) {
      return String(subject.clientID);
    }
  } catch (cause) {
    throw new WireError('protocol', 'The principal gave us a token that cannot be read', { cause });
  }
  throw new WireError('protocol', 'The principal gave us a token that names no agent');
}

/**
 * When a token that has just come ends, by `performance.now()`: the clocks of the two machines may differ, what passes on them
 * does not.
 */
function endOf(token: string): number {
  const { exp, iat } = decodeJwt(token);
  // Without the time of issue there is only our own clock to count from.
  const issuedAt = iat ?? Date.now() / 1_000;
  return exp === undefined ? Number.POSITIVE_INFINITY : performance.now() + (exp - issuedAt) * 1_000;
}
