/**
 * The ground floor: small mechanisms that several rooms need, each once. It imports nothing of the house and knows no
 * program, no cluster and no protocol.
 */
export { abortable, aborted, becomes, onAbort, sleep, withDeadline } from './abort.ts';
export {
  bracketed,
  hostPort,
  listenHost,
  networkOf,
  plainAddress,
  remoteAddressOf,
  splitHostPort,
  withoutBrackets,
} from './addresses.ts';
export { Backoff, type BackoffOptions, backoffDelay } from './backoff.ts';
export { BoundedMap, BoundedSet } from './bounded.ts';
export { canonicalJson, digestOf } from './canonical-json.ts';
export { isDnsLabel } from './dns-label.ts';
export { ExactInteger, parseJson } from './exact-json.ts';
export { FairTurns, type TurnLimits } from './fair-turns.ts';
export { type JsonPatchOperation, jsonPatchOf, needsJsonPatch } from './json-patch.ts';
export { jsonSize } from './json-size.ts';
export { isEqual, isMap } from './json-value.ts';
export { keptFor } from './kept.ts';
export { KeyedMutex } from './keyed-mutex.ts';
export { isLabelKey, isLabelValue } from './label.ts';
export { type LabelCompletion, type LabelTest, labelCompletion, labelSelector } from './label-selector.ts';
export type { Logger } from './logger.ts';
export { applyMergePatch, type MergePatch, mergedPatches, mergePatchBetween } from './merge-patch.ts';
export { principalObjects } from './principal-objects.ts';
export { compareVersions, hasGoneBack, isNewerVersion } from './resource-version.ts';
export { Semaphore } from './semaphore.ts';
export { type ArchivedFile, tarOf } from './tar.ts';
export { after, every, type IdleTimer, type TimerOptions, timeoutSignal, whenIdle } from './timer.ts';
export { type RateLimit, TokenBucket } from './token-bucket.ts';
export { trusting } from './trusting.ts';
export { wellKnown } from './well-known.ts';
