import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FatalError } from '../ops/index.ts';

/** The name of the Secret with Redis's CA unless another one is asked for. */
const defaultCaSecret = 'argocd-redis-tls';

/** The flags about Redis; their names differ between the two programs. */
export interface RedisTlsFlags {
  readonly enabled: boolean;
  readonly insecure: { readonly flag: string; readonly value: boolean };
  readonly caPath: { readonly flag: string; readonly value: string };
  readonly caSecretName: { readonly flag: string; readonly value: string; readonly isGiven: boolean };
}

/** How Redis is reached. */
export interface RedisSettings {
  /** `host:port`. */
  readonly address: string;
  /** Asked for before every connection: files may have been replaced. @throws Error when they cannot be read */
  credentials(): { readonly username: string; readonly password: string };
  readonly tls: 'off' | 'insecure' | { readonly caPath: string } | { readonly caSecretName: string };
}

/**
 * Checks the flags about Redis against each other, as the originals do.
 * @throws FatalError that names the flags
 */
export function redisSettings(flags: {
  address: { flag: string; value: string };
  username: string;
  password: string;
  credentialsFolder: string;
  tls: RedisTlsFlags;
}): RedisSettings {
  const { address, username, password, credentialsFolder } = flags;
  if (!/^(\[[^\]]+\]|[^:]+):\d{1,5}$/.test(address.value)) {
    throw new FatalError(`--${address.flag} ${JSON.stringify(address.value)} is no address of the form host:port`);
  }
  if (credentialsFolder !== '' && (username !== '' || password !== '')) {
    throw new FatalError(
      '--redis-creds-dir-path (REDIS_CREDS_DIR_PATH) cannot be combined with a Redis password or user name: remove one of them',
    );
  }
  const credentials =
    credentialsFolder === '' ? () => ({ username, password }) : () => credentialsIn(credentialsFolder);
  try {
    credentials();
  } catch (error) {
    throw new FatalError(`--redis-creds-dir-path: ${(error as Error).message}`, { cause: error });
  }
  return { address: address.value, credentials, tls: tlsMode(flags.tls) };
}

function tlsMode({ enabled, insecure, caPath, caSecretName }: RedisTlsFlags): RedisSettings['tls'] {
  if (!enabled) {
    return 'off';
  }
  const chosen = [
    insecure.value && insecure.flag,
    caPath.value !== '' && caPath.flag,
    (caSecretName.isGiven || caSecretName.value !== defaultCaSecret) && caSecretName.flag,
  ].filter((flag) => flag !== false);
  if (chosen.length > 1) {
    throw new FatalError(
      `Only one Redis TLS mode can be specified: --${chosen.join(', --')} exclude each other; set the others to nothing`,
    );
  }
  if (insecure.value) {
    return 'insecure';
  }
  return caPath.value === '' ? { caSecretName: caSecretName.value } : { caPath: caPath.value };
}

function credentialsIn(folder: string): { username: string; password: string } {
  const read = (file: string) => readFileSync(join(folder, file), 'utf8').trim();
  const password = read('auth');
  try {
    return { username: read('auth_username'), password };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw error;
    }
    return { username: '', password };
  }
}
