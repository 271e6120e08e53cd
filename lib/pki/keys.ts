import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { PkiError } from './errors.ts';

const generate = promisify(generateKeyPair);

/**
 * `rsa2048` where a Go or OCM peer requires RSA, else `p256`: generating one is fifty times cheaper. The others are for
 * operators who ask for them.
 */
export type KeyAlgorithm = 'rsa2048' | 'rsa3072' | 'rsa4096' | 'p256' | 'p384' | 'p521' | 'ed25519';

/** Generates a private key in the thread pool. */
export async function generatePrivateKey(algorithm: KeyAlgorithm): Promise<KeyObject> {
  if (algorithm === 'ed25519') {
    return (await generate('ed25519', {})).privateKey;
  }
  const size = algorithm.replace(/^\D+/, '');
  const pair = algorithm.startsWith('rsa')
    ? await generate('rsa', { modulusLength: Number(size) })
    : await generate('ec', { namedCurve: `P-${size}` });
  return pair.privateKey;
}

/** A private key, PEM, as PKCS#8: the form of argocd-agentctl. */
export function pkcs8Pem(pem: string): string {
  return parsePrivateKey(pem).export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** A private key in the originals' form: PKCS#1 for RSA, SEC 1 for elliptic curves. */
export function privateKeyPem(key: KeyObject): string {
  const type = key.asymmetricKeyType === 'rsa' ? 'pkcs1' : key.asymmetricKeyType === 'ec' ? 'sec1' : 'pkcs8';
  return key.export({ type: type as 'pkcs8', format: 'pem' }).toString();
}

/**
 * Reads a private key in PEM (PKCS#1, SEC 1 or PKCS#8, not encrypted).
 * @throws PkiError BAD_KEY
 */
export function parsePrivateKey(pem: string, what = 'private key'): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    throw new PkiError('BAD_KEY', what, `is not a private key in PEM form (${(error as Error).message})`, {
      cause: error,
    });
  }
}

/**
 * A key that signs the principal's tokens: RSA (they are signed with RS512), PKCS#8, because argocd-agent's principal
 * reads nothing else.
 */
export async function generateJwtKey(bits: 2048 | 4096 = 2048): Promise<string> {
  const { privateKey } = await generate('rsa', { modulusLength: bits });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
