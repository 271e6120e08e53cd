import { describeError, FatalError, InterruptedError, UsageError } from './errors.ts';
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
    if (error instanceof InterruptedError) {
      process.stderr.write(printableLines(`${error.message}\n`));
      process.exit(exitCodes.SIGINT);
    }
    if (!stop.signal.aborted) {
      process.stderr.write(printableLines(explain(error)));
      process.exit(1);
    }
  }
  process.exit(0);
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
