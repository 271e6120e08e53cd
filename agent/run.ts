import {
  AgentParts,
  AgentProjects,
  AgentSync,
  type Application,
  type AppProject,
  matchesAny,
  sameNamespaces,
} from '../lib/argocd/index.ts';
import {
  applications,
  appProjects,
  kubeClient,
  kubeStore,
  peerOnStream,
  startInformer,
  syncSelector,
} from '../lib/bridge/index.ts';
import { secrets } from '../lib/kube/index.ts';
import {
  type CommandContext,
  commandLoggers,
  createRegistry,
  FatalError,
  formatDuration,
  serveHealth,
  serveMetrics,
  versionInfo,
} from '../lib/ops/index.ts';
import { agentSource, type ClientTls, runWireClient } from '../lib/wire/index.ts';
import { type AgentCredentials, agentCredentials } from './credentials.ts';
import type { AgentFlags, agentFlags } from './flags.ts';
import { agentMetrics } from './metrics.ts';
import { namespaceCreator } from './namespaces.ts';
import { type AgentOptions, agentOptions } from './options.ts';

/** How long the key material's Secrets may take to appear at the start. */
const credentialsTimeoutMs = 300_000;

/**
 * Runs the agent until aborted.
 * @throws FatalError when it cannot start, with what to do
 */
export async function runAgent(flags: AgentFlags, context: CommandContext<typeof agentFlags>): Promise<void> {
  const settings = agentOptions(flags);
  const loggers = commandLoggers('agent', flags, context);
  const logger = loggers.root;
  const { namespace } = flags;
  const { version } = versionInfo();
  const client = kubeClient(flags);
  const failure = new AbortController();
  const signal = AbortSignal.any([context.signal, failure.signal]);
  const shared = { client, logger, signal, failed: (error: unknown) => failure.abort(error) };
  const remote = `${flags['server-address']}:${flags['server-port']}`;
  logger.info({ version, namespace, mode: flags['agent-mode'], principal: remote }, 'agent starts');

  let unwell: string | undefined = 'waiting for the API server';
  const health = await serveHealth({
    port: flags['healthz-port'],
    healthz: () => ({ ok: unwell === undefined, text: unwell ?? '' }),
  });

  const secretCache = startInformer({ ...shared, type: secrets, namespace });
  const credentials = agentCredentials(settings, { secrets: secretCache, logger, signal });
  const labelSelector = syncSelector(flags['label-selector']);
  const everywhere = flags['destination-based-mapping'];
  const applicationCache = startInformer({
    ...shared,
    type: applications,
    namespace: everywhere ? undefined : namespace,
    labelSelector,
  });
  const projectCache = startInformer({ ...shared, type: appProjects, namespace, labelSelector });
  const caches = { Secrets: secretCache, Applications: applicationCache, AppProjects: projectCache };
  await allSynced(caches, flags['informer-sync-timeout'], signal);

  const managedApplications = new AgentSync({
    applications: kubeStore<Application>({ client, type: applications, informer: applicationCache, fieldManager }),
    namespace,
    ...(everywhere
      ? {
          mapping: (principalNamespace: string) => sameNamespaces(principalNamespace, namespace),
          isAllowed: (name: string) => matchesAny(flags['allowed-namespaces'], name),
          ensureNamespace: flags['create-namespace'] ? namespaceCreator(client, logger) : undefined,
        }
      : {}),
    mismatchPolicy: flags['source-uid-mismatch-policy'] as 'recreate' | 'upsert',
    adoptionPolicy: flags['adoption-policy'] as 'always' | 'never',
    onRecreate: flags['on-application-recreate'] as 'ignore' | 'clear-status' | 'resync',
    log: logger,
  });
  const projects = new AgentProjects({
    store: kubeStore<AppProject>({ client, type: appProjects, informer: projectCache, fieldManager }),
    namespace,
    log: logger,
  });
  const sync = new AgentParts({ mode: 'managed', kinds: [projects, managedApplications], log: logger });
  sync.start(signal);

  const registry = createRegistry();
  const metrics = agentMetrics(registry, () => sync.stats().pending);
  const metricsServer =
    flags['metrics-port'] > 0 ? await serveMetrics({ port: flags['metrics-port'], registry }) : undefined;

  unwell = 'waiting for the key material (Secrets or files)';
  await readyToConnect(credentials, signal);
  unwell = 'not connected to the principal';
  await runWireClient({
    server: remote,
    tls: () => clientTls(settings, credentials),
    credentials: () => settings.credentials,
    mode: 'managed',
    version,
    agentNamespace: namespace,
    ...(flags['keep-alive-ping-interval'] > 0 ? { keepalivePingIntervalMs: flags['keep-alive-ping-interval'] } : {}),
    compression: flags['enable-compression'],
    maxMessageBytes: flags['grpc-max-message-size'],
    logger,
    signal,
    onConnected: (stream, { principalNamespace }) => {
      const peer = peerOnStream({
        stream,
        source: agentSource,
        logger,
        listener: {
          receive: (message) => sync.receive(message),
          acknowledged: (ids) => sync.acknowledged(ids),
          writable: () => sync.writable(),
        },
        received: () => metrics.eventsReceived.inc(),
        sent: () => metrics.eventsSent.inc(),
      });
      metrics.connections.inc();
      metrics.connectionStatus.set(1);
      metrics.connectionStart.setToCurrentTime();
      unwell = undefined;
      sync.connected(peer.connection, { agent: '', principalNamespace });
      return {
        event: peer.event,
        closed: () => {
          metrics.connectionStatus.set(0);
          unwell = 'not connected to the principal';
          sync.disconnected(peer.connection);
        },
      };
    },
    onDisconnected: (error) => {
      unwell = `not connected to the principal: ${error.message}`;
      if (error.code === 'unauthenticated' || error.code === 'certificate-rejected') metrics.authFailures.inc();
    },
  }).catch(shared.failed);
  logger.info('agent stops');
  await Promise.all([health.close(), metricsServer?.close()]);
  if (failure.signal.aborted) throw failure.signal.reason;
}

const fieldManager = 'argocd-agent';

/**
 * Waits for the first listing of everything.
 * @throws FatalError that names what could not be listed in time; the agent is then started anew
 */
async function allSynced(
  caches: Readonly<Record<string, { synced(signal?: AbortSignal): Promise<void> }>>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const missing = new Set(Object.keys(caches));
  const late = AbortSignal.timeout(Math.min(Math.ceil(timeoutMs), 2 ** 31 - 1));
  const all = Object.entries(caches).map(async ([what, cache]) => {
    await cache.synced(AbortSignal.any([signal, late]));
    missing.delete(what);
  });
  try {
    await Promise.all(all);
  } catch (error) {
    await Promise.allSettled(all);
    if (signal.aborted || !late.aborted) throw error;
    throw new FatalError(
      `${[...missing].join(', ')} of this cluster could not be listed within ${formatDuration(timeoutMs)}: ` +
        "are Argo CD's CRDs installed, may the agent list them, and is the API server well? " +
        'A slow cluster may need a larger --informer-sync-timeout (ARGOCD_AGENT_INFORMER_SYNC_TIMEOUT)',
      { cause: error },
    );
  }
}

async function readyToConnect(credentials: AgentCredentials, signal: AbortSignal): Promise<void> {
  const wait = { timeoutMs: credentialsTimeoutMs, signal };
  const flag = (names: string) => `Create it, or name another one with ${names}`;
  await credentials.clientCertificate?.ready({
    ...wait,
    advice: flag('--tls-secret-name or --tls-client-cert and --tls-client-key'),
  });
  await credentials.trust?.ready({ ...wait, advice: flag('--root-ca-secret-name or --root-ca-path') });
}

function clientTls({ flags, tls }: AgentOptions, credentials: AgentCredentials): ClientTls | 'plaintext' {
  if (tls === 'plaintext') return 'plaintext';
  const pair = credentials.clientCertificate?.value;
  if (pair === undefined) throw new FatalError('the client certificate is gone');
  const ca = credentials.trust?.value;
  return {
    ...pair,
    ...(ca === undefined ? {} : { ca }),
    insecure: !tls.verify,
    ...(flags['tls-min-version'] === 'tls1.3' ? { minVersion: 'TLSv1.3' as const } : {}),
    ...(flags['tls-max-version'] === 'tls1.2' ? { maxVersion: 'TLSv1.2' as const } : {}),
  };
}
