import { type ChaosFinding, type Invariant, invariants } from './invariants.ts';

/** What a run has come to. */
export interface Verdict {
  readonly seed: number;
  readonly findings: readonly ChaosFinding[];
  /** How much was done, by name. */
  readonly counts: readonly (readonly [what: string, value: string])[];
  /** Seconds from the end of the faults until everything was quiet, or until the wait was given up. */
  readonly quietSeconds: number;
  /** What the programs said of the objects that the findings name. */
  readonly traces: readonly string[];
}

const shownFindings = 5;

/** A verdict as a short table: first what happened, then each invariant with what breaks it. */
export function verdictText({ seed, findings, counts, quietSeconds }: Verdict): string {
  const rows = [...counts, ['quiet after', `${quietSeconds.toFixed(1)} s`] as const].map(
    ([what, value]) => ` ${what.padEnd(width)} ${value}`,
  );
  const checks = Object.entries(invariants).flatMap(([invariant, what]) => {
    const broken = findings.filter((one) => one.invariant === (invariant as Invariant));
    const more = broken.length > shownFindings ? [`     … and ${broken.length - shownFindings} more`] : [];
    return [
      ` ${what.padEnd(width)} ${broken.length === 0 ? 'yes' : `NO (${broken.length})`}`,
      ...broken.slice(0, shownFindings).map((one) => `   - ${one.what}`),
      ...more,
    ];
  });
  const end = findings.length === 0 ? 'Everything is as it must be' : `${findings.length} FINDINGS`;
  return [`Seed ${seed}`, ...rows, '', ...checks, '', `${end} (seed ${seed}).`].join('\n');
}

/** What a verdict has found, and nothing else: one line for each finding, then what the programs said of it. */
export function findingsText({ seed, findings, traces }: Verdict): string {
  const shown = findings.slice(0, shownFindings).map(({ invariant, what }) => `${invariants[invariant]}: NO, ${what}`);
  return [`${findings.length} findings (seed ${seed})`, ...shown, ...traces].join('\n');
}

const width = Math.max(...Object.values(invariants).map(({ length }) => length));
