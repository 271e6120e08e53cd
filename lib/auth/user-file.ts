import { readFile, stat } from 'node:fs/promises';
import { AuthError } from './errors.ts';
import type { AuthKind } from './kind.ts';
import { parseUserDatabase, type UserDatabase, userpassMethod } from './userpass.ts';

/** Shortest time between two reads of the file. */
const lookMs = 5000;

/**
 * The user database in a file. A change of the file is read without a restart of the principal. If the file becomes
 * unreadable, the users stay as they are.
 *
 * @param warn receives problems of the file
 * @throws AuthError `configuration` when the first read fails
 */
export async function userFile(
  path: string,
  warn: (message: string) => void = () => undefined,
  now: () => number = () => performance.now(),
): Promise<() => Promise<UserDatabase>> {
  const read = async () => {
    const { mtimeMs, size, ino } = await stat(path);
    const users = parseUserDatabase(await readFile(path, 'utf8'));
    for (const warning of users.warnings) {
      warn(`User database ${path}: ${warning}`);
    }
    return { users, version: `${ino} ${mtimeMs} ${size}` };
  };
  let current: Awaited<ReturnType<typeof read>>;
  try {
    current = await read();
  } catch (cause) {
    throw new AuthError('configuration', `The user database ${path} cannot be read`, { cause });
  }
  let lookedAt = now();
  let problem = '';
  return async () => {
    if (now() - lookedAt < lookMs) {
      return current.users;
    }
    lookedAt = now();
    try {
      const { mtimeMs, size, ino } = await stat(path);
      if (`${ino} ${mtimeMs} ${size}` !== current.version) {
        current = await read();
      }
      problem = '';
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== problem) {
        warn(`User database ${path} cannot be read any more, the users stay as they were: ${message}`);
      }
      problem = message;
    }
    return current.users;
  };
}

/** `userpass:<file>`. */
export const userpassKind: AuthKind<{
  readonly method: 'userpass';
  /** Path of the user database. */
  readonly file: string;
}> = {
  forms: 'userpass:<file>',
  parse(config) {
    if (config === '') {
      throw new AuthError('configuration', 'userpass needs the path of a file: userpass:<file>');
    }
    return { method: 'userpass', file: config };
  },
  create: async ({ file }, { warn }) => userpassMethod(await userFile(file, warn)),
};
