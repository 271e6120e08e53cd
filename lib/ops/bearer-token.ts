import { readFileSync } from 'node:fs';
import { FatalError } from './errors.ts';

/**
 * The header for the bearer token in a file, as the file is when it is asked for: a Secret that is mounted may change. While the file
 * cannot be read, the last token counts. Without a path there is no header.
 * @param flag the flag with the path, for the error
 * @throws FatalError when the file cannot be read at the start
 */
export function bearerTokenFrom(path: string, flag: string): () => Readonly<Record<string, string>> {
  if (path === '') {
    return () => ({});
  }
  const read = () => ({ authorization: `Bearer ${readFileSync(path, 'utf8').trim()}` });
  let last: Readonly<Record<string, string>>;
  try {
    last = read();
  } catch (cause) {
    throw new FatalError(`--${flag} cannot be read: ${(cause as Error).message}`, { cause });
  }
  return () => {
    try {
      last = read();
    } catch {
      // It is being replaced.
    }
    return last;
  };
}
