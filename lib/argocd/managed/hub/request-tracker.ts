import { digestOf } from '../../../base/index.ts';
import type { ObjectRef, ResourceKey } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { isInProgress, isSameOperation } from '../../operation-state.ts';
import { placeOf } from '../../place.ts';
import type { AgentApplications } from './agent-applications.ts';
import { type DeliveredRequests, operationMark, triggerMark } from './agent-report.ts';

/** The operation that the agent of an Application has received or is about to receive. */
interface KnownOperation {
  readonly uid: string;
  readonly digest: string;
}

/** Detects new requests of users on the hub, as opposed to what agents reported or have received. */
export class RequestTracker {
  readonly #operations = new Map<string, KnownOperation>();
  /** When the operation began that the hub's object told of last, by Application. */
  readonly #started = new Map<string, { readonly uid: string | undefined; readonly at: unknown }>();
  /** Application → uid of those whose termination the agent knows or is about to know. */
  readonly #terminating = new Map<string, string>();

  /** The hub's Application as it is now, and the agent that has it. */
  follow(peer: AgentApplications, key: ResourceKey, hub: Application): void {
    const at = hub.status?.operationState?.startedAt;
    if (at !== undefined) {
      this.#started.set(placeOf(key), { uid: hub.metadata.uid, at });
    }
    this.#followOperation(peer, key, hub);
    this.#followTermination(peer, key, hub);
  }

  /** Drops what is known of this Application's requests: it does not hold for another agent or incarnation. */
  forget(ref: ObjectRef): void {
    this.#operations.delete(placeOf(ref));
    this.#started.delete(placeOf(ref));
    this.#terminating.delete(placeOf(ref));
  }

  /** Whether the hub's object told of an operation that began then, and no later one. */
  hasShown({ metadata }: Application, key: ResourceKey, startedAt: string): boolean {
    const shown = this.#started.get(placeOf(key));
    return shown?.uid === metadata.uid && shown?.at === startedAt;
  }

  /** An agent's report is about to be written: it must not count as a user's request when the cache shows it. */
  reported(hub: Application, key: ResourceKey, report: Application, writesOperation: boolean): void {
    const uid = hub.metadata.uid ?? '';
    if (writesOperation && report.operation !== undefined) {
      this.#operations.set(placeOf(key), { uid, digest: digestOf(report.operation) });
    }
    if (report.status?.operationState?.phase === 'Terminating') {
      this.#terminating.set(placeOf(key), uid);
    }
  }

  #followOperation(peer: AgentApplications, key: ResourceKey, hub: Application): void {
    const id = placeOf(key);
    const uid = hub.metadata.uid ?? '';
    if (hub.operation === undefined) {
      this.#operations.delete(id);
      if (peer.requested(key, 'set-operation')) {
        // The agent may have received it and keep it for later: it has to receive that there is none any more.
        peer.request(key, 'set-operation');
      }
      return;
    }
    const digest = digestOf(hub.operation);
    const known = this.#operations.get(id);
    if (known?.uid === uid && known.digest === digest) {
      return;
    }
    this.#operations.set(id, { uid, digest });
    // Seen for the first time, after a restart: when the agent reports progress of it, the agent has it.
    if (known?.uid === uid || !isUnderWay(hub)) {
      peer.request(key, 'set-operation');
    }
  }

  #followTermination(peer: AgentApplications, key: ResourceKey, hub: Application): void {
    const id = placeOf(key);
    if (hub.status?.operationState?.phase !== 'Terminating') {
      this.#terminating.delete(id);
    } else if (this.#terminating.get(id) !== hub.metadata.uid) {
      this.#terminating.set(id, hub.metadata.uid ?? '');
      peer.request(key, 'terminate-operation');
    }
  }
}

/** What an agent has received by now of the requests on a hub object. */
export function deliveredTo(peer: AgentApplications, key: ResourceKey, hub: Application): DeliveredRequests {
  const triggers = triggerMark(hub);
  return {
    operation: peer.requested(key, 'set-operation') ? undefined : operationMark(hub),
    triggers: peer.held(key)?.digest?.endsWith(triggers) === true ? triggers : undefined,
  };
}

/** Whether the agent reported that the operation that is asked for runs. */
function isUnderWay({ status, operation }: Application): boolean {
  const state = status?.operationState;
  return isInProgress(state) && isSameOperation(state?.operation, operation);
}
