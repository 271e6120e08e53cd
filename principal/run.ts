import { hostname } from 'node:os';
import {
  type Application,
  type AppProject,
  applicationRouter,
  PrincipalParts,
  PrincipalProjects,
  PrincipalSync,
  sameNamespaces,
} from '../lib/argocd/index.ts';
import { type AuthMethod, createAuthMethod } from '../lib/auth/index.ts';
import {
  applications,
  appProjects,
  kubeClient,
  kubeStore,
  persistently,
  startInformer,
  syncSelector,
} from '../lib/bridge/index.ts';
import { configMaps, type Informer, type KubeObject, leases, secrets } from '../lib/kube/index.ts';
import {
  type CommandContext,
  commandLoggers,
  createRegistry,
  FatalError,
  type Logger,
  serveHealth,
  serveMetrics,
  versionInfo,
} from '../lib/ops/index.ts';
import { MappedAgents } from './agents.ts';
import { Blocklist, blocklistName } from './blocklist.ts';
import { ConnectionRecords, connectionLabels } from './connections.ts';
import { principalCredentials } from './credentials.ts';
import type { PrincipalFlags, principalFlags } from './flags.ts';
import { ensurePrincipalUid } from './identity.ts';
import { type PrincipalMetrics, principalMetrics } from './metrics.ts';
import { type PrincipalOptions, principalOptions } from './options.ts';
import { serveAgents } from './server.ts';
import { Sessions } from './sessions.ts';

/**
 * Runs the principal until aborted.
 * @throws FatalError when it cannot start, with what to do
 */
export async function runPrincipal(
  flags: PrincipalFlags,
  context: CommandContext<typeof principalFlags>,
): Promise<void> {
  const settings = principalOptions(flags);
  const loggers = commandLoggers('principal', flags, context);
  const logger = loggers.root;
  const { namespace } = flags;
  const client = kubeClient(flags);
  const failure = new AbortController();
  const signal = AbortSignal.any([context.signal, failure.signal]);
  const shared = { client, logger, signal, failed: (error: unknown) => failure.abort(error) };
  logger.info({ version: versionInfo().version, namespace, server: client.server }, 'principal starts');

  let waitingFor: string | undefined = 'the API server';
  const health = await serveHealth({
    port: flags['healthz-port'],
    healthz: () => ({
      ok: waitingFor === undefined,
      text: waitingFor === undefined ? '' : `waiting for ${waitingFor}`,
    }),
  });

  const secretCache = startInformer({ ...shared, type: secrets, namespace });
  const credentials = principalCredentials(settings, { secrets: secretCache, logger, signal });
  const agents = new MappedAgents(logger);
  agents.follow(secretCache);
  const labelSelector = syncSelector(flags['label-selector']);
  const applicationCache = startInformer({ ...shared, type: applications, labelSelector });
  const projectCache = startInformer({ ...shared, type: appProjects, namespace, labelSelector });
  const leaseCache = startInformer({
    ...shared,
    type: leases,
    namespace,
    labelSelector: Object.entries(connectionLabels)
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
  });
  const configCache = startInformer({
    ...shared,
    type: configMaps,
    namespace,
    fieldSelector: `metadata.name=${blocklistName}`,
  });
  const blocklist = new Blocklist(logger);
  const method = await authMethod(settings, blocklist, logger);
  const principalUid = await persistently(
    'establish the identity',
    () => ensurePrincipalUid(client, namespace, signal),
    {
      signal,
      logger,
      isFinal: (error) => error instanceof FatalError,
    },
  );
  const slow = setTimeout(() => {
    logger.warn({ waitingFor }, "still waiting: are Argo CD's CRDs installed, and may the principal list them?");
  }, 30_000);
  for (const [what, cache] of [
    ['Secrets', secretCache],
    ['Applications', applicationCache],
    ['AppProjects', projectCache],
    ['blocked certificates', configCache],
  ] as const) {
    waitingFor = `the list of ${what}`;
    await cache.synced(signal);
  }
  clearTimeout(slow);

  const mapping = flags['destination-based-mapping'] ? 'destination' : 'namespace';
  const route = applicationRouter({ namespace, allowedNamespaces: flags['allowed-namespaces'], mapping });
  const managedApplications = new PrincipalSync({
    applications: kubeStore<Application>({ client, type: applications, informer: applicationCache, fieldManager }),
    principalUid,
    agentOf: route,
    ...(mapping === 'destination'
      ? { namespaceOf: (agent, local) => sameNamespaces(namespace, sessions.namespaceOf(agent) ?? '').toHub(local) }
      : {}),
    concurrency: flags['event-processors'],
    log: logger,
  });
  const projects = new PrincipalProjects({
    store: kubeStore<AppProject>({ client, type: appProjects, informer: projectCache, fieldManager }),
    principalUid,
    mapping,
    log: logger,
  });
  // Projects first: Argo CD refuses an Application whose project it does not know yet.
  const sync = new PrincipalParts({ managed: [projects, managedApplications], log: logger });
  sync.start(signal);

  const records = new ConnectionRecords({
    client,
    namespace,
    identity: process.env.POD_NAME ?? hostname(),
    informer: leaseCache,
    logger,
  });
  const registry = createRegistry();
  const metrics = principalMetrics(registry, () =>
    sessions.agents().map((agent) => [agent, sync.stats(agent).pending] as const),
  );
  countChanges(metrics, applicationCache, 'applications');
  countChanges(metrics, projectCache, 'app_projects');
  const sessions = new Sessions({ sync, isMapped: (agent) => agents.has(agent), records, metrics, logger });
  agents.subscribe(sessions);
  blocklist.follow(configCache, () => sessions.disconnectBlocked((fingerprint) => blocklist.has(fingerprint)));
  const metricsServer =
    flags['metrics-port'] > 0 ? await serveMetrics({ port: flags['metrics-port'], registry }) : undefined;
  const recording = records.run(signal).catch(shared.failed);

  waitingFor = 'the key material (Secrets or files)';
  const server = await serveAgents({
    settings,
    credentials,
    method,
    blocklist,
    sessions,
    logger,
    signal,
  });
  waitingFor = undefined;
  logger.info({ port: server.port, namespace, principalUid }, 'principal serves agents');

  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });
  logger.info('principal stops');
  // First the streams, so that agents go elsewhere at once.
  const closed = server.close();
  await recording;
  await records.close();
  await Promise.all([closed, health.close(), metricsServer?.close()]);
  if (failure.signal.aborted) throw failure.signal.reason;
}

async function authMethod(settings: PrincipalOptions, blocklist: Blocklist, logger: Logger): Promise<AuthMethod> {
  try {
    return await createAuthMethod(settings.auth, {
      isRevoked: (fingerprint) => blocklist.has(fingerprint),
      warn: (message) => logger.warn(message),
    });
  } catch (error) {
    throw new FatalError(`--auth (ARGOCD_PRINCIPAL_AUTH): ${(error as Error).message}`, { cause: error });
  }
}

const fieldManager = 'argocd-agent-principal';

function countChanges(
  metrics: PrincipalMetrics,
  informer: Informer<KubeObject>,
  kind: 'applications' | 'app_projects',
): void {
  informer.subscribe({
    added: () => metrics.changed(kind, 'created'),
    updated: () => metrics.changed(kind, 'updated'),
    deleted: () => metrics.changed(kind, 'deleted'),
  });
}
