import { z } from 'zod';

/** A number of clusters, or a share of them. */
export type Amount = { readonly count: number } | { readonly percent: number };

/** Names a decision group of a Placement. */
export interface DecisionGroupRef {
  readonly groupName?: string | undefined;
  readonly groupIndex?: number | undefined;
}

/** How clusters follow a new version: the fields of OCM's `rolloutStrategy`, with their meaning. */
export interface RolloutStrategy {
  readonly type: 'All' | 'Progressive' | 'ProgressivePerGroup';
  /** Clusters that are updated at the same time. */
  readonly maxConcurrency: Amount;
  /** As many clusters may fail; one more stops the rollout. */
  readonly maxFailures: Amount;
  /** How long a cluster must have had the new version, in milliseconds, before it makes room for the next. */
  readonly minSuccessMs: number;
  /** A cluster that is not well after this time, in milliseconds, has failed; infinite to wait for ever. */
  readonly progressDeadlineMs: number;
  /** Updated first, one after the other; none of their clusters may fail. */
  readonly mandatoryDecisionGroups: readonly DecisionGroupRef[];
}

const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000 };
const shown = ({ input }: { input?: unknown }) => JSON.stringify(input);

const amount = z
  .unknown()
  .refine((value) => /^((100|\d{1,2})%|\d+)$/.test(String(value)), {
    error: (issue) => `must be a number or a percentage like 10%, not ${shown(issue)}`,
  })
  .transform((value): Amount => {
    const text = String(value);
    return text.endsWith('%') ? { percent: Number(text.slice(0, -1)) } : { count: Number(text) };
  });
const millisecondsOf = (text: string) => Number(text.slice(0, -1)) * (units[text.slice(-1)] ?? 0);
const time = z
  .string()
  .regex(/^(0|\d+[hms])$/, { error: (issue) => `must be a time like 90m, not ${shown(issue)}` })
  .transform((text) => (text === '0' ? 0 : millisecondsOf(text)));
const deadline = z
  .string()
  .regex(/^(\d+[hms]|None)$/, { error: (issue) => `must be a time like 90m, or None, not ${shown(issue)}` })
  .transform((text) => (text === 'None' ? Number.POSITIVE_INFINITY : millisecondsOf(text)));

const settings = z
  .object({
    maxConcurrency: amount.prefault('10%'),
    maxFailures: amount.prefault(0),
    minSuccessTime: time.prefault('0'),
    progressDeadline: deadline.prefault('10m'),
    mandatoryDecisionGroups: z
      .array(z.object({ groupName: z.string().optional(), groupIndex: z.number().int().optional() }))
      .default([]),
  })
  .prefault({});

/** Reads a strategy as OCM writes it. Nothing in it: a tenth of the clusters at a time, and the first failure stops it. */
export const rolloutStrategySchema = z
  .object({
    type: z
      .enum(['All', 'Progressive', 'ProgressivePerGroup'], {
        error: (issue) => `must be All, Progressive or ProgressivePerGroup, not ${shown(issue)}`,
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

/** An amount of so many clusters, rounded up. */
export function amountOf(amount: Amount, total: number): number {
  return 'count' in amount ? amount.count : Math.ceil((amount.percent * total) / 100);
}
