/** The command line or the environment is wrong: the message names the flag; printed with the usage, exit code 1. */
export class UsageError extends Error {
  readonly code = 'USAGE';
  override name = 'UsageError';
}

/** The program cannot start or go on: the message says what is missing and what to do; printed alone, exit code 1. */
export class FatalError extends Error {
  readonly code = 'FATAL';
  override name = 'FatalError';
}

/** A command was stopped by a signal before its work was done: the message says how to go on; printed alone, exit code 130. */
export class InterruptedError extends Error {
  readonly code = 'INTERRUPTED';
  override name = 'InterruptedError';
}

/** The command has printed all that there is to say: the program ends with this code and prints nothing more. */
export class ExitError extends Error {
  readonly code = 'EXIT';
  override name = 'ExitError';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`ends with exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** An error as people read it: its message and that of its cause. Only a mistake of the program itself has its stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const isMistake = error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
  const text = isMistake ? (error.stack ?? error.message) : error.message;
  const cause = error.cause instanceof Error ? error.cause.message : '';
  return cause === '' || text.includes(cause) ? text : `${text}: ${cause}`;
}
