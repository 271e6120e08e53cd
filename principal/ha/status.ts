import type { HAStatusResponse } from '../../proto/gen/haadminapi/haadmin.ts';
import type { ActiveHub } from './active-phase.ts';
import { mostNamed } from './hub-role.ts';
import type { HaSettings } from './settings.ts';
import type { Standby } from './standby.ts';
import type { HaState } from './states.ts';

/** What a principal that cannot follow the other hub knows of it. */
export interface KnownPeer {
  readonly isReachable: boolean;
  readonly state: HaState | undefined;
}

/** The answer to `ha status`, of an active principal by who follows it, of another one by whom it follows. */
export function haStatus(seen: {
  readonly ha: HaSettings;
  readonly state: HaState;
  readonly active: ActiveHub | undefined;
  readonly standby: Standby | undefined;
  readonly peer: KnownPeer;
  readonly lag: { readonly objects: number; readonly ms: number };
  /** Objects that a standby cannot write. */
  readonly refused: readonly string[];
  /** Why a whole kind takes no part. */
  readonly problem: string | undefined;
  /** What keeps the other hub from being active at the same time. */
  readonly fencing: string;
}): HAStatusResponse {
  const { ha, state, active, standby, peer, lag, fencing, refused, problem } = seen;
  const followers = active?.source.followers ?? [];
  const isActive = state === 'active';
  const followersState = () => (followers.some(({ isReady }) => isReady) ? 'replicating' : 'syncing');
  const activePeerState = followers.length === 0 ? '' : followersState();
  const standbyPeerState = standby?.isConnected ? 'active' : (peer.state ?? '');
  return {
    state,
    preferredRole: ha.role,
    peerAddress: ha.peer?.address ?? '',
    peerReachable: isActive ? followers.length > 0 : standby?.isConnected === true || peer.isReachable,
    peerState: isActive ? activePeerState : standbyPeerState,
    connectedReplicas: followers.length,
    lastEventTimestamp: BigInt(active?.source.lastChange ?? standby?.lastEventAt ?? 0),
    lastSequenceNum: standby?.lastSequence ?? highestSequence(followers),
    connectedAgents: active?.connectedAgents() ?? 0,
    fencing,
    lagObjects: BigInt(lag.objects),
    lagSeconds: lag.ms / 1000,
    problems: [...(problem === undefined ? [] : [problem]), ...(refused.length === 0 ? [] : [refusedText(refused)])],
  };
}

function refusedText(objects: readonly string[]): string {
  const more = objects.length > mostNamed ? ', …' : '';
  return `${objects.length} objects cannot be written on the standby: ${objects.slice(0, mostNamed).join(', ')}${more}`;
}

function highestSequence(followers: readonly { readonly sequence: bigint }[]): bigint {
  return followers.map(({ sequence }) => sequence).sort((a, b) => (a < b ? 1 : -1))[0] ?? 0n;
}
