import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { isDnsLabel } from '../base/index.ts';
import { AuthError } from './errors.ts';
import type { AuthMethod } from './method.ts';
import { PasswordChecker } from './password-checker.ts';

const bcryptHash = /^\$2[abxy]\$[0-9]{2}.*/;
/** A hash whose password nobody knows, for databases without users. */
const dummyHash = '$2b$10$4KEv8kzp6P520j8Y2TYI9Op8uKsjXJUAZyocTE6yzFzwGEsLVt3U.';

/** A user database: agent names with bcrypt hashes, and the lines that were ignored. */
export interface UserDatabase {
  readonly hashes: ReadonlyMap<string, string>;
  /** Problems by line; hashes are not quoted. */
  readonly warnings: readonly string[];
}

/**
 * Reads a user database: one `name:hash` per line, comments begin with `#` or `//`. Bad lines are ignored, and the
 * last of several entries of a name wins (argocd-agent's rules).
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
 * Authenticates an agent by name and password from a user database (credentials `clientid` and `clientsecret`).
 *
 * A successful login is remembered (by a keyed hash, in memory only), so a repeated login costs nothing. Every other login
 * takes one comparison; that of an unknown name takes as long as that of a known one.
 *
 * A login is valid while the name keeps its hash: tokens of a removed name, or of one with a new password, are refused.
 */
export function userpassMethod(
  users: UserDatabase | (() => Promise<UserDatabase>),
  checker = new PasswordChecker(),
): AuthMethod {
  const key = randomBytes(32);
  const digest = (...parts: string[]) => createHmac('sha256', key).update(JSON.stringify(parts)).digest();
  const proved = new Map<string, Buffer>();
  const database = () => (typeof users === 'function' ? users() : users);
  return {
    name: 'userpass',
    async authenticate({ credentials }, { address, isGone }) {
      const { clientid, clientsecret } = credentials;
      if (clientid === undefined || clientsecret === undefined) {
        throw new AuthError('no-credentials', 'The request has no clientid or no clientsecret');
      }
      const { hashes } = await database();
      const known = hashes.get(clientid);
      // The key includes the hash: a changed password invalidates remembered logins.
      const proof = digest(clientid, clientsecret, known ?? '');
      const earlier = proved.get(clientid);
      if (known !== undefined && earlier !== undefined && timingSafeEqual(earlier, proof)) {
        return { agent: clientid, credential: credentialOf(known) };
      }
      // The same hash for the same name each time: otherwise two attempts would reveal that the name is unknown.
      const hash = known ?? [...hashes.values()][digest(clientid).readUInt32BE(0) % hashes.size] ?? dummyHash;
      const isRight = await checker.compare({ password: clientsecret, hash }, address, () => isGone?.() !== true);
      if (known === undefined || !isRight) {
        throw new AuthError('bad-credentials', `The name "${clientid.slice(0, 64)}" or its password is wrong`);
      }
      proved.set(clientid, proof);
      return { agent: clientid, credential: credentialOf(known) };
    },
    async check({ agent, credential }) {
      const hash = (await database()).hashes.get(agent);
      if (hash === undefined) {
        throw new AuthError('bad-credentials', `The name "${agent}" is no longer in the user database`, { agent });
      }
      if (credential !== credentialOf(hash)) {
        throw new AuthError('bad-token', `The password of "${agent}" was changed after the token was issued`, {
          agent,
        });
      }
    },
  };
}

/** A digest that tells hashes apart. It reveals nothing about a password: each hash has a random salt of 16 bytes. */
function credentialOf(hash: string): string {
  return createHash('sha256').update(hash).digest('base64url');
}
