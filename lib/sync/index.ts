export { type Clock, systemClock } from './clock.ts';
export type { PeerCopy } from './decision.ts';
export { Inbox, type InboxOptions, type InboxOutcome } from './inbox.ts';
export { Outbox, type OutboxOptions } from './outbox.ts';
export { keyString, type Link, type OutboundEvent, type ResourceKey, type Snapshot, type Source } from './resource.ts';
export { type RetryDelays, retryDelay } from './retry-delay.ts';
export { type Delivered, processRuntime, type Runtime, type Tuning } from './runtime.ts';
export {
  type Failure,
  failureOf,
  isAnswer,
  isTooLarge,
  type ObjectRef,
  type Store,
  type StoreChange,
  type StoredObject,
} from './store.ts';
export { TurnQueue } from './turn-queue.ts';
export { refOf, View, type ViewOptions } from './view.ts';
