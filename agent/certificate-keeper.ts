import { createHash } from 'node:crypto';
import { Backoff, type Logger, onAbort } from '../lib/base/index.ts';
import { type Informer, isAlreadyExists, type KubeClient, type Secret, secrets } from '../lib/kube/index.ts';
import { decodeSecret, type TextFields } from '../lib/ops/index.ts';
import { type SessionCalls, WireError } from '../lib/wire/index.ts';

/** Secret with the token that an operator has made with `argocd-agent enroll`. */
const tokenSecret = 'argocd-agent-enrolment';
/** On the Secret with the certificate: SHA-256 of the token that it was requested with. Other certificates lack it. */
export const tokenAnnotation = 'argocd-agent.argoproj-labs.io/enrolment-token';
const fieldManager = 'argocd-agent-agent';
/** Longest time until a certificate is looked at again: timers cannot wait for months. */
const longestWaitMs = 24 * 3_600_000;

/** Of a certificate and the authorities together. */
const maxCharacters = 256 * 1024;

/** A certificate and the authorities that the principal's own comes from, PEM. */
interface Issued {
  readonly certificate: string;
  readonly authorities: string;
}

/** What {@link CertificateKeeper} works with. */
export interface CertificateKeeperOptions {
  readonly client: Pick<KubeClient, 'create' | 'mergePatch'>;
  readonly secrets: Pick<Informer<Secret>, 'get' | 'subscribe'>;
  readonly namespace: string;
  /** Names of the Secrets with the client certificate and with the trusted authorities. */
  readonly clientSecret: string;
  readonly trustSecret: string;
  /** Exchanges a token for a certificate. @throws WireError */
  readonly exchange: (token: string, request: string) => Promise<Issued>;
  readonly logger: Logger;
}

/**
 * Gets the agent's certificate with a token, and renews it over the agent's connection. The private key is made here and is only
 * in Secrets of this cluster. A certificate that was not requested with a token is left to who made it.
 */
export class CertificateKeeper {
  readonly #options: CertificateKeeperOptions;
  readonly #backoff = new Backoff({ initialMs: 1_000, maxMs: 300_000 });
  #calls: Pick<SessionCalls, 'renewCertificate'> | undefined;
  #wake: () => void = () => undefined;
  /** The cache may be older than these: the last token that gave a certificate, and the key for the next one. */
  #used: string | undefined;
  #pending: { readonly token: string; readonly key: string } | undefined;

  constructor(options: CertificateKeeperOptions) {
    this.#options = options;
    const { clientSecret } = options;
    const changed = ({ metadata: { name } }: Secret) => {
      if (name === tokenSecret || name === clientSecret) {
        this.#wake();
      }
    };
    options.secrets.subscribe({ added: changed, updated: (_, now) => changed(now), deleted: changed });
  }

  /** The agent is connected: certificates can be renewed. */
  connected(calls: Pick<SessionCalls, 'renewCertificate'>): void {
    this.#calls = calls;
    this.#wake();
  }

  disconnected(): void {
    this.#calls = undefined;
  }

  /** Works until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let waitMs: number;
      const woken = this.#woken(signal);
      try {
        waitMs = await this.#look();
        this.#backoff.reset();
      } catch (error) {
        waitMs = this.#backoff.next();
        const hint = error instanceof WireError ? { hint: error.hint } : { error };
        const message = error instanceof WireError ? error.message : 'the agent could not get or store its certificate';
        this.#options.logger.warn({ ...hint, retryInMs: Math.round(waitMs) }, message);
      }
      await woken(waitMs);
    }
  }

  /** Does what is due. @returns how long nothing is, in milliseconds, unless something changes */
  async #look(): Promise<number> {
    const { secrets: cache, namespace, clientSecret, logger } = this.#options;
    const enrolment = cache.get({ namespace, name: tokenSecret });
    const live = cache.get({ namespace, name: clientSecret });
    const { token = '' } = enrolment === undefined ? {} : decodeSecret(enrolment);
    const used = live?.metadata.annotations?.[tokenAnnotation];
    if (enrolment !== undefined && token !== '' && ![used, this.#used].includes(hashOf(token))) {
      if (live !== undefined && used === undefined) {
        const hint = `delete Secret ${namespace}/${clientSecret} to have it made with the token, or Secret ${tokenSecret}`;
        logger.warn({ hint }, 'the enrolment token is not used, because somebody else has made the client certificate');
        return longestWaitMs;
      }
      await this.#enroll(enrolment, token, live);
      return longestWaitMs;
    }
    if (live === undefined || used === undefined) {
      return longestWaitMs;
    }
    return this.#renewIfDue(live, used);
  }

  async #enroll(enrolment: Secret, token: string, live: Secret | undefined): Promise<void> {
    const { client, namespace, exchange, logger } = this.#options;
    const { signingRequestFor, generatePrivateKey, parsePrivateKey, privateKeyPem } = await pki();
    let key = this.#pending?.token === token ? this.#pending.key : (decodeSecret(enrolment)['tls.key'] ?? '');
    if (key === '') {
      // Stored first: the token counts for one key, and the answer may be lost.
      key = privateKeyPem(await generatePrivateKey('p256'));
      const { uid } = enrolment.metadata;
      const patch = { metadata: { uid }, data: encoded({ 'tls.key': key }) };
      await client.mergePatch(secrets, { namespace, name: tokenSecret }, patch, { fieldManager });
    }
    this.#pending = { token, key };
    const agent = token.slice(0, token.indexOf('.'));
    const issued = await exchange(token, await signingRequestFor(parsePrivateKey(key), agent));
    await this.#store(live, key, await checked(issued, key), hashOf(token));
    this.#used = hashOf(token);
    this.#pending = undefined;
    logger.info({ agent }, 'the agent has got its certificate with a token');
    const used = { data: { 'tls.key': null } };
    await client.mergePatch(secrets, { namespace, name: tokenSecret }, used, { fieldManager });
  }

  async #renewIfDue(live: Secret, token: string): Promise<number> {
    const { signingRequestFor, generatePrivateKey, inspectCertificate, privateKeyPem, renewalTime } = await pki();
    const info = inspectCertificate(decodeSecret(live)['tls.crt'] ?? '', `Secret ${this.#options.clientSecret}`);
    const dueInMs = renewalTime(info).getTime() - Date.now();
    if (dueInMs > 0 || this.#calls === undefined) {
      return Math.min(Math.max(dueInMs, 60_000), longestWaitMs);
    }
    const key = await generatePrivateKey('p256');
    const issued = await this.#calls.renewCertificate(await signingRequestFor(key, info.commonName));
    await this.#store(live, privateKeyPem(key), await checked(issued, privateKeyPem(key)), token);
    this.#options.logger.info({ agent: info.commonName }, 'the agent has renewed its certificate');
    return longestWaitMs;
  }

  async #store(
    live: Secret | undefined,
    key: string,
    { certificate, authorities }: Issued,
    token: string,
  ): Promise<void> {
    const { client, namespace, clientSecret, trustSecret, secrets: cache } = this.#options;
    const trusted = cache.get({ namespace, name: trustSecret });
    if (trusted !== undefined && decodeSecret(trusted)['ca.crt'] !== authorities) {
      const data = encoded({ 'ca.crt': authorities });
      await client.mergePatch(secrets, { namespace, name: trustSecret }, { data }, { fieldManager });
    }
    const annotations = { [tokenAnnotation]: token };
    const data = encoded({ 'tls.crt': certificate, 'tls.key': key });
    if (live === undefined) {
      const labels = { 'app.kubernetes.io/part-of': 'argocd-agent' };
      const metadata = { namespace, name: clientSecret, labels, annotations };
      try {
        await client.create(secrets, { metadata, type: 'kubernetes.io/tls', data }, { fieldManager });
        return;
      } catch (error) {
        if (!isAlreadyExists(error)) {
          throw error;
        }
        throw new Error(`Secret ${namespace}/${clientSecret} has been made by somebody else meanwhile`, {
          cause: error,
        });
      }
    }
    const patch = { metadata: { uid: live.metadata.uid, annotations }, data };
    await client.mergePatch(secrets, { namespace, name: clientSecret }, patch, { fieldManager });
  }

  /** A wait that ends with the first change after this call. */
  #woken(signal: AbortSignal): (ms: number) => Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    return async (ms) => {
      const timer = setTimeout(resolve, ms);
      const unlisten = onAbort(signal, resolve);
      await promise;
      clearTimeout(timer);
      unlisten();
    };
  }
}

/** Loaded when it is needed: most agents get their certificates from somebody else. */
const pki = () => import('../lib/pki/index.ts');

/** What a principal has issued, if it can be used. @throws Error that says why not */
async function checked(issued: Issued, key: string): Promise<Issued> {
  const { isKeyOf, splitCertificates } = await pki();
  const { certificate, authorities } = issued;
  if (certificate.length + authorities.length > maxCharacters) {
    throw new Error("the principal's certificates are too long");
  }
  if (!isKeyOf(certificate, key)) {
    throw new Error('the certificate that the principal has issued is for another key');
  }
  splitCertificates(authorities, "the principal's authorities");
  return issued;
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

function encoded(fields: TextFields): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, Buffer.from(text).toString('base64')]));
}
