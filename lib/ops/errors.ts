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
