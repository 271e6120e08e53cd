import { posix } from 'node:path';

/**
 * The SHA-256 of a file in what a project publishes: lines with a checksum and a name, as `sha256sum` prints them, or a
 * checksum alone.
 * @throws Error when there is not exactly one, or it is no SHA-256
 */
export function publishedSha256(name: string, published: string): string {
  const lines = published.trim().split(/\r?\n/);
  const found = lines
    .map((line) => line.trim().split(/\s+\*?/))
    .filter(([, of]) => (of === undefined ? lines.length === 1 : posix.basename(of) === name))
    .map(([checksum = '']) => checksum.toLowerCase());
  const [checksum, ...others] = found;
  if (checksum === undefined || others.length > 0 || !/^[0-9a-f]{64}$/.test(checksum)) {
    throw new Error(`there is no one SHA-256 of ${name} in it`);
  }
  return checksum;
}
