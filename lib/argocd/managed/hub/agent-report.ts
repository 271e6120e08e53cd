import type { ResourceKey } from '../../../sync/index.ts';
import type { ApplicationMessage, ErrorMessage } from '../../peer/messages.ts';

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
