import { createInterface } from 'node:readline';
import { type SupervisedProcess, spawnSupervised } from './process.ts';

/** How to start a process that is talked with. */
export interface TalkerOptions {
  /** The whole environment. Default: this process's. */
  readonly env?: NodeJS.ProcessEnv;
  /** Gets each line of its standard output. */
  readonly onLine: (line: string) => void;
}

/**
 * Starts a process that is told things on its input and says things line by line, as {@link spawnSupervised} does. Its errors
 * are shown with those of this process.
 * @throws SpawnError when it cannot be started
 */
export async function spawnTalker(
  command: string,
  args: readonly string[],
  { env, onLine }: TalkerOptions,
): Promise<SupervisedProcess> {
  return await spawnSupervised(command, args, {
    input: 'stream',
    ...(env && { env }),
    onOutput(stdout, stderr) {
      createInterface({ input: stdout }).on('line', onLine);
      stderr.pipe(process.stderr, { end: false });
    },
  });
}
