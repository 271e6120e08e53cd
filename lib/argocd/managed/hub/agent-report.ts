import { digestOf } from '../../../base/index.ts';
import type { ResourceKey } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import type { ApplicationMessage, ErrorMessage } from '../../peer/messages.ts';
import { triggersOf } from '../../triggers.ts';

/** A message of an agent, with what was known of the hub's own requests when it arrived. */
export interface AgentReport {
  /** The hub's Application that it is about. */
  readonly key: ResourceKey;
  readonly message: ApplicationMessage | ErrorMessage;
  /** The requests of the hub's object that the agent had got by then: only to these can the report be an answer. */
  readonly delivered: DeliveredRequests;
  readonly terminating: boolean;
  /** Set when the report is processed again; it is acknowledged already. */
  readonly again?: string;
}

/** What an agent has received of the requests on a hub object; undefined where it has not received what is there. */
export interface DeliveredRequests {
  /** Digest of `operation`, empty when there was none. */
  readonly operation: string | undefined;
  /** Digest of the trigger annotations, empty when there were none. */
  readonly triggers: string | undefined;
}

/** Equal for two objects with the same trigger annotations; starts with a character that no digest has. */
export function triggerMark(hub: Application): string {
  const triggers = triggersOf(hub);
  return `|${Object.keys(triggers).length === 0 ? '' : digestOf(triggers)}`;
}

/** Equal for two objects with the same operation. */
export function operationMark(hub: Application): string {
  return hub.operation === undefined ? '' : digestOf(hub.operation);
}
