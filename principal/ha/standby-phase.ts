import { aborted } from '../../lib/base/index.ts';
import type { KubeClient } from '../../lib/kube/index.ts';
import { type ClientTls, GrpcError, grpcStatus } from '../../lib/wire/index.ts';
import type { PrincipalCredentials } from '../credentials.ts';
import { openInputs } from '../inputs.ts';
import { serveAgents } from '../sessions/agent-server.ts';
import { AgentIntroductions } from '../sessions/introductions.ts';
import type { PrincipalSettings } from '../settings.ts';
import { replicationAccess } from './access.ts';
import type { PhaseContext } from './active-phase.ts';
import { recordModes } from './agent-modes.ts';
import { startApplicationSets } from './application-sets.ts';
import { asFollower } from './follower-lease.ts';
import { KeptObjects } from './kept-objects.ts';
import { replicatedKinds } from './kinds.ts';
import { keysOnBothHubs } from './on-both-hubs.ts';
import { Standby } from './standby.ts';
import { StandbyWriter } from './standby-writer.ts';
import { refusalIn } from './states.ts';
import type { KnownPeer } from './status.ts';

/** What happens to a principal of a standby hub. */
export interface StandbyListener {
  /** This principal follows the other hub from now on, or, undefined, does not any more. */
  follows(standby: Standby | undefined): void;
  /** The other hub cannot be followed; what is known of it. */
  disconnected(peer: KnownPeer): void;
  /** Other objects than before were changed here and cannot be put back. */
  changedHere(): void;
  /** Whether this hub is about to become active. */
  isPromoted(): boolean;
}

/** A principal of a standby hub while it runs. */
export interface StandbyHub {
  readonly ended: Promise<unknown>;
  bothHad(): ReadonlySet<string>;
  /** Why a whole kind takes no part; undefined when all do. */
  problem(): string | undefined;
  /** Whether an agent of that name has a cluster Secret. */
  readonly isAgent: (name: string) => boolean;
}

/**
 * Starts to follow the other hub; of several principals one does, see {@link asFollower}. Agents may log in and are refused when they
 * open their stream, as with argocd-agent's. Resolves when agents are answered, with the end of the phase and, at any time, the
 * objects that both hubs have had ({@link keysOnBothHubs}), and why this hub cannot become equal.
 */
export async function startStandbyHub(context: PhaseContext, listener: StandbyListener): Promise<StandbyHub> {
  const { settings, ha, program, loggers, machine, metrics } = context;
  const { flags } = settings;
  const { client, signal } = program;
  const logger = loggers.root;
  const inputs = await openInputs(settings, program, loggers, context.env, false);
  const { caches, credentials, agents, method, blocklist, connections } = inputs;
  agents.subscribe({ unmapped: (agent) => connections.agentGone(agent) });
  const applicationSets = await startApplicationSets({ client, logger, signal, failed: program.failed });
  const kinds = replicatedKinds(caches, applicationSets.informer);
  const bothHad = () => keysOnBothHubs(kinds);
  const problem = () => applicationSets.problem;
  const isAgent = (name: string) => agents.has(name);
  const refuse = () => refusalIn(machine.current) ?? 'this principal is about to become active';
  const refused = (): never => {
    throw new GrpcError(grpcStatus.unavailable, refuse());
  };
  const { server } = await serveAgents({
    settings,
    credentials,
    method,
    connections,
    modes: { agents, recorded: () => undefined },
    refused: () => undefined,
    called: () => undefined,
    refusedMode: () => undefined,
    introductions: new AgentIntroductions((agent) => agents.has(agent)),
    loggedIn: () => undefined,
    sessions: {
      subscribe: () => {
        throw new Error('a standby takes no agents');
      },
      disconnectWithdrawn: async () => undefined,
    },
    live: undefined,
    enrolment: undefined,
    pair: {
      refuse: () => {
        metrics.rejected(machine.current);
        return refuse();
      },
      replication: {
        authorize: replicationAccess({
          method,
          isBlocked: (fingerprint) => blocklist.has(fingerprint),
          isAgent: (name) => agents.has(name),
          allowed: ha.allowed,
          peerHost: ha.peer?.host,
          logger,
        }),
        subscribe: refused,
        snapshot: async () => refused(),
        status: () => ({ currentSequenceNum: 0n, pendingEvents: 0, lastEventUnix: 0n, connectedReplicas: 0 }),
        confirm: async () => refused(),
        refused,
      },
    },
    logger,
    signal,
  });
  // The phase may have ended meanwhile.
  const closed = aborted(signal).then(() => server.close());
  const { peer } = ha;
  if (peer === undefined) {
    logger.warn({ hint: 'set --ha-peer-address' }, 'this principal is not active, and follows no other one');
    return { ended: closed, bothHad, problem, isAgent };
  }
  let modes: ReadonlyMap<string, string> = new Map();
  const isManaged = (namespace: string) =>
    modes.get(namespace) === 'managed' || (flags['destination-based-mapping'] && modes.get(namespace) !== 'autonomous');
  const follow = async (writer: KubeClient, following: AbortSignal) => {
    const standbyWriter = new StandbyWriter({
      client: writer,
      namespace: flags.namespace,
      isManaged,
      applicationSetUid: (ref) => applicationSets.informer.get(ref)?.metadata.uid,
      logger,
    });
    const kept = new KeptObjects({ writer: standbyWriter, refused: () => listener.changedHere(), logger });
    for (const kind of kinds) {
      kept.follow(kind);
    }
    const standby = new Standby({
      server: peer.address,
      tls: () => clientTls(settings, credentials),
      kinds,
      writer: standbyWriter,
      kept,
      agents: (known) => {
        modes = known;
        void recordModes(known, {
          client: writer,
          namespace: flags.namespace,
          cache: caches.Leases,
          logger,
          signal: following,
        });
      },
      synced: () => machine.to('replicating'),
      disconnected: (found) => {
        if (machine.current === 'replicating') {
          machine.to('disconnected');
        }
        listener.disconnected(found);
      },
      isPromoted: () => listener.isPromoted(),
      metrics,
      logger,
    });
    applicationSets.onListed(() => standby.compareAgain());
    listener.follows(standby);
    await standby.run(following);
    listener.follows(undefined);
  };
  const followed = flags['enable-replicas']
    ? asFollower({ flags, program, logger, signal }, follow)
    : follow(client, signal);
  return { ended: Promise.all([closed, followed]), bothHad, problem, isAgent };
}

/** argocd-agent's principals, too, show their server certificate when they follow another one. */
function clientTls({ tls }: PrincipalSettings, credentials: PrincipalCredentials): ClientTls | 'plaintext' {
  const pair = credentials.server?.value;
  if (tls === 'plaintext' || pair === undefined) {
    return 'plaintext';
  }
  const ca = credentials.clientTrust?.value;
  return { ...pair, ...(ca === undefined ? {} : { ca }), ...tls.settings };
}
