import type { Application, AppProject } from '../../lib/argocd/index.ts';
import { annotations } from '../../lib/argocd/index.ts';
import { aborted, type Logger, splitHostPort } from '../../lib/base/index.ts';
import { type RunningProgram, startInformer } from '../../lib/bridge/index.ts';
import { connectionRecord } from '../../lib/clusters/index.ts';
import {
  type ConfigMap,
  configMaps,
  type Informer,
  type KubeObject,
  keyOf,
  type Lease,
  parseKey,
} from '../../lib/kube/index.ts';
import { decodeSecret, followSecret, parseTrust, Reloadable } from '../../lib/ops/index.ts';
import { shownApplications, stationsOf } from '../../lib/way/index.ts';
import type { ServerTls } from '../../lib/wire/index.ts';
import type { PrincipalEngine } from '../engine.ts';
import type { PrincipalInputs } from '../inputs.ts';
import { firstMaterial } from '../live/key-material.ts';
import type { PrincipalSettings } from '../settings.ts';
import type { ExtensionCaller } from './access/extension-callers.ts';
import { PageAccess } from './access/page-access.ts';
import type { PageViewer } from './access/page-viewers.ts';
import { FleetPage } from './fleet-page.ts';
import { listApplications } from './listed-applications.ts';
import { ApplicationTally } from './model/application-tally.ts';
import { FleetModel } from './model/fleet-model.ts';
import { historyStepMs } from './model/history.ts';
import { PageLenses } from './page-lenses.ts';
import { servePages } from './page-server.ts';

/** The fleet page of a principal that runs. */
export interface RunningFleetPage {
  /** A login of an agent was refused. */
  refused(agent: string, message: string): void;
  /** Resolves when it has ended, after the program's signal. */
  readonly ended: Promise<void>;
}

/**
 * Shows the fleet at `--fleet-page-listen`, until aborted; undefined without that flag. Nothing else waits for it.
 */
export function startFleetPage(context: {
  settings: PrincipalSettings;
  program: RunningProgram;
  inputs: PrincipalInputs;
  engine: PrincipalEngine;
  logger: Logger;
}): RunningFleetPage | undefined {
  const { settings, program, inputs, engine, logger } = context;
  const { signal } = program;
  if (settings.flags['fleet-page-listen'] === '') {
    return undefined;
  }
  const { caches, agents } = inputs;
  const { model, tally } = followFleet(program, inputs, engine);
  const access = pageAccess(settings, program, inputs, logger);
  const lenses = new PageLenses(model, access.rights, (agent) =>
    agents.clustersOf(agent).map(({ secret, server }) => ({ server, project: decodeSecret(secret).project ?? '' })),
  );
  const applications = (agent: string, viewer: PageViewer) =>
    listApplications(
      [...tally.keysOf(agent)].flatMap(
        (key) => (caches.Applications.get(parseKey(key)) as Application | undefined) ?? [],
      ),
      (application) => access.rights.seesApplication(viewer, application),
    );
  // Asked of the API server: caches do not keep who wrote what when.
  const way = async ({ project, namespace, name }: ExtensionCaller['application']) => {
    const hub = await program.client.get(shownApplications, { namespace, name }, signal);
    if (hub === undefined || (hub.spec?.project || 'default') !== project) {
      return undefined;
    }
    const application = hub as unknown as Application;
    const agent = tally.agentOf(application);
    const refusal = agent === undefined ? undefined : engine.hub.refusalOf(application, agent);
    // Whoever may write Applications may name any cluster: one that the project denies is not told of.
    const shown = refusal === undefined ? agent : undefined;
    const record = shown === undefined ? undefined : recordOf(inputs, shown);
    return { agent: shown, stations: stationsOf({ hub, agent, refusal, record, copy: undefined }) };
  };
  const { 'fleet-page-login-url': loginUrl, 'fleet-page-path': path } = settings.flags;
  const page = new FleetPage({ access: access.rights, lenses, applications, way, path, loginUrl, logger, signal });
  const ended = serve(context, page, access.settled).finally(() => model.close());
  return { refused: (agent, message) => model.refused(agent, message), ended };
}

/** Follows what the principal knows. */
function followFleet(
  { registry, signal }: RunningProgram,
  { caches, agents }: PrincipalInputs,
  { open, records, introductions, hub, identity }: PrincipalEngine,
): { model: FleetModel; tally: ApplicationTally } {
  // An autonomous agent's Applications are in the namespace that is called like it.
  const tally = new ApplicationTally((application) => {
    const { namespace = '', annotations: notes } = application.metadata;
    const isMirror = (notes?.[annotations.sourceUid] ?? '') !== '';
    return hub.agentOf(application) ?? (isMirror && agents.has(namespace) ? namespace : undefined);
  });
  const certificates = new Map<string, { from: Date; ends: Date }>();
  const messages = async () => {
    const counts = await Promise.all(
      ['principal_events_received', 'principal_events_sent'].map((name) => registry.getSingleMetric(name)?.get()),
    );
    return counts.reduce((sum, count) => sum + (count?.values[0]?.value ?? 0), 0);
  };
  const model = new FleetModel({
    agents: () => agents.names(),
    messages,
    signs(agent) {
      const [cluster] = agents.clustersOf(agent);
      if (cluster === undefined) {
        return undefined;
      }
      const session = open.get(agent);
      const record = recordOf({ caches }, agent);
      // Connected to another replica, or to a former process that the agent has not come back from yet.
      const elsewhere = record?.isConnected === true && record.holder !== identity ? dateOf(record.since) : undefined;
      const certificate = session?.session.peer.certificate;
      if (certificate !== undefined) {
        certificates.set(agent, { from: certificate.validFromDate, ends: certificate.validToDate });
      }
      const connectedSince = session?.since ?? elsewhere;
      return {
        agent,
        title: cluster.name || agent,
        mode: session?.session.mode ?? records.modeOf(agent) ?? cluster.mode ?? '',
        version: introductions.of(agent)?.version ?? record?.version ?? '',
        connectedSince,
        lastSeen: connectedSince === undefined ? (records.lastSeen(agent) ?? dateOf(record?.lastSeen)) : undefined,
        pending: session === undefined ? 0 : hub.sync.stats(agent).pending,
        certificate: certificates.get(agent),
        applications: tally.countsOf(agent),
      };
    },
  });
  const touch = (names: readonly string[]) => {
    for (const name of names) {
      model.touch(name);
    }
  };
  const put = (application: KubeObject) =>
    touch(tally.put(keyOf(application.metadata), application as unknown as Application));
  caches.Applications.subscribe({
    added: put,
    updated: (_old, now) => put(now),
    deleted: (last) => touch(tally.delete(keyOf(last.metadata))),
  });
  agents.subscribe({ unmapped: (agent) => certificates.delete(agent), changed: (agent) => model.touch(agent) });
  const changed = (agent: string) => model.touch(agent);
  open.subscribe({ connected: changed, disconnected: changed });
  const heard = (lease: Lease) => touch([connectionRecord(lease)?.agent ?? '']);
  caches.Leases.subscribe({ added: heard, updated: (_old, now) => heard(now), deleted: heard });
  const sampler = setInterval(() => void model.sample(), historyStepMs);
  signal.addEventListener('abort', () => clearInterval(sampler), { once: true });
  void model.sample();
  return { model, tally };
}

/** The record of an agent's connection. */
function recordOf({ caches }: Pick<PrincipalInputs, 'caches'>, agent: string) {
  const record = caches.Leases.byIndex('agent', agent)[0];
  return record && connectionRecord(record);
}

/** Argo CD's accounts and rights. `settled`: they have been read, or may not be. */
function pageAccess(
  { flags }: PrincipalSettings,
  { client, signal, failed }: RunningProgram,
  { caches, link }: PrincipalInputs,
  logger: Logger,
): { rights: PageAccess; settled: Promise<unknown> } {
  const { namespace } = flags;
  const named = (name: string) =>
    startInformer<ConfigMap>({
      type: configMaps,
      namespace,
      fieldSelector: `metadata.name=${name}`,
      client,
      logger,
      signal,
      failed,
    });
  const [settings, policy] = [named('argocd-cm'), named('argocd-rbac-cm')];
  const rights = new PageAccess({
    namespace,
    configMaps: { settings, policy },
    secrets: caches.Secrets,
    projects: caches['all AppProjects'] as unknown as Informer<AppProject & KubeObject>,
    // Where Argo CD keeps the identifiers of revoked tokens.
    isRevoked: async (id) => (await link.get(`revoked-token|${id}`)) !== undefined,
    proxies: { loopback: flags['fleet-page-proxy-loopback'], names: new Set(flags['fleet-page-proxy-names']) },
    logger,
  });
  return { rights, settled: Promise.all([settings.settled(signal), policy.settled(signal)]) };
}

async function serve(
  { settings, program, inputs, logger }: Parameters<typeof startFleetPage>[0],
  page: FleetPage,
  accessSettled: Promise<unknown>,
): Promise<void> {
  const { flags } = settings;
  const { signal } = program;
  const address = splitHostPort(flags['fleet-page-listen']);
  if (address === undefined) {
    return;
  }
  await accessSettled.catch(() => undefined);
  const tls = await serverTls(settings, inputs, logger, signal);
  if (tls === undefined || signal.aborted) {
    return;
  }
  const server = await servePages({
    address,
    path: flags['fleet-page-path'],
    tls: tls.now(),
    handler: (request, response) => page.handle(request, response),
    certified: inputs.connections.port('fleet page'),
    logger,
  });
  logger.info({ port: server.port, path: flags['fleet-page-path'] }, 'the fleet page is served');
  tls.follow(server.setTls);
  await aborted(signal);
  await server.close();
}

/** What the page's server proves itself with; undefined when the program ends before it is there. */
async function serverTls(
  settings: PrincipalSettings,
  { credentials, caches }: PrincipalInputs,
  logger: Logger,
  signal: AbortSignal,
): Promise<{ now(): ServerTls | 'plaintext'; follow(use: (tls: ServerTls) => void): void } | undefined> {
  const { flags } = settings;
  const { server } = credentials;
  if (flags['fleet-page-plaintext'] || server === undefined) {
    return { now: () => 'plaintext', follow: () => undefined };
  }
  const secret = flags['fleet-page-proxy-ca-secret-name'];
  const proxyCa =
    secret === ''
      ? undefined
      : new Reloadable<string>({
          origin: `Secret ${flags.namespace}/${secret}`,
          parse: (fields) => parseTrust(fields, ['ca.crt', 'tls.crt']),
          logger,
        });
  if (proxyCa !== undefined) {
    followSecret(caches.Secrets, secret, proxyCa);
  }
  const made = (): ServerTls | undefined => {
    const allowed = settings.tls === 'plaintext' ? {} : settings.tls.settings;
    const clientCa = proxyCa?.value;
    return server.value && { ...server.value, ...allowed, ...(clientCa === undefined ? {} : { clientCa }) };
  };
  const first = await firstMaterial(made, [server], {
    what: 'fleet page',
    flag: 'tls-secret-name',
    off: 'fleet-page-listen=',
    secrets: caches.Secrets,
    logger,
    signal,
  });
  return (
    first && {
      now: () => made() ?? first,
      follow(use) {
        const reload = () => {
          const next = made();
          try {
            if (next !== undefined) {
              use(next);
            }
          } catch (error) {
            logger.error({ error }, "the fleet page's new certificate cannot be used, the former one stays in use");
          }
        };
        server.subscribe(reload);
        proxyCa?.subscribe(reload);
      },
    }
  );
}

/** The moment that a record names; undefined when it is none. */
function dateOf(text: string | undefined): Date | undefined {
  const date = new Date(text ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
