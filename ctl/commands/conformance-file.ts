import { readFile } from 'node:fs/promises';
import { FatalError } from '../../lib/ops/index.ts';

/** A file that a flag names. @throws FatalError that names the flag */
export async function flaggedFile(path: string, flag: string): Promise<string> {
  return readFile(path, 'utf8').catch((cause: unknown) => {
    throw new FatalError(`${flag}: the file cannot be read`, { cause });
  });
}
