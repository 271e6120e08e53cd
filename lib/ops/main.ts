import { describeError, ExitError, FatalError, InterruptedError, UsageError } from './errors.ts';
import { printableLines } from './printable.ts';

const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Runs a program: SIGINT and SIGTERM abort the signal that `main` gets, a second one ends the process at once. Exits 0 when
 * `main` returns (also after a signal), 1 when it throws, after saying why on stderr; 130 when it throws an InterruptedError.
 */
export async function runMain(main: (signal: AbortSignal) => Promise<void>): Promise<never> {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) {
        process.exit(exitCodes[name]);
      }
      stop.abort(new Error(`received ${name}`));
    });
  }
  try {
    await main(stop.signal);
  } catch (error) {
    const { exitCode, text } = outcomeOf(error);
    if (!stop.signal.aborted || error instanceof InterruptedError) {
      process.stderr.write(text);
      process.exit(exitCode);
    }
  }
  process.exit(0);
}

/** What a program says on stderr, and its exit code, when it ends with an error. */
export function outcomeOf(error: unknown): { readonly exitCode: number; readonly text: string } {
  if (error instanceof ExitError) {
    return { exitCode: error.exitCode, text: '' };
  }
  if (error instanceof InterruptedError) {
    return { exitCode: exitCodes.SIGINT, text: printableLines(`${error.message}\n`) };
  }
  return { exitCode: 1, text: printableLines(explain(error)) };
}

function explain(error: unknown): string {
  if (error instanceof UsageError) {
    return `Error: ${error.message}\n`;
  }
  if (error instanceof FatalError) {
    return `[FATAL]: ${error.message}\n`;
  }
  return `[FATAL]: ${describeError(error)}\n`;
}
