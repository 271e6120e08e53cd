import {
  deletionOfAbsent,
  faulty,
  followPrincipal,
  Holdings,
  type PeerFaults,
  playAgent,
  speakOn,
  wirePeer,
} from '../../e2e/peer/index.ts';
import type { AgentMode } from '../../lib/auth/index.ts';
import { agentSource, eventTypes, messageEvent, targets, type WireEvent } from '../../lib/wire/index.ts';

const origin = { source: agentSource };

/** What an agent of a few lines does wrong. */
export interface AgentFaults extends PeerFaults {
  /** Its copies have UIDs of their own. */
  readonly ownUids?: boolean;
  /** It never deletes. */
  readonly keepsAll?: boolean;
  /** It takes the first state of an object for ever. */
  readonly deafToChanges?: boolean;
  /** It answers requests for any object. */
  readonly openToAll?: boolean;
  /** It says nothing about what it does not have. */
  readonly silentAboutAbsence?: boolean;
}

/** Runs an agent whose cluster is a map, and that logs in by header without TLS, until the signal aborts. */
export function runSimpleAgent(port: number, mode: AgentMode, faults: AgentFaults, signal: AbortSignal): Promise<void> {
  const agent = {
    holdings: new Holdings(),
    say(type: string, payload: { readonly uid?: string }) {
      const told = faults.ownUids && payload.uid ? { ...payload, uid: 'own' } : payload;
      peer.say(messageEvent(targets.resourceResync, type, told, origin));
    },
    obeys: ({ type }: WireEvent) =>
      !(faults.keepsAll && type === eventTypes.delete) && !(faults.deafToChanges && type === eventTypes.specUpdate),
  };
  const answer = (event: WireEvent) => {
    if (event.target === targets.resource) {
      const { uuid, name } = JSON.parse(Buffer.from(event.data).toString()) as Record<string, string>;
      const isFree = name === '' || faults.openToAll;
      const body = { uuid, status: isFree ? 200 : 403, resource: '{"kind":"APIResourceList"}' };
      peer.say(messageEvent(targets.resource, eventTypes.response, body, origin, { eventId: event.eventId }));
    } else if (mode === 'managed') {
      followPrincipal(agent, event);
    } else if (event.type === eventTypes.requestUpdate && !faults.silentAboutAbsence) {
      peer.say(deletionOfAbsent(event, agentSource));
    }
  };
  const peer = wirePeer(agentSource, {
    ...faulty(faults, agentSource),
    handle(event) {
      try {
        answer(event);
      } catch {
        return 'no JSON';
      }
      return undefined;
    },
  });
  const first = mode === 'managed' ? eventTypes.requestSyncedResourceList : eventTypes.requestResourceResync;
  return playAgent(port, {
    mode,
    credentials: () => ({ method: 'header', credentials: {} }),
    signal,
    onConnected: (stream) => {
      const handlers = speakOn(peer, stream);
      peer.say(messageEvent(targets.resourceResync, first, { checksum: null }, origin));
      return handlers;
    },
  }).done;
}
