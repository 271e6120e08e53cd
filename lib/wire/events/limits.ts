import { eventTypes, targets } from './event.ts';

/** The most that the payload of an event may hold. */
export interface PayloadLimit {
  /** Its length in bytes. */
  readonly bytes: number;
  /** The values in its JSON: objects, lists, and what they hold. Parsed, a value takes up to 60 times its length. */
  readonly values: number;
}

const kibi = 1024;
const mebi = 1024 * kibi;
/** The length is that of the whole message, which the connection limits (`--grpc-max-message-size`). */
const asMessage = Number.POSITIVE_INFINITY;

/**
 * An object of Kubernetes. An API server takes requests of 3 MiB, and etcd objects of 1.5 MiB. The status of an Application
 * of this size lists 7,500 resources and has 100,000 values.
 */
const application: PayloadLimit = { bytes: 4 * mebi, values: 128 * kibi };
/**
 * Projects, repositories and keys are written by people: a project of 2,000 destinations has 8,000 values. A mirror is built
 * anew from each of its role policies, which takes longer than parsing.
 */
const replica: PayloadLimit = { bytes: 2 * mebi, values: 16 * kibi };
/** A few numbers, names and checksums. */
const small: PayloadLimit = { bytes: 16 * kibi, values: 64 };
/** A request by a user, with its query and the words of a command. */
const request: PayloadLimit = { bytes: mebi, values: kibi };
/** A body or a value of the cache as one text. */
const answer: PayloadLimit = { bytes: asMessage, values: kibi };

/** What either side may send, by target. Other targets, which nobody reads, are `small`. */
const limits: ReadonlyMap<string, PayloadLimit> = new Map([
  [targets.application, application],
  [targets.appProject, replica],
  [targets.repository, replica],
  [targets.gpgKey, replica],
  [targets.resource, answer],
  [targets.redis, answer],
  [targets.containerLog, request],
  [targets.terminal, request],
]);

/** Types that carry less than their target's limit. */
const limitsOfTypes: ReadonlyMap<string, PayloadLimit> = new Map([
  [eventTypes.error, small],
  [eventTypes.redisRequest, small],
]);

/** The most that the payload of an event of this target and type may hold. */
export function limitOf({ target, type }: { readonly target: string; readonly type: string }): PayloadLimit {
  return limitsOfTypes.get(type) ?? limits.get(target) ?? small;
}
