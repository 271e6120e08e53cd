import { randomUUID } from 'node:crypto';
import type { FairTurns, Logger } from '../base/index.ts';
import { type Clock, systemClock } from './clock.ts';
import type { ResourceKey } from './resource.ts';
import type { RetryDelays } from './retry-delay.ts';

/** What a program gets from the machine it runs on; a simulation brings its own. */
export interface Runtime {
  /** For timers and durations. */
  readonly clock: Clock;
  /** Numbers in [0, 1), for jitter. */
  readonly random: () => number;
  /** A UUID that was never given before. */
  readonly newId: () => string;
  /** Wall-clock time, for times that people read. */
  readonly today: () => Date;
  readonly log: Logger;
  /** Called when a peer has acknowledged the state of a resource, or that it is gone. Default: nothing. */
  readonly delivered?: ((delivery: Delivered) => void) | undefined;
  /**
   * Keeps what the running code works for, such as a trace, and gives a function that does later work for it. Default: nothing is
   * kept, as that costs some microseconds for each message.
   */
  readonly context?: (() => <R>(work: () => R) => R) | undefined;
  /**
   * Divides among turns of the event loop what has to be looked at when one change concerns many peers. Default: all at once. It is
   * known by who looks.
   */
  readonly turns?: FairTurns<object> | undefined;
}

/** A state of a resource that has arrived at a peer. */
export interface Delivered {
  readonly key: ResourceKey;
  /** For how long the peer lacked it since this process noticed the change, in milliseconds. */
  readonly lagMs: number;
  /** The source's object now; undefined when there is none any more. */
  readonly object: unknown;
}

/** How much is done at once, and how soon again. Every value has a default where it is used. */
export interface Tuning {
  /** Resources of one peer that may wait for their first acknowledgement. */
  readonly maxInFlight?: number | undefined;
  /** Messages of one peer that are worked on at once. */
  readonly concurrency?: number | undefined;
  /** When an event that was not acknowledged is sent again. */
  readonly resend?: RetryDelays | undefined;
}

/** The runtime of this process, with this log. */
export function processRuntime(log: Logger): Runtime {
  return { clock: systemClock, random: Math.random, newId: randomUUID, today: () => new Date(), log };
}
