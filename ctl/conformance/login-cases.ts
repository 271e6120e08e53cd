import { GrpcError, grpcStatus, paths } from '../../lib/wire/index.ts';
import { VersionRequest, VersionResponse } from '../../proto/gen/versionapi/version.ts';
import { type ConformanceCase, must, refused, Skipped } from './case.ts';
import type { Connection, Player } from './player.ts';

const { unauthenticated, unavailable, unimplemented } = grpcStatus;
const authenticationFailed = 'authentication failed';
const invalidData = 'invalid authentication data';

/** The claims and header of a token, not verified. */
interface Token {
  readonly alg?: unknown;
  readonly iss?: unknown;
  readonly aud?: unknown;
  readonly sub?: unknown;
  readonly iat?: unknown;
  readonly exp?: unknown;
}

/** Reads a token. @throws Error for a text that is none */
function readToken(token: string, what: string): Token {
  try {
    const [header = '', claims = ''] = token.split('.');
    const parse = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as object;
    return { ...parse(header), ...parse(claims) };
  } catch {
    throw new Error(`the ${what} token is no JWT`);
  }
}

function checkToken(token: Token, what: 'access' | 'refresh', mode: string, seconds: number): string {
  const { alg, iss, aud, sub, iat, exp } = token;
  must(alg === 'RS512', `the ${what} token is signed with ${String(alg)}; wanted RS512`);
  must(iss === 'argocd-agent-server', `iss of the ${what} token is ${String(iss)}; wanted argocd-agent-server`);
  const audience = `argocd-agent-server-${what}`;
  must([aud].flat().includes(audience), `aud of the ${what} token is ${String(aud)}; wanted ${audience}`);
  const subject = JSON.parse(String(sub)) as { clientID?: unknown; mode?: unknown };
  must(typeof subject.clientID === 'string' && subject.clientID !== '', `sub of the ${what} token has no clientID`);
  must(subject.mode === mode, `mode in sub of the ${what} token is ${String(subject.mode)}; wanted ${mode}`);
  must(
    Number(exp) - Number(iat) === seconds,
    `the ${what} token lives ${Number(exp) - Number(iat)} s; wanted ${seconds}`,
  );
  return String(subject.clientID);
}

/** How `Subscribe` with a token ends; it must. */
async function subscribeWith(connection: Connection, token: string | undefined): Promise<void> {
  const error = await connection.subscribe(token).ending();
  if (error !== undefined) {
    throw error;
  }
}

/** The cases about the transport and the login, for a principal. */
export const loginCases: readonly ConformanceCase<Player>[] = [
  {
    name: 'Version needs no token',
    section: 'Login',
    async run(player) {
      const connection = await player.connect();
      const answer = await connection.request(paths.version, VersionRequest.encode({}).finish());
      const { version } = VersionResponse.decode(answer);
      must(version.startsWith('argocd-agent-'), `the version is "${version}"; wanted argocd-agent-<version>`);
      return version;
    },
  },
  {
    name: 'a login gives tokens of the right form',
    section: 'Tokens',
    async run(player) {
      const { tokens } = await player.logIn();
      const { mode } = player.options;
      const agent = checkToken(readToken(tokens.accessToken, 'access'), 'access', mode, 300);
      checkToken(readToken(tokens.refreshToken, 'refresh'), 'refresh', mode, 86_400);
      must(tokens.version !== '', 'the answer has no version');
      must(tokens.principalNamespace !== '', 'the answer has no principalNamespace');
      return `agent ${agent}, version ${tokens.version}`;
    },
  },
  {
    name: 'calls may be compressed',
    section: 'Transport',
    async run(player) {
      const connection = await player.connect({ compression: true });
      const { accessToken } = await connection.authenticate();
      return `a login of ${readToken(accessToken, 'access').sub} with gzip`;
    },
  },
  {
    name: 'a client without certificate is turned away',
    section: 'Transport',
    async run(player) {
      const { tls, method } = player.options;
      if (tls === 'plaintext' || tls.cert === undefined || method !== 'mtls') {
        throw new Skipped('only with client certificates');
      }
      const { cert: _, key: __, ...anonymous } = tls;
      try {
        const connection = await player.connect({ tls: anonymous });
        await connection.authenticate();
      } catch (error) {
        // With TLS 1.3 the handshake is over before the server says no: the first call breaks.
        const isRefusal =
          !(error instanceof GrpcError) || [unauthenticated, unavailable].some((one) => one === error.code);
        must(isRefusal, `${(error as Error).message}; wanted unauthenticated, or the end of the connection`);
        return (error as Error).message;
      }
      throw new Error('it may log in');
    },
  },
  refusal('a login in an unknown mode', { mode: 'neither' }, grpcStatus.unknown),
  refusal('a login by an unknown method', { method: 'nothing' }, unauthenticated, authenticationFailed),
  refusal('a login without version', { version: '' }, grpcStatus.invalidArgument, 'agent version is required'),
  {
    name: 'a login of another version is accepted, or refused for its version',
    section: 'Refused logins',
    async run(player) {
      const connection = await player.connect();
      const attempt = connection.authenticate({ version: '0.0.0-conformance' });
      try {
        await attempt;
      } catch {
        return refused(attempt, [grpcStatus.failedPrecondition], 'version mismatch');
      }
      return 'accepted';
    },
  },
  {
    name: 'a call without token is refused',
    section: 'Tokens',
    async run(player) {
      const connection = await player.connect();
      return refused(subscribeWith(connection, undefined), [unauthenticated], invalidData);
    },
  },
  {
    name: 'a call with a refresh token is refused',
    section: 'Tokens',
    async run(player) {
      const { connection, tokens } = await player.logIn();
      return refused(subscribeWith(connection, tokens.refreshToken), [unauthenticated], invalidData);
    },
  },
  {
    name: 'a call with a token that was changed is refused',
    section: 'Tokens',
    async run(player) {
      const { connection, tokens } = await player.logIn();
      const [header, claims = '', signature] = tokens.accessToken.split('.');
      const changed = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>;
      const forged = Buffer.from(JSON.stringify({ ...changed, exp: Number(changed.exp) + 60 })).toString('base64url');
      return refused(subscribeWith(connection, `${header}.${forged}.${signature}`), [unauthenticated], invalidData);
    },
  },
  {
    name: 'a refresh token gives an access token, and stays',
    section: 'Tokens',
    async run(player) {
      const { connection, tokens } = await player.logIn();
      const renewed = await connection.refresh(tokens.refreshToken);
      checkToken(readToken(renewed.accessToken, 'access'), 'access', player.options.mode, 300);
      must(renewed.refreshToken === '', 'a refresh token that has hours left is replaced');
      return 'a new access token';
    },
  },
  {
    name: 'an access token gives no access token',
    section: 'Tokens',
    async run(player) {
      const { connection, tokens } = await player.logIn();
      return refused(connection.refresh(tokens.accessToken), [unauthenticated], authenticationFailed);
    },
  },
  {
    name: 'what is not there is not implemented',
    section: 'Transport',
    async run(player) {
      const { connection, tokens } = await player.logIn();
      const none = new Uint8Array();
      await refused(connection.request('/eventstreamapi.EventStream/None', none, tokens.accessToken), [unimplemented]);
      return refused(connection.request(paths.ping, none, tokens.accessToken), [unimplemented]);
    },
  },
  {
    name: 'a login of 1 MiB is refused or answered, and the connection goes on',
    section: 'Limits',
    async run(player) {
      const connection = await player.connect();
      const large = { ...player.options.credentials, filler: 'x'.repeat(1024 * 1024) };
      const seen = await connection.authenticate({ credentials: large }).then(
        () => 'answered',
        (error: unknown) => (error as Error).message,
      );
      await connection.authenticate();
      return seen;
    },
  },
];

function refusal(
  name: string,
  change: { readonly mode?: string; readonly method?: string; readonly version?: string },
  code: (typeof grpcStatus)[keyof typeof grpcStatus],
  text?: string,
): ConformanceCase<Player> {
  return {
    name: `${name} is refused`,
    section: 'Refused logins',
    async run(player) {
      const connection = await player.connect();
      return refused(connection.authenticate(change), [code], text);
    },
  };
}
