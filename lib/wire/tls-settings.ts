import { DEFAULT_CIPHERS } from 'node:tls';

/** A TLS version as Node names it. */
export type TlsVersion = 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';

/** What of TLS is allowed; goes into `ServerTls` and `ClientTls` as it is. */
export interface TlsSettings {
  readonly minVersion?: TlsVersion;
  readonly maxVersion?: TlsVersion;
  /** OpenSSL names, separated by colons. */
  readonly ciphers?: string;
}

const versions: Readonly<Record<string, TlsVersion>> = {
  'tls1.1': 'TLSv1.1',
  'tls1.2': 'TLSv1.2',
  'tls1.3': 'TLSv1.3',
};

const upTo12 = ['tls1.0', 'tls1.1', 'tls1.2'];
const only12 = ['tls1.2'];
const only13 = ['tls1.3'];

interface Suite {
  readonly openssl: string;
  readonly versions: readonly string[];
}

/** What Go's `crypto/tls.CipherSuites` lists, in its order, under the names of IANA. */
const suites: ReadonlyMap<string, Suite> = new Map([
  ['TLS_AES_128_GCM_SHA256', { openssl: 'TLS_AES_128_GCM_SHA256', versions: only13 }],
  ['TLS_AES_256_GCM_SHA384', { openssl: 'TLS_AES_256_GCM_SHA384', versions: only13 }],
  ['TLS_CHACHA20_POLY1305_SHA256', { openssl: 'TLS_CHACHA20_POLY1305_SHA256', versions: only13 }],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA', { openssl: 'ECDHE-ECDSA-AES128-SHA', versions: upTo12 }],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA', { openssl: 'ECDHE-ECDSA-AES256-SHA', versions: upTo12 }],
  ['TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA', { openssl: 'ECDHE-RSA-AES128-SHA', versions: upTo12 }],
  ['TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA', { openssl: 'ECDHE-RSA-AES256-SHA', versions: upTo12 }],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', { openssl: 'ECDHE-ECDSA-AES128-GCM-SHA256', versions: only12 }],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384', { openssl: 'ECDHE-ECDSA-AES256-GCM-SHA384', versions: only12 }],
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', { openssl: 'ECDHE-RSA-AES128-GCM-SHA256', versions: only12 }],
  ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', { openssl: 'ECDHE-RSA-AES256-GCM-SHA384', versions: only12 }],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256', { openssl: 'ECDHE-RSA-CHACHA20-POLY1305', versions: only12 }],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', { openssl: 'ECDHE-ECDSA-CHACHA20-POLY1305', versions: only12 }],
]);

/**
 * Reads `--tls-min-version`, `--tls-max-version` and `--tls-ciphersuites` by argocd-agent's rules; empty texts and lists
 * mean "as Node has it". As in Go, suites of TLS 1.2 leave those of TLS 1.3 as they are. TLS 1.1 comes with OpenSSL's
 * security level 0, without which it cannot be spoken.
 *
 * @throws RangeError for an unknown version or suite, a lowest version above the highest, and a suite that cannot be used
 *   with the lowest version
 */
export function parseTlsSettings(flags: {
  readonly minVersion: string;
  readonly maxVersion: string;
  readonly cipherSuites: readonly string[];
}): TlsSettings {
  const { minVersion, maxVersion } = flags;
  const min = versionOf(minVersion);
  const max = versionOf(maxVersion);
  if (min !== undefined && max !== undefined && min > max) {
    throw new RangeError(
      `minimum TLS version (${minVersion}) cannot be higher than maximum TLS version (${maxVersion})`,
    );
  }
  const names = flags.cipherSuites.filter((name) => name !== '').map((name) => suiteOf(name, minVersion).openssl);
  const oldest = min === 'TLSv1.1' ? ['@SECLEVEL=0'] : [];
  const ciphers = [...(names.length > 0 ? names : oldest.length > 0 ? [DEFAULT_CIPHERS] : []), ...oldest].join(':');
  return {
    ...(min === undefined ? undefined : { minVersion: min }),
    ...(max === undefined ? undefined : { maxVersion: max }),
    ...(ciphers === '' ? undefined : { ciphers }),
  };
}

/** Whether `--tls-ciphersuites` asks for the catalogue. */
export function asksForCipherSuites(cipherSuites: readonly string[]): boolean {
  return cipherSuites.length === 1 && cipherSuites[0] === 'list';
}

/** The suites that can be asked for, one per line with the TLS versions that have it. */
export function cipherSuiteCatalogue(): string {
  const width = Math.max(...[...suites.keys()].map((name) => name.length));
  return [...suites].map(([name, suite]) => `${name.padEnd(width)}  ${suite.versions.join(', ')}\n`).join('');
}

function versionOf(name: string): TlsVersion | undefined {
  if (name === '') {
    return undefined;
  }
  const version = versions[name];
  if (version === undefined) {
    throw new RangeError(`TLS version ${name} is not supported`);
  }
  return version;
}

function suiteOf(name: string, minVersion: string): Suite {
  const suite = suites.get(name);
  if (suite === undefined) {
    throw new RangeError(`no such cipher suite: ${name}`);
  }
  if (minVersion !== '' && !suite.versions.includes(minVersion)) {
    throw new RangeError(`cipher suite ${name} is not supported by minimum TLS version ${minVersion}`);
  }
  return suite;
}
