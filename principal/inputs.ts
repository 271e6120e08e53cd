import { type AuthMethod, createAuthMethod } from '../lib/auth/index.ts';
import { hostPort, splitHostPort } from '../lib/base/index.ts';
import { type RunningProgram, retryForever } from '../lib/bridge/index.ts';
import { OpenConnections } from '../lib/credentials/index.ts';
import { FatalError, type Loggers, type ProgramLogger, versionInfo } from '../lib/ops/index.ts';
import { type RedisLink, redisLink } from '../lib/redis/index.ts';
import { type PrincipalCaches, principalCaches, principalCachesSynced } from './caches.ts';
import { MappedAgents } from './clusters/mapped-agents.ts';
import { type PrincipalCredentials, principalCredentials } from './credentials.ts';
import { freshCaches } from './fresh-caches.ts';
import { openPeerPort, type PeerPort } from './peers/peer-port.ts';
import { ensurePrincipalUid } from './principal-uid.ts';
import { Replicas } from './replicas/index.ts';
import { Blocklist } from './sessions/blocklist.ts';
import { headerWarning, type PrincipalSettings, replicaTimes, spireWarning } from './settings.ts';

/** The principal's inputs: the hub's API server, files, and Argo CD's Redis. */
export interface PrincipalInputs {
  readonly caches: PrincipalCaches;
  readonly credentials: PrincipalCredentials;
  readonly link: RedisLink;
  readonly agents: MappedAgents;
  readonly blocklist: Blocklist;
  /** The open connections of all ports that authenticate, which end when what proved their clients does not count any more. */
  readonly connections: OpenConnections;
  readonly method: AuthMethod;
  readonly principalUid: string;
  /** This process as one of several principals; undefined unless `--enable-replicas`. */
  readonly replicas: Replicas | undefined;
  /** Where other replicas reach this one; undefined unless `--enable-replicas`, and when its address is not known. */
  readonly peerPort: PeerPort | undefined;
}

/**
 * Opens the inputs and waits for the first listing of every kind. The Redis link is not running yet.
 * @param servesAgents whether agents are to be served, and so shared with other principals
 * @throws FatalError when something is missing or does not come in time; nothing listens any more then
 */
export async function openInputs(
  settings: PrincipalSettings,
  program: RunningProgram,
  loggers: Loggers,
  env: Readonly<Record<string, string | undefined>>,
  servesAgents = true,
): Promise<PrincipalInputs> {
  const { flags } = settings;
  const { namespace } = flags;
  const { client, signal, failed } = program;
  const logger = loggers.root;
  const caches = principalCaches(flags, { client, logger, signal, failed });
  const credentials = principalCredentials(settings, { secrets: caches.Secrets, logger, signal });
  const link = redisLink(settings.redis, { secrets: caches.Secrets, namespace, notify: false, logger, signal });
  const agents = new MappedAgents(logger);
  agents.follow(caches.Secrets);
  const blocklist = new Blocklist(logger);
  const connections = new OpenConnections({ isBlocked: (fingerprint) => blocklist.has(fingerprint), logger });
  blocklist.follow(caches['blocked certificates'], () => connections.blocklistChanged());
  const method = await authMethod(settings, credentials, blocklist, logger);
  const principalUid = await retryForever(
    'establish the identity',
    () => ensurePrincipalUid({ client, namespace, logger, signal }),
    { signal, logger, isFinal: (error) => error instanceof FatalError },
  );
  const isShared = servesAgents && flags['enable-replicas'];
  const peerPort = isShared ? await peerPortOf(settings, program, loggers, env) : undefined;
  try {
    const replicas = isShared ? replicasOf(settings, program, caches, peerPort, loggers, env) : undefined;
    const waiting = (what: string) => program.health(`waiting for ${what}`);
    await principalCachesSynced(caches, {
      client,
      namespace,
      logger,
      signal,
      waiting,
      isReplica: replicas !== undefined,
    });
    return { caches, credentials, link, agents, blocklist, connections, method, principalUid, replicas, peerPort };
  } catch (error) {
    // Whoever begins anew listens on the same port.
    await peerPort?.close();
    throw error;
  }
}

async function peerPortOf(
  { flags }: PrincipalSettings,
  { registry, tracing }: RunningProgram,
  loggers: Loggers,
  env: Readonly<Record<string, string | undefined>>,
): Promise<PeerPort | undefined> {
  const listen = splitHostPort(flags['replica-listen']) ?? { host: '', port: 0 };
  const own = env.POD_IP ? hostPort(env.POD_IP, listen.port) : '';
  const address = flags['replica-address'] || own;
  if (address === '') {
    loggers.root.warn(
      { hint: 'set POD_IP, or --replica-address (ARGOCD_PRINCIPAL_REPLICA_ADDRESS)' },
      'other replicas cannot reach this one: requests for live access fail when they arrive at another replica',
    );
    return undefined;
  }
  return openPeerPort({ listen, address, registry, tracer: tracing?.tracer, logger: loggers.root });
}

function replicasOf(
  { flags }: PrincipalSettings,
  { client, registry, signal }: RunningProgram,
  caches: PrincipalCaches,
  peerPort: PeerPort | undefined,
  { root: logger }: Loggers,
  env: Readonly<Record<string, string | undefined>>,
): Replicas {
  return new Replicas({
    client,
    namespace: flags.namespace,
    informer: caches.Leases,
    caughtUp: freshCaches(caches, {
      mapping: flags['destination-based-mapping'] ? 'destination' : 'namespace',
      signal,
    }),
    timing: replicaTimes(flags),
    address: peerPort?.address ?? '',
    fingerprint: peerPort?.fingerprint ?? '',
    version: versionInfo().version,
    env,
    registry,
    logger,
  });
}

async function authMethod(
  settings: PrincipalSettings,
  { svids }: Pick<PrincipalCredentials, 'svids'>,
  blocklist: Blocklist,
  logger: ProgramLogger,
): Promise<AuthMethod> {
  for (const warning of [headerWarning(settings), spireWarning(settings)]) {
    if (warning !== undefined) {
      logger.warn(warning);
    }
  }
  try {
    return await createAuthMethod(settings.auth, {
      isRevoked: (fingerprint) => blocklist.has(fingerprint),
      warn: (message) => logger.warn(message),
      ...(svids === undefined ? undefined : { svids }),
    });
  } catch (error) {
    throw new FatalError(`--auth (ARGOCD_PRINCIPAL_AUTH): ${(error as Error).message}`, { cause: error });
  }
}
