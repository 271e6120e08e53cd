import { generateKeyPairSync } from 'node:crypto';
import { TokenAuthority } from '../../lib/auth/index.ts';
import type { Logger } from '../../lib/base/index.ts';
import {
  type EventStream,
  type PrincipalInfo,
  runWireClient,
  type Session,
  type SessionCalls,
  serveWire,
  type WireClientOptions,
  type WireError,
  type WireEvent,
  type WireServer,
  type WireServerOptions,
} from '../../lib/wire/index.ts';
import { speakOn, type WirePeer } from './wire-peer.ts';

const ignore = () => undefined;
/** A log that nobody reads. */
export const noLog: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** An agent on our client, and what it met. */
export interface PlayedAgent {
  readonly streams: EventStream[];
  readonly principals: PrincipalInfo[];
  /** Resolves with what it may call, on its first connection. */
  readonly calls: Promise<SessionCalls>;
  /** What came, unless a peer takes it. */
  readonly received: WireEvent[];
  /** How its streams ended. */
  readonly closed: (Error | undefined)[];
  readonly failures: WireError[];
  /** Resolves when it has stopped. */
  readonly done: Promise<void>;
  stop(): Promise<void>;
}

/** Plays an agent at a principal, by its port or `host:port`. Without a peer it only listens. */
export function playAgent(
  at: number | string,
  { peer, ...options }: Partial<WireClientOptions> & { readonly peer?: WirePeer } = {},
): PlayedAgent {
  const abort = new AbortController();
  const [streams, principals, received, closed, failures]: [
    EventStream[],
    PrincipalInfo[],
    WireEvent[],
    (Error | undefined)[],
    WireError[],
  ] = [[], [], [], [], []];
  const { promise: calls, resolve } = Promise.withResolvers<SessionCalls>();
  const done = runWireClient({
    server: typeof at === 'number' ? `127.0.0.1:${at}` : at,
    tls: () => 'plaintext',
    credentials: () => ({ method: 'mtls', credentials: {} }),
    mode: 'managed',
    version: '1.0.0',
    agentNamespace: 'argocd',
    environment: {},
    onConnected: (stream, principal, own) => {
      streams.push(stream);
      principals.push(principal);
      resolve(own);
      const { event } = peer ? speakOn(peer, stream) : { event: (one: WireEvent) => void received.push(one) };
      return { event, closed: (error) => closed.push(error) };
    },
    onDisconnected: (error) => failures.push(error),
    backoff: { initialMs: 20, maxMs: 100 },
    signal: abort.signal,
    logger: noLog,
    ...options,
  });
  const stop = () => {
    abort.abort();
    return done;
  };
  return { streams, principals, calls, received, closed, failures, done, stop };
}

/** A principal on our server, and what it met. */
export interface PlayedPrincipal {
  readonly server: WireServer;
  readonly port: number;
  readonly tokens: TokenAuthority;
  readonly sessions: Session[];
  /** What came, unless a peer takes it. */
  readonly received: WireEvent[];
  /** How its streams ended. */
  readonly closed: (Error | undefined)[];
  close(): Promise<void>;
}

/** Takes each agent by the name in its certificate, or as `one`. */
const byCertificate: WireServerOptions['authenticate'] = async (_, { certificate }) => ({
  agent: /CN=([^,]+)/.exec(certificate?.subject ?? '')?.[1] ?? 'one',
});
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const signingKey = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));

/** Plays a principal on a free port of this machine, without TLS unless told otherwise. Without a peer it only listens. */
export async function playPrincipal({
  peer,
  ...options
}: Partial<WireServerOptions> & { peer?(session: Session): WirePeer } = {}): Promise<PlayedPrincipal> {
  const sessions: Session[] = [];
  const received: WireEvent[] = [];
  const closed: (Error | undefined)[] = [];
  const tokens = options.tokens ?? TokenAuthority.fromPem(signingKey);
  const server = await serveWire({
    address: '127.0.0.1',
    port: 0,
    tls: 'plaintext',
    version: '1.0.0',
    principalNamespace: 'argocd',
    tokens,
    authenticate: byCertificate,
    subscribe: (session) => {
      sessions.push(session);
      const { event } = peer
        ? speakOn(peer(session), session.stream)
        : { event: (one: WireEvent) => void received.push(one) };
      return { event, closed: (error) => closed.push(error) };
    },
    logger: noLog,
    ...options,
  });
  return { server, port: server.port, tokens, sessions, received, closed, close: () => server.close() };
}
