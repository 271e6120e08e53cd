import type { ConnectionOptions } from 'node:tls';
import type { Logger } from '../base/index.ts';
import { trusting } from '../base/index.ts';
import type { Informer, Secret } from '../kube/index.ts';
import { followFiles, followSecret, parseTrust, Reloadable } from '../ops/index.ts';
import { RedisLink } from './link.ts';
import type { RedisSettings } from './settings.ts';

/** The sources of settings that are not in the flags. */
interface RedisContext {
  /** Of the namespace, at least. */
  readonly secrets: Pick<Informer<Secret>, 'get' | 'subscribe'>;
  readonly namespace: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Where Argo CD keeps the password of its Redis. */
const argoCdRedis = { secret: 'argocd-redis', key: 'auth' };

/**
 * The link that the flags describe; it does nothing until it is run. A CA from a Secret may come or change later, and so may
 * the password: without one in the flags, it is that of Argo CD's own Redis, as soon as its Secret exists.
 * @throws FatalError when the CA's file cannot be read
 */
export function redisLink(settings: RedisSettings, context: RedisContext & { notify: boolean }): RedisLink {
  const { address } = settings;
  const { secrets, namespace, notify, logger } = context;
  const credentials = () => {
    const given = settings.credentials();
    if (given.password !== '') {
      return given;
    }
    const { secret: name, key } = argoCdRedis;
    const password = Buffer.from(secrets.get({ namespace, name })?.data?.[key] ?? '', 'base64').toString();
    return { ...given, password };
  };
  return new RedisLink({ address, credentials, notify, logger, tls: redisTls(settings, context) });
}

/**
 * The TLS options of a connection to Redis, to be read before each connection; undefined for none. The returned function throws an
 * Error while the CA is missing.
 * @throws FatalError when the CA's file cannot be read
 */
export function redisTls(
  { tls }: Pick<RedisSettings, 'tls'>,
  context: RedisContext,
): () => ConnectionOptions | undefined {
  if (tls === 'off') {
    return () => undefined;
  }
  if (tls === 'insecure') {
    return () => ({ rejectUnauthorized: false });
  }
  const ca = trust(tls, context);
  return () => {
    if (ca.value === undefined) {
      throw new Error(`${ca.origin}, the CA of Redis: ${ca.problem}`);
    }
    return trusting(ca.value);
  };
}

function trust(
  from: { readonly caPath: string } | { readonly caSecretName: string },
  context: RedisContext,
): Reloadable<string> {
  const { secrets, namespace, logger, signal } = context;
  const parse = (fields: Readonly<Record<string, string>>) => parseTrust(fields, ['ca.crt']);
  if ('caPath' in from) {
    const live = new Reloadable({ origin: `File ${from.caPath}`, parse, logger });
    followFiles({ 'ca.crt': from.caPath }, live, signal);
    return live;
  }
  const live = new Reloadable({ origin: `Secret ${namespace}/${from.caSecretName}`, parse, logger });
  followSecret(secrets, from.caSecretName, live);
  return live;
}
