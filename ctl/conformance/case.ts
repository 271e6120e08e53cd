import { GrpcError, type GrpcStatusCode, statusName } from '../../lib/wire/index.ts';

/** One case of the suite. */
export interface ConformanceCase<Lab> {
  readonly name: string;
  /** The heading of docs/protocol.md that it checks. */
  readonly section: string;
  /** Returns what was seen. @throws {@link Skipped} when it does not apply; another Error when the peer does not conform */
  run(lab: Lab): Promise<string>;
}

/** What became of a case. */
export interface CaseResult {
  readonly name: string;
  readonly section: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** What was seen; why it failed or was skipped. */
  readonly seen: string;
  readonly milliseconds: number;
}

/** The case does not apply: the message says why. */
export class Skipped extends Error {
  override readonly name = 'Skipped';
}

/**
 * Runs the cases one after the other, whatever becomes of each; `done` gets each result at once. Cases with one of the texts of
 * `skip` in their names are left out: they are skipped.
 */
export async function runCases<Lab>(
  cases: readonly ConformanceCase<Lab>[],
  lab: Lab,
  options: {
    readonly signal: AbortSignal;
    readonly skip?: readonly string[];
    readonly done?: (result: CaseResult) => void;
  },
): Promise<readonly CaseResult[]> {
  const results: CaseResult[] = [];
  for (const { name, section, run } of cases) {
    options.signal.throwIfAborted();
    const began = performance.now();
    const isLeftOut = options.skip?.some((text) => name.includes(text)) === true;
    const attempt = isLeftOut ? Promise.reject(new Skipped('left out')) : run(lab);
    const result = await attempt.then(
      (seen) => ({ outcome: 'passed' as const, seen }),
      (error: unknown) => ({
        outcome: error instanceof Skipped ? ('skipped' as const) : ('failed' as const),
        seen: error instanceof Error ? error.message : String(error),
      }),
    );
    results.push({ name, section, ...result, milliseconds: Math.round(performance.now() - began) });
    options.done?.(results.at(-1) as CaseResult);
  }
  return results;
}

/** Waits for a refusal with one of the codes, and the text if one is given. @throws Error when it is another, or none */
export async function refused(
  attempt: Promise<unknown>,
  codes: readonly GrpcStatusCode[],
  text?: string,
): Promise<string> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const wanted = `${codes.map(statusName).join(' or ')}${text === undefined ? '' : `, "${text}"`}`;
  if (error === undefined) {
    throw new Error(`it is accepted; wanted ${wanted}`);
  }
  if (!(error instanceof GrpcError) || !codes.includes(error.code) || (text !== undefined && error.details !== text)) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}; wanted ${wanted}`);
  }
  return error.message;
}

/** @throws Error with the text unless it holds */
export function must(holds: boolean, text: string): void {
  if (!holds) {
    throw new Error(text);
  }
}
