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
  /** Whether this hub is about to become active. */
  isPromoted(): boolean;
}

/**
 * Starts to follow the other hub; of several principals one does, see {@link asFollower}. Agents may log in and are refused when they
 * open their stream, as with argocd-agent's. Resolves when agents are answered, with the end of the phase and, at any time, the
 * objects that both hubs have had ({@link keysOnBothHubs}).
 */
export async function startStandbyHub(
  context: PhaseContext,
  listener: StandbyListener,
): Promise<{ readonly ended: Promise<unknown>; readonly bothHad: () => ReadonlySet<string> }> {
  const { settings, ha, program, loggers, machine, metrics } = context;
  const { flags } = settings;
  const { client, signal } = program;
  const logger = loggers.root;
  const inputs = await openInputs(settings, program, loggers, context.env, false);
  const { caches, credentials, agents, method, blocklist } = inputs;
  blocklist.follow(caches['blocked certificates'], () => undefined);
  const applicationSets = await startApplicationSets({ client, logger, signal, failed: program.failed });
  const kinds = replicatedKinds(caches, applicationSets);
  const bothHad = () => keysOnBothHubs(kinds);
  const refuse = () => refusalIn(machine.current) ?? 'this principal is about to become active';
  const refused = (): never => {
    throw new GrpcError(grpcStatus.unavailable, refuse());
  };
  const { server } = await serveAgents({
    settings,
    credentials,
    method,
    blocklist,
    modes: { agents, recorded: () => undefined },
    refused: () => undefined,
    called: () => undefined,
    refusedMode: () => undefined,
    introductions: new AgentIntroductions(),
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
      },
    },
    logger,
    signal,
  });
  const closed = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => void server.close().then(resolve), { once: true });
  });
  const { peer } = ha;
  if (peer === undefined) {
    logger.warn({ hint: 'set --ha-peer-address' }, 'this principal is not active, and follows no other one');
    return { ended: closed, bothHad };
  }
  let modes: ReadonlyMap<string, string> = new Map();
  const isManaged = (namespace: string) =>
    modes.get(namespace) === 'managed' || (flags['destination-based-mapping'] && modes.get(namespace) !== 'autonomous');
  const follow = async (writer: KubeClient, following: AbortSignal) => {
    const standby = new Standby({
      server: peer.address,
      tls: () => clientTls(settings, credentials),
      kinds,
      writer: new StandbyWriter({
        client: writer,
        namespace: flags.namespace,
        isManaged,
        applicationSetUid: (ref) => applicationSets?.get(ref)?.metadata.uid,
        logger,
      }),
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
    listener.follows(standby);
    await standby.run(following);
    listener.follows(undefined);
  };
  const followed = flags['enable-replicas']
    ? asFollower({ flags, program, logger, signal }, follow)
    : follow(client, signal);
  return { ended: Promise.all([closed, followed]), bothHad };
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
