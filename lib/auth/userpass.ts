import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { AuthError } from './errors.ts';
import { isDnsLabel } from './identity.ts';
import type { AuthMethod } from './method.ts';
import { PasswordChecker } from './password-checker.ts';

const bcryptHash = /^\$2[abxy]\$[0-9]{2}.*/;
/** A hash of nothing that anybody knows, for databases without a name. */
const dummyHash = '$2b$10$4KEv8kzp6P520j8Y2TYI9Op8uKsjXJUAZyocTE6yzFzwGEsLVt3U.';

/** A user database: agent names and bcrypt hashes, and the lines that were left out. */
export interface UserDatabase {
  readonly hashes: ReadonlyMap<string, string>;
  /** What is wrong with which line; hashes are not quoted. */
  readonly warnings: readonly string[];
}

/**
 * Reads a user database: one `name:hash` per line, comments begin with `#` or `//`. Bad lines are left out, the last
 * of several entries of a name counts (argocd-agent's rules).
 */
export function parseUserDatabase(text: string): UserDatabase {
  const hashes = new Map<string, string>();
  const warnings: string[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    const at = `line ${index + 1}`;
    if (line.startsWith('#') || line.startsWith('//') || line === '') {
      continue;
    }
    const colon = line.indexOf(':');
    const name = line.slice(0, colon);
    const hash = line.slice(colon + 1);
    if (colon < 0) {
      warnings.push(`${at} has no colon`);
    } else if (!isDnsLabel(name)) {
      warnings.push(`${at}: "${name}" is no DNS label`);
    } else if (!bcryptHash.test(hash)) {
      warnings.push(`${at}: the password of "${name}" is no bcrypt hash`);
    } else {
      if (hashes.has(name)) {
        warnings.push(`${at}: "${name}" was there before, the last one counts`);
      }
      hashes.set(name, hash);
    }
  }
  return { hashes, warnings };
}

/**
 * The agent is who knows the password of a name in a user database (credentials `clientid` and `clientsecret`).
 *
 * A login that succeeded is remembered (by a keyed hash, in memory only), so agents that come back cost nothing. Everything
 * else takes a comparison, and for an unknown name one that takes as long as that of some known name.
 */
export function userpassMethod(
  users: UserDatabase | (() => Promise<UserDatabase>),
  checker = new PasswordChecker(),
): AuthMethod {
  const key = randomBytes(32);
  const digest = (...parts: string[]) => createHmac('sha256', key).update(JSON.stringify(parts)).digest();
  const proved = new Map<string, Buffer>();
  return {
    name: 'userpass',
    async authenticate({ credentials }, { address, isGone }) {
      const { clientid, clientsecret } = credentials;
      if (clientid === undefined || clientsecret === undefined) {
        throw new AuthError('no-credentials', 'The request has no clientid or no clientsecret');
      }
      const { hashes } = typeof users === 'function' ? await users() : users;
      const known = hashes.get(clientid);
      // With the hash: a password that was changed is no longer the one that was proved.
      const proof = digest(clientid, clientsecret, known ?? '');
      const earlier = proved.get(clientid);
      if (known !== undefined && earlier !== undefined && timingSafeEqual(earlier, proof)) {
        return clientid;
      }
      // Always the same one for the same name, or else trying twice would tell.
      const hash = known ?? [...hashes.values()][digest(clientid).readUInt32BE(0) % hashes.size] ?? dummyHash;
      const isRight = await checker.compare({ password: clientsecret, hash }, address, () => isGone?.() !== true);
      if (known === undefined || !isRight) {
        throw new AuthError('bad-credentials', `The name "${clientid.slice(0, 64)}" or its password is wrong`);
      }
      proved.set(clientid, proof);
      return clientid;
    },
  };
}
