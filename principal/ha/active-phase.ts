import { type Logger, onAbort } from '../../lib/base/index.ts';
import type { RunningProgram } from '../../lib/bridge/index.ts';
import type { KubeObject } from '../../lib/kube/index.ts';
import type { Detail, Loggers } from '../../lib/ops/index.ts';
import { startEngine } from '../engine.ts';
import { openInputs } from '../inputs.ts';
import { startServers } from '../servers.ts';
import { pinnedMode } from '../sessions/pinned-mode.ts';
import type { PrincipalSettings } from '../settings.ts';
import { replicationAccess } from './access.ts';
import { startApplicationSets } from './application-sets.ts';
import { startKeptOutApplications } from './kept-out-applications.ts';
import { isMirror, replicatedKinds } from './kinds.ts';
import type { HaMetrics } from './metrics.ts';
import { ReplicationSource, type Undelivered } from './replication-source.ts';
import type { HaSettings } from './settings.ts';
import { type HaStateMachine, refusalIn } from './states.ts';

/** How long a demoted principal waits for the other principals of its hub to end, and then for standbys to acknowledge, ms. */
export const drainMs = 15_000;

/** What both phases of a principal of a pair work with. */
export interface PhaseContext {
  readonly settings: PrincipalSettings;
  readonly ha: HaSettings;
  /** Its signal ends with the phase. */
  readonly program: RunningProgram;
  readonly loggers: Loggers & { readonly detail: Detail };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly machine: HaStateMachine;
  readonly metrics: HaMetrics;
}

/** The active hub while it serves. */
export interface ActiveHub {
  readonly source: ReplicationSource;
  connectedAgents(): number;
  /** Why a whole kind takes no part; undefined when all do. */
  problem(): string | undefined;
  /** Whether an agent of that name has a cluster Secret. */
  readonly isAgent: (name: string) => boolean;
  /** Whether other principals of this hub are known to live. */
  hasPeers(): boolean;
  /**
   * Ends what writes. Agents are sent away first, so that they turn to the other principal at once.
   * @param why `lost` when nothing may be written any more; after a demotion standbys get all that users, and the other principals
   *   of this hub, have changed
   * @returns what standbys lack; undefined when nobody knows, because nothing may be written
   */
  stop(why: 'demoted' | 'lost' | 'stopped'): Promise<Undelivered | undefined>;
}

/**
 * Starts a principal as if it was alone, and lets standbys follow it.
 * @param fence throws when this principal may write no more
 * @param bothHadBefore see {@link ReplicationSource.bothHad}
 * @throws FatalError when something is missing; the signal's reason when the phase has ended meanwhile, and what has begun with it
 */
export async function startActiveHub(
  context: PhaseContext,
  fence: () => void,
  bothHadBefore: ReadonlySet<string> | undefined,
): Promise<ActiveHub> {
  const begun: (() => Promise<unknown> | undefined)[] = [];
  try {
    return await start(context, fence, bothHadBefore, begun);
  } catch (error) {
    // The next phase needs the same ports. One that has failed ends the program.
    if (context.program.signal.aborted) {
      for (const end of begun.reverse()) {
        await end();
      }
    }
    throw error;
  }
}

/** @param begun gets what ends that which has begun; the program's signal is aborted then */
async function start(
  context: PhaseContext,
  fence: () => void,
  bothHadBefore: ReadonlySet<string> | undefined,
  begun: (() => Promise<unknown> | undefined)[],
): Promise<ActiveHub> {
  const { settings, ha, loggers, env, machine, metrics } = context;
  const logger: Logger = loggers.root;
  let isWriter = true;
  const client = context.program.clientWith(() => {
    fence();
    if (!isWriter) {
      throw new Error(`this principal may not write: ${refusalIn(machine.current) ?? 'it stops'}`);
    }
  });
  begun.push(() => client.close());
  const writing = new AbortController();
  const unlisten = onAbort(context.program.signal, () => writing.abort(context.program.signal.reason));
  const program = { ...context.program, client };
  const inputs = await openInputs(settings, program, loggers, env);
  const { caches, agents, method, blocklist, principalUid, replicas, peerPort } = inputs;
  begun.push(() => peerPort?.close());
  const applicationSets = await startApplicationSets({ ...program, logger });
  const labelSelector = settings.flags['label-selector'];
  const keptOut = await startKeptOutApplications({ ...program, logger }, labelSelector);
  const engine = startEngine(settings, { ...program, signal: writing.signal }, inputs, loggers, env);
  begun.push(() => engine.ended);
  const kinds = replicatedKinds(caches, applicationSets.informer, keptOut, labelSelector);
  const agentsOf = (object: KubeObject) =>
    engine.hub.agentOf(object as Parameters<typeof engine.hub.agentOf>[0]) ??
    (isMirror(object) ? object.metadata.namespace : undefined);
  const source = new ReplicationSource({
    kinds: applicationSets.problem === undefined ? kinds : kinds.filter(({ name }) => name !== 'ApplicationSet'),
    client,
    principalUid,
    namespace: settings.flags.namespace,
    agents: () => {
      const connected = new Set(servers.connectedAgents());
      const isElsewhere = (agent: string) => typeof replicas?.directory.holderOf(agent) === 'object';
      return agents.names().map((name) => ({
        name,
        mode: pinnedMode(engine.modes, name) ?? '',
        isConnected: connected.has(name) || isElsewhere(name),
      }));
    },
    agentOf: agentsOf,
    bothHadBefore,
    cutOff: () => replicas?.cutOff,
    firstAckMs: ha.firstAckMs,
    sent: () => metrics.forwarded(),
    logger,
    signal: program.signal,
  });
  applicationSets.onListed(() => {
    for (const kind of kinds.filter(({ name }) => name === 'ApplicationSet')) {
      source.begin(kind);
    }
  });
  // It does not know what users change, and would say that its standby has everything.
  const unfollow = replicas?.onCutOff((why) => source.end(why));
  const authorize = replicationAccess({
    method,
    isBlocked: (fingerprint) => blocklist.has(fingerprint),
    isAgent: (name) => agents.has(name),
    allowed: ha.allowed,
    peerHost: ha.peer?.host,
    logger,
  });
  // An agent may not follow, and one may get the name of a standby that does.
  agents.subscribe({ mapped: () => source.judge() });
  program.health('waiting for the key material (Secrets or files)');
  const servers = await startServers(settings, { ...program, signal: writing.signal }, inputs, engine, loggers, {
    refuse: () => {
      const refusal = refusalIn(machine.current);
      if (refusal !== undefined) {
        metrics.rejected(machine.current);
      }
      return refusal;
    },
    replication: {
      authorize,
      subscribe: (...args) => source.subscribe(...args),
      snapshot: (connection) => source.snapshot(connection),
      status: (connection) => source.status(connection),
      confirm: (request, connection) => source.confirm(request, connection),
      refused: (resources, connection) => source.refused(resources, connection),
    },
  });
  program.health(undefined);
  logger.info({ port: servers.port, namespace: settings.flags.namespace, principalUid }, 'principal serves agents');
  return {
    source,
    connectedAgents: () => servers.connectedAgents().length,
    problem: () => applicationSets.problem,
    isAgent: (name) => agents.has(name),
    hasPeers: () => replicas !== undefined && replicas.directory.peers().length > 0,
    async stop(why) {
      const mayWrite = why !== 'lost';
      if (why === 'stopped') {
        source.refuse('the principal is shutting down');
      }
      servers.endAgents(refusalIn(machine.current) ?? 'the principal is shutting down');
      writing.abort(new Error('this principal is not active any more'));
      await Promise.all([engine.ended, servers.ended]);
      if (mayWrite) {
        await engine.recordEnd();
      }
      await engine.flushEvents();
      isWriter = false;
      if (why === 'demoted') {
        await replicas?.alone(drainMs, program.signal);
      }
      const left = mayWrite ? await source.drained(drainMs, why === 'demoted') : undefined;
      source.end(refusalIn(machine.current) ?? 'the principal is shutting down');
      await servers.closeAgents();
      unlisten();
      unfollow?.();
      await client.close();
      return left;
    },
  };
}
