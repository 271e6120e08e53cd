import type { Logger } from '../lib/base/index.ts';
import { type ProxyIdentity, parseProxyIdentity } from '../lib/clusters/index.ts';
import type { Informer, Secret } from '../lib/kube/index.ts';
import {
  followFiles,
  followSecret,
  followSecretWith,
  parseFormerKeys,
  parseKeyPair,
  parseSigningKey,
  parseTrust,
  Reloadable,
  type TlsKeyPair,
} from '../lib/ops/index.ts';
import type { KeyCertificate } from '../lib/pki/index.ts';
import { type JwtSource, jwtSource, x509Source } from '../lib/spiffe/index.ts';
import { parseAuthority } from './enrolment/authority.ts';
import { generatedCertificate } from './generated-certificate.ts';
import type { PrincipalSettings } from './settings.ts';

/** The key of tokens, PKCS#8 PEM, and the public halves of keys whose tokens still count. */
export interface SigningKey {
  readonly key: string;
  readonly former: readonly string[];
}

/** The principal's key material, reloaded while it runs. A part that is not needed is undefined. */
export interface PrincipalCredentials {
  readonly server: Reloadable<TlsKeyPair> | undefined;
  /**
   * Certificates that agents' certificates must come from: those of the Secret that the flag names, and those of a second
   * one of that name with `-trust` behind it, where the controller keeps former authorities during a change.
   */
  readonly clientTrust: Reloadable<string> | undefined;
  /** What agents' JWT-SVIDs are judged by; undefined when they have none. */
  readonly svids: JwtSource | undefined;
  /** Certificate of the resource proxy; undefined when there is none. */
  readonly resourceProxy: Reloadable<TlsKeyPair> | undefined;
  /** Certificates that those of the resource proxy's clients must come from. */
  readonly resourceProxyTrust: Reloadable<string> | undefined;
  /** What Argo CD reaches the clusters with that registered themselves; undefined when none may. */
  readonly proxyIdentity: Reloadable<ProxyIdentity> | undefined;
  /** Certificate of the Redis proxy; undefined when it needs none. */
  readonly redisProxy: Reloadable<TlsKeyPair> | undefined;
  /** The authority that issues agents' certificates; undefined when the principal issues none. */
  readonly authority: Reloadable<KeyCertificate> | undefined;
  /** Undefined when a key is made at every start. */
  readonly signingKey: Reloadable<SigningKey> | undefined;
}

/** Where key material is looked for. */
interface Sources {
  /** Secrets of the principal's namespace. */
  readonly secrets: Pick<Informer<Secret>, 'subscribe'>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Reads from files, else from a Secret, and from a second one besides. */
function reader({ flags }: PrincipalSettings, { secrets, logger, signal }: Sources) {
  const live = <T>(
    files: Readonly<Record<string, string>> | undefined,
    secretName: string,
    parse: ConstructorParameters<typeof Reloadable<T>>[0]['parse'],
    besides?: string,
  ): Reloadable<T> => {
    const origin = files ? `File ${Object.values(files).join(', ')}` : `Secret ${flags.namespace}/${secretName}`;
    const value = new Reloadable<T>({ origin, parse, logger });
    if (files) {
      followFiles(files, value, signal);
    } else if (besides !== undefined) {
      followSecretWith(secrets, secretName, besides, value);
    } else {
      followSecret(secrets, secretName, value);
    }
    return value;
  };
  const trusted = (file: string, secretName: string) => {
    const second = trustSecret(secretName);
    const parse = (fields: Readonly<Record<string, string>>) =>
      parseTrust(fields, ['ca.crt', 'tls.crt', `${second}/ca.crt`]);
    return live(file === '' ? undefined : { 'ca.crt': file }, secretName, parse, second);
  };
  return { live, trusted };
}

/** The Secret where the controller keeps former authorities during a change of those in a Secret. */
export function trustSecret(secretName: string): string {
  return `${secretName}-trust`;
}

/**
 * What the port for agents proves itself with, and what its clients must prove: from the SPIFFE Workload API or the files that the
 * flags name, else from the Secrets of the principal's namespace.
 * @throws FatalError when a named file cannot be read
 */
export function serverCredentials(
  settings: PrincipalSettings,
  sources: Sources,
): Pick<PrincipalCredentials, 'server' | 'clientTrust'> {
  const { flags, tls, spire } = settings;
  const { logger, signal } = sources;
  const { live, trusted } = reader(settings, sources);
  // The resource proxy and the Redis proxy have other authorities.
  const workload = spire && x509Source({ endpoint: spire.endpoint, logger, signal });
  return {
    server:
      tls === 'plaintext'
        ? undefined
        : workload !== undefined
          ? workload.identity
          : tls.from === 'generated'
            ? generatedCertificate(logger, signal)
            : live(
                tls.from === 'files' ? { 'tls.crt': flags['tls-cert'], 'tls.key': flags['tls-key'] } : undefined,
                flags['tls-secret-name'],
                parseKeyPair,
              ),
    clientTrust:
      tls === 'plaintext' || !tls.requireClientCertificate
        ? undefined
        : (workload?.trust ?? trusted(flags['root-ca-path'], flags['tls-ca-secret-name'])),
  };
}

/**
 * Finds the principal's certificate and the agents' CA ({@link serverCredentials}), and besides the token key and what the proxies need
 * in the files that the flags name, else in the Secrets of the principal's namespace.
 * @throws FatalError when a named file cannot be read
 */
export function principalCredentials(settings: PrincipalSettings, sources: Sources): PrincipalCredentials {
  const { flags, auth, spire, selfRegistration } = settings;
  const { logger, signal } = sources;
  const { live, trusted } = reader(settings, sources);
  const isProxied = flags['enable-resource-proxy'];
  const proxyFiles = {
    certificate: flags['resource-proxy-cert-path'],
    key: flags['resource-proxy-key-path'],
    ca: flags['resource-proxy-ca-path'],
  };
  // As in the original: only all three together count.
  const hasProxyFiles = Object.values(proxyFiles).every((path) => path !== '');
  const redisFiles = {
    'tls.crt': flags['redis-proxy-server-tls-cert'],
    'tls.key': flags['redis-proxy-server-tls-key'],
  };
  const keyFile = flags['jwt-key'];
  return {
    ...serverCredentials(settings, sources),
    svids:
      spire !== undefined && auth.method === 'spiffe-jwt'
        ? jwtSource({ endpoint: spire.endpoint, logger, signal })
        : undefined,
    resourceProxy: isProxied
      ? live(
          hasProxyFiles ? { 'tls.crt': proxyFiles.certificate, 'tls.key': proxyFiles.key } : undefined,
          flags['resource-proxy-secret-name'],
          parseKeyPair,
        )
      : undefined,
    resourceProxyTrust: isProxied
      ? trusted(hasProxyFiles ? proxyFiles.ca : '', flags['resource-proxy-ca-secret-name'])
      : undefined,
    proxyIdentity:
      selfRegistration &&
      live(
        undefined,
        selfRegistration.identitySecret,
        (fields) => parseProxyIdentity(fields, flags['tls-ca-secret-name']),
        flags['tls-ca-secret-name'],
      ),
    redisProxy:
      flags['disable-redis-proxy'] || !flags['redis-tls-enabled']
        ? undefined
        : live(
            redisFiles['tls.crt'] === '' ? undefined : redisFiles,
            flags['redis-proxy-server-tls-secret-name'],
            parseKeyPair,
          ),
    authority: flags['enable-enrolment'] ? live(undefined, flags['tls-ca-secret-name'], parseAuthority) : undefined,
    signingKey:
      keyFile === '' && flags['insecure-jwt-generate']
        ? undefined
        : live(keyFile === '' ? undefined : { 'jwt.key': keyFile }, flags['jwt-secret-name'], (fields) => ({
            key: parseSigningKey(fields),
            former: parseFormerKeys(fields),
          })),
  };
}
