export { awaitObject } from './await-object.ts';
export { Answers } from './cache/answers.ts';
export { cacheCaughtUp } from './cache/caught-up.ts';
export type { Indexer } from './cache/indexed-store.ts';
export { Informer, type InformerHandler, type InformerOptions } from './cache/informer.ts';
export { MultiNamespaceInformer, type MultiNamespaceInformerOptions } from './cache/multi-namespace-informer.ts';
export type { ReflectorStats } from './cache/reflector.ts';
export { TextPool } from './cache/text-pool.ts';
export { KubeClient } from './client.ts';
export type {
  ClientOptions,
  DeleteOptions,
  ListOptions,
  ListPage,
  ObservedRequest,
  RawRequest,
  RequestOptions,
  WriteOptions,
} from './client-options.ts';
export {
  finalizerPatch,
  findCondition,
  hasFinalizer,
  isConditionTrue,
  rfc3339,
  rfc3339Micro,
  setCondition,
} from './conditions.ts';
export {
  ApiError,
  ConnectionError,
  isAlreadyExists,
  isConflict,
  isForbidden,
  isGone,
  isInvalid,
  isNotFound,
  isRetryable,
  type StatusDetails,
} from './errors.ts';
export { EventRecorder, type EventRecorderOptions } from './event-recorder.ts';
export { LeadershipLostError, type LeaseOptions, runWithLease } from './lease.ts';
export * from './resources.ts';
export type { HttpBody, HttpResponse } from './transport/connection.ts';
export type { KubeContext } from './transport/kubeconfig.ts';
export {
  apiVersionOf,
  type Condition,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type ObjectMeta,
  type OwnerReference,
  parseKey,
  type ResourceType,
  resourceType,
} from './types.ts';
export type { WatchEvent } from './watch.ts';
export {
  type Requeue,
  WorkQueue,
  type WorkQueueObserver,
  type WorkQueueOptions,
  type WorkQueueStats,
} from './workqueue.ts';
