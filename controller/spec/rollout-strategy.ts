import { z } from 'zod';
import { listOf, quoted } from '../hub/index.ts';

/** A number of clusters, or a percentage of them. */
export type Amount = { readonly count: number } | { readonly percent: number };

/** Selects a decision group of a Placement. */
export interface DecisionGroupRef {
  readonly groupName?: string | undefined;
  readonly groupIndex?: number | undefined;
}

/** How clusters follow a new version: OCM's `rolloutStrategy`, with the same meaning. */
export interface RolloutStrategy {
  readonly type: 'All' | 'Progressive' | 'ProgressivePerGroup';
  /** The greatest number of clusters that are updated at the same time. */
  readonly maxConcurrency: Amount;
  /** The greatest number of clusters that may fail. One more stops the rollout. */
  readonly maxFailures: Amount;
  /** How long a cluster must run the new version, in milliseconds, before the next cluster is updated. */
  readonly minSuccessMs: number;
  /** A cluster that is not healthy after this time, in milliseconds, has failed. Infinity: no deadline. */
  readonly progressDeadlineMs: number;
  /** Decision groups that are updated first, one after the other. None of their clusters may fail. */
  readonly mandatoryDecisionGroups: readonly DecisionGroupRef[];
}

const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000 };
/** Most decision groups. A GitOpsCluster of 1.5 MiB could name a hundred thousand. */
const mostGroups = 1_000;

const amount = z
  .unknown()
  .refine((value) => ['string', 'number'].includes(typeof value) && /^((100|\d{1,2})%|\d+)$/.test(String(value)), {
    error: ({ input }) => `must be a number or a percentage like 10%, not ${quoted(input)}`,
  })
  .transform((value): Amount => {
    const text = String(value);
    return text.endsWith('%') ? { percent: Number(text.slice(0, -1)) } : { count: Number(text) };
  });
const millisecondsOf = (text: string) => Number(text.slice(0, -1)) * (units[text.slice(-1)] ?? 0);
const time = z
  .string()
  .regex(/^(0|\d{1,9}[hms])$/, { error: ({ input }) => `must be a time like 90m, not ${quoted(input)}` })
  .transform((text) => (text === '0' ? 0 : millisecondsOf(text)));
const deadline = z
  .string()
  .regex(/^(\d{1,9}[hms]|None)$/, { error: ({ input }) => `must be a time like 90m, or None, not ${quoted(input)}` })
  .transform((text) => (text === 'None' ? Number.POSITIVE_INFINITY : millisecondsOf(text)));

const settings = z
  .object({
    maxConcurrency: amount.prefault('10%'),
    maxFailures: amount.prefault(0),
    minSuccessTime: time.prefault('0'),
    progressDeadline: deadline.prefault('10m'),
    mandatoryDecisionGroups: listOf(
      z.object({ groupName: z.string().optional(), groupIndex: z.number().int().optional() }),
      mostGroups,
    ).default([]),
  })
  .prefault({});

/** Parses OCM's `rolloutStrategy`. Empty: a tenth of the clusters at a time; the first failure stops the rollout. */
export const rolloutStrategySchema = z
  .object({
    type: z
      .enum(['All', 'Progressive', 'ProgressivePerGroup'], {
        error: ({ input }) => `must be All, Progressive or ProgressivePerGroup, not ${quoted(input)}`,
      })
      .default('Progressive'),
    all: settings,
    progressive: settings,
    progressivePerGroup: settings,
  })
  .transform(({ type, all, progressive, progressivePerGroup }): RolloutStrategy => {
    const chosen = { All: all, Progressive: progressive, ProgressivePerGroup: progressivePerGroup }[type];
    const { minSuccessTime, progressDeadline, ...rest } = chosen;
    return { type, ...rest, minSuccessMs: minSuccessTime, progressDeadlineMs: progressDeadline };
  });

/** The number of clusters that an amount means, out of `total`; percentages are rounded up. */
export function amountOf(amount: Amount, total: number): number {
  return 'count' in amount ? amount.count : Math.ceil((amount.percent * total) / 100);
}
