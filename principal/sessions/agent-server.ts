import { generateKeyPairSync } from 'node:crypto';
import {
  type AgentIdentity,
  AuthError,
  type AuthMethod,
  authenticateWith,
  checkToken,
  replacedKeyMs,
  TokenAuthority,
} from '../../lib/auth/index.ts';
import { after, type Logger, listenHost, sleep } from '../../lib/base/index.ts';
import type { OpenConnections } from '../../lib/credentials/index.ts';
import { FatalError, versionInfo } from '../../lib/ops/index.ts';
import type { Tracer } from '../../lib/tracing/index.ts';
import {
  type CertificateService,
  type LiveStreamService,
  type ObservedCall,
  type RefusalReason,
  type ReplicationService,
  type ServerTls,
  serveWire,
  type WireServer,
} from '../../lib/wire/index.ts';
import type { PrincipalCredentials } from '../credentials.ts';
import type { CertificateIssuer } from '../enrolment/certificate-issuer.ts';
import type { PrincipalSettings } from '../settings.ts';
import type { AgentIntroductions } from './introductions.ts';
import { checkMode, type ModeSources } from './pinned-mode.ts';
import type { Sessions } from './sessions.ts';

/** After a change of the token key; less than the 5 minutes for which tokens of the former one count. */
const renewLoginsMs = 240_000;
/** How long the key material's Secrets may take to appear at the start. */
export const credentialsTimeoutMs = 300_000;

/** What a principal of a pair serves besides agents. */
export interface PairServices {
  /** Why no agent may connect now; undefined if they may. */
  refuse(): string | undefined;
  /** Answers the other principal. */
  readonly replication: ReplicationService;
}

/**
 * Waits for the key material, then serves agents; certificates, CA and token key are taken over when they change.
 * @throws FatalError that names what is missing and what to do
 */
export async function serveAgents(options: {
  settings: PrincipalSettings;
  credentials: PrincipalCredentials;
  method: AuthMethod;
  /** Ends what does not count any more. */
  connections: OpenConnections;
  modes: ModeSources;
  /** Called when a client was refused. */
  refused(reason: RefusalReason): void;
  /** Called when a call begins, passes a message and ends. */
  called(call: ObservedCall): void;
  readonly tracer?: Tracer | undefined;
  /** Why agents had better connect to another replica; undefined if they need not. */
  cutOff?(): string | undefined;
  /** Called when an agent connects in a mode that it may not have. */
  refusedMode(error: AuthError): void;
  readonly introductions: Pick<AgentIntroductions, 'record'>;
  /** Called when an agent has authenticated: when it logs in, and when it opens its stream. */
  loggedIn(agent: string): void;
  sessions: Pick<Sessions, 'subscribe' | 'disconnectWithdrawn'>;
  /** Undefined when no request of ours makes an agent open such a stream. */
  live: LiveStreamService | undefined;
  /** Gives certificates to agents; undefined when it does not. */
  enrolment: (CertificateService & Pick<CertificateIssuer, 'loggedIn'>) | undefined;
  /** Undefined for a principal that is alone. */
  pair?: PairServices | undefined;
  logger: Logger;
  signal: AbortSignal;
  /** How often the logins of connected agents are checked. Default 5 s. */
  loginCheckMs?: number;
}): Promise<{ readonly server: WireServer; readonly tokens: TokenAuthority }> {
  const { settings, credentials, method, connections, modes, sessions, live, logger, signal } = options;
  const { flags } = settings;
  const wait = { timeoutMs: credentialsTimeoutMs, signal };
  const flag = (name: string) => `Create it, or name another one with --${name}`;
  const spireAdvice = settings.spire && 'SPIRE must have an entry for this workload, and answer on this socket';
  const certificateAdvice = spireAdvice ?? flag('tls-secret-name or --tls-cert and --tls-key');
  await credentials.server?.ready({ ...wait, advice: certificateAdvice });
  const trustAdvice = spireAdvice ?? flag('tls-ca-secret-name or --root-ca-path');
  await credentials.clientTrust?.ready({ ...wait, advice: trustAdvice });
  await credentials.svids?.bundles.ready({ ...wait, advice: spireAdvice ?? '' });
  await credentials.signingKey?.ready({ ...wait, advice: flag('jwt-secret-name or --jwt-key') });

  const tls = serverTls(settings, credentials);
  if (settings.tls !== 'plaintext' && settings.tls.from === 'generated') {
    logger.warn({}, 'serving with a certificate made at this start: agents cannot know that this is the principal');
  }
  if (tls === 'plaintext') {
    logger.warn({}, 'serving without TLS: everything, tokens included, can be read on the way');
  }
  const signing = credentials.signingKey?.value ?? { key: generateKey(), former: [] };
  const tokens = TokenAuthority.fromPem(signing.key, { former: signing.former });
  const address = listenHost(flags['listen-host']);
  const server = await serveWire({
    ...(address === undefined ? {} : { address }),
    port: flags['listen-port'],
    tls,
    version: versionInfo().version,
    principalNamespace: flags.namespace,
    tokens,
    authenticate: (request, peer) => authenticateWith(method, request, peer),
    authenticated: (identity, request, { certificate }) => {
      options.introductions.record(identity, request);
      options.loggedIn(identity.agent);
      if (certificate !== undefined) {
        options.enrolment?.loggedIn(identity.agent, certificate);
      }
    },
    authorize: async (identity, peer) => {
      await checkToken(method, identity, peer);
      try {
        checkMode(modes, identity);
      } catch (error) {
        if (error instanceof AuthError) {
          options.refusedMode(error);
        }
        throw error;
      }
    },
    connections,
    refused: (reason) => options.refused(reason),
    called: (call) => options.called(call),
    tracer: options.tracer,
    // As in the original, only where certificates are required.
    matchCertificateSubject:
      flags['client-cert-subject-match'] && settings.tls !== 'plaintext' && settings.tls.requireClientCertificate,
    subscribe: (session) => {
      // Its cluster Secret may have been deleted since it logged in, which has ended no stream of it then.
      options.loggedIn(session.agent);
      return sessions.subscribe(session);
    },
    live,
    replication: options.pair?.replication,
    refuse: () => options.pair?.refuse() ?? options.cutOff?.(),
    enrolment: options.enrolment,
    maxMessageBytes: flags['grpc-max-message-size'],
    webSocket: flags['enable-websocket'],
    ...(flags['keepalive-min-interval'] > 0 ? { minPingIntervalMs: flags['keepalive-min-interval'] } : {}),
    logger,
  }).catch((cause: Error) => {
    throw new FatalError(`cannot serve agents on port ${flags['listen-port']}: ${cause.message}`, { cause });
  });
  const reload = () => {
    const material = serverTls(settings, credentials);
    if (material === 'plaintext') {
      return;
    }
    try {
      server.setTls(material);
    } catch (error) {
      logger.error({ error }, 'the new certificates cannot be served with, the former ones stay in use');
    }
  };
  const endWithdrawnKeys = () => {
    connections
      .keysChanged((token) => tokens.isSigned(token))
      .catch((error: unknown) => logger.error({ error }, 'checking the tokens of connected agents failed'));
  };
  const rotate = () => {
    const value = credentials.signingKey?.value;
    if (value === undefined) {
      return;
    }
    const isReplaced = tokens.rotate(value.key, value.former);
    endWithdrawnKeys();
    if (!isReplaced) {
      return;
    }
    // The time of the replaced key is counted in seconds.
    after(replacedKeyMs + 1_000, endWithdrawnKeys, { unref: true });
    logger.info({}, 'the key for tokens has changed: agents log in anew within 4 minutes, old tokens count for 5');
    server.renewLogins(renewLoginsMs);
  };
  credentials.server?.subscribe(reload);
  credentials.clientTrust?.subscribe(reload);
  credentials.signingKey?.subscribe(rotate);
  // Changed while the port was being taken.
  reload();
  rotate();
  if (method.check !== undefined) {
    void endWithdrawnLogins({ ...options, check: (identity) => method.check?.(identity) });
  }
  return { server, tokens };
}

/** Ends the streams of agents whose login no longer holds, until aborted. */
async function endWithdrawnLogins(options: {
  readonly check: (identity: AgentIdentity) => Promise<void> | undefined;
  readonly sessions: Pick<Sessions, 'disconnectWithdrawn'>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly loginCheckMs?: number;
}): Promise<void> {
  const { check, sessions, logger, signal, loginCheckMs = 5_000 } = options;
  for (await sleep(loginCheckMs, signal); !signal.aborted; await sleep(loginCheckMs, signal)) {
    await sessions
      .disconnectWithdrawn(check)
      .catch((error: unknown) => logger.error({ error }, 'checking the logins of connected agents failed'));
  }
}

/** What a port for clients with certificates is served with now. */
export function serverTls(
  { tls }: Pick<PrincipalSettings, 'tls'>,
  credentials: Pick<PrincipalCredentials, 'server' | 'clientTrust'>,
): ServerTls | 'plaintext' {
  const pair = credentials.server?.value;
  if (tls === 'plaintext' || pair === undefined) {
    return 'plaintext';
  }
  const clientCa = credentials.clientTrust?.value;
  return {
    ...pair,
    ...(clientCa === undefined ? {} : { clientCa }),
    requireClientCertificate: tls.requireClientCertificate,
    ...tls.settings,
  };
}

function generateKey(): string {
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
}
