import { FatalError, intFlag, stringFlag } from '../lib/ops/index.ts';
import type { KeyAlgorithm } from '../lib/pki/index.ts';

const algorithms: Readonly<Record<string, KeyAlgorithm>> = {
  'ecdsa-p256': 'p256',
  'ecdsa-p384': 'p384',
  'ecdsa-p521': 'p521',
  ed25519: 'ed25519',
};
const rsaSizes: Readonly<Record<number, KeyAlgorithm>> = { 2048: 'rsa2048', 3072: 'rsa3072', 4096: 'rsa4096' };

/** The flags that say which key is made, and how long its certificate is valid. */
export function keyFlags(days: number, when = '') {
  const only = when === '' ? '' : `; ${when}`;
  return {
    days: intFlag({ usage: `number of days that the certificate is valid for${only}`, default: days }),
    'key-algorithm': stringFlag({
      usage: `algorithm of the key: rsa, ${Object.keys(algorithms).join(', ')}${only}`,
      default: 'rsa',
    }),
    'key-size': intFlag({ usage: `bits of an RSA key: 2048, 3072 or 4096${only}`, default: 4096 }),
  };
}

/** The values of {@link keyFlags}. */
export interface KeyValues {
  readonly days: number;
  readonly 'key-algorithm': string;
  readonly 'key-size': number;
}

/** The key that flags ask for. @throws FatalError when there is no such key */
export function keyAlgorithmOf({ 'key-algorithm': name, 'key-size': size }: KeyValues): KeyAlgorithm {
  const found = name.toLowerCase() === 'rsa' ? rsaSizes[size] : algorithms[name.toLowerCase()];
  if (found !== undefined) {
    return found;
  }
  throw new FatalError(
    name.toLowerCase() === 'rsa'
      ? `--key-size ${size}: must be one of ${Object.keys(rsaSizes).join(', ')}`
      : `unsupported key algorithm: ${name}; must be one of rsa, ${Object.keys(algorithms).join(', ')}`,
  );
}

/** @throws FatalError when flags ask for a key although none is made */
export function rejectKeyFlags(given: ReadonlySet<string>, why: string): void {
  if (given.has('key-algorithm') || given.has('key-size')) {
    throw new FatalError(`--key-algorithm and --key-size ${why}`);
  }
}
