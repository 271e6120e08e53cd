import type { X509Certificate } from 'node:crypto';
import { AuthError, fingerprintOf } from '../../lib/auth/index.ts';
import { BoundedMap, backoffDelay, type Logger, sleep, TokenBucket } from '../../lib/base/index.ts';
import { type Informer, isConflict, type KubeClient, type Secret, secrets } from '../../lib/kube/index.ts';
import type { Reloadable } from '../../lib/ops/index.ts';
import {
  certifyClient,
  inspectCertificate,
  isIssuedBy,
  type KeyCertificate,
  PkiError,
  readSigningRequest,
  type SigningRequest,
} from '../../lib/pki/index.ts';
import type { MappedAgents } from '../clusters/mapped-agents.ts';
import { certificateMs } from '../hub/pki.ts';
import { agentOfToken, isRecordOf, putRecord, recordIn, sha256, type TokenRecord, tokensSecret } from './tokens.ts';

/** What {@link CertificateIssuer} works with. */
export interface CertificateIssuerOptions {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'mergePatch'>;
  readonly secrets: Pick<Informer<Secret>, 'get'>;
  readonly agents: Pick<MappedAgents, 'has'>;
  /** Whether a certificate is on the blocklist, by its fingerprint. */
  isBlocked(fingerprint: string): boolean;
  /** Argo CD's namespace on the hub. */
  readonly namespace: string;
  /** Issues the certificates. */
  readonly authority: Pick<Reloadable<KeyCertificate>, 'value' | 'origin' | 'problem'>;
  /** The authorities that agents are to trust, PEM. */
  readonly trust: Pick<Reloadable<string>, 'value'>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** A certificate of an agent, and the authorities that it is to trust, both PEM. */
export interface IssuedCertificate {
  readonly certificate: string;
  readonly authorities: string;
}

/** A certificate costs a signature and at most a few requests to the API server. */
const rate = { burst: 10, perSecond: 0.1 };
/** Agents whose rate is known. */
const maxAgents = 10_000;
/** Tokens that have ended here and whose record may still be there. */
const mostEnded = 1_000;
/** Others may write the Secret of the tokens at the same time. */
const attempts = 5;

/**
 * Gives certificates to agents: for a token that an operator has made with `argocd-agent enroll`, or to renew one. A token
 * counts for one agent, one key and one certificate: a second key gets nothing, and the same key gets the same certificate when the
 * answer was lost. It ends when an agent logs in with that certificate.
 */
export class CertificateIssuer {
  readonly #options: CertificateIssuerOptions;
  readonly #rates = new BoundedMap<string, TokenBucket>(maxAgents);
  readonly #ended = new BoundedMap<string, true>(mostEnded);

  constructor(options: CertificateIssuerOptions) {
    this.#options = options;
  }

  /**
   * Exchanges a token for a certificate.
   * @param request PKCS #10, PEM, with the agent's name as the common name
   * @throws AuthError `bad-enrolment` or `too-often`
   */
  async enroll(token: string, request: string): Promise<IssuedCertificate> {
    const { secrets: cache, namespace } = this.#options;
    const key = { namespace, name: tokensSecret };
    const agent = agentOfToken(token);
    if (agent === undefined) {
      throw new AuthError('bad-enrolment', 'What an agent shows is no enrolment token');
    }
    // The cache refuses guesses without a request to the API server.
    this.#checkedRecord(cache.get(key), agent, token);
    this.#requireMember(agent);
    this.#limit(agent);
    return this.#exchange(agent, token, await this.#readRequest(agent, request));
  }

  /** An agent has logged in with a certificate. If that is the one that it has got for a token, the token ends. */
  loggedIn(agent: string, certificate: X509Certificate): void {
    const { secrets: cache, namespace, logger } = this.#options;
    const record = recordIn(cache.get({ namespace, name: tokensSecret }), agent);
    if (record?.certificate === undefined || fingerprintIn(record.certificate) !== fingerprintOf(certificate)) {
      return;
    }
    this.#ended.set(record.hash, true);
    this.#remove(agent, record.hash).catch((error: unknown) =>
      logger.warn({ agent, error }, 'the record of a token that has been used cannot be removed'),
    );
  }

  /**
   * Renews the certificate of an agent that has logged in.
   * @throws AuthError `bad-enrolment` or `too-often`
   */
  async renew(agent: string, request: string): Promise<IssuedCertificate> {
    this.#requireMember(agent);
    this.#limit(agent);
    const certificate = await this.#issue(agent, await this.#readRequest(agent, request), 'to renew the last one');
    // It may have lost its cluster Secret meanwhile.
    this.#requireMember(agent);
    return this.#withTrust(certificate);
  }

  #requireMember(agent: string): void {
    if (!this.#options.agents.has(agent)) {
      throw refusal(agent, 'it has no cluster Secret');
    }
  }

  /** The certificate for a token: the first key gets it. */
  async #exchange(agent: string, token: string, request: SigningRequest): Promise<IssuedCertificate> {
    const { client, secrets: cache, namespace, signal } = this.#options;
    const name = { namespace, name: tokensSecret };
    const key = sha256(new Uint8Array(request.publicKey.rawData));
    let secret = cache.get(name);
    let made: string | undefined;
    for (let attempt = 1; ; attempt++) {
      const known = this.#certificateFor(agent, key, this.#checkedRecord(secret, agent, token));
      if (known !== undefined) {
        return this.#withTrust(known);
      }
      made ??= await this.#issue(agent, request, 'by a token');
      try {
        const record = { ...this.#checkedRecord(secret, agent, token), key, certificate: made };
        await putRecord(client, secret as Secret, { agent, record, signal });
        return this.#withTrust(this.#certificateFor(agent, key, record) ?? made);
      } catch (error) {
        if (!isConflict(error) || attempt === attempts) {
          throw error;
        }
        secret = await client.get(secrets, name, signal);
      }
    }
  }

  /** The certificate that the key has got for its token, while it counts; undefined when it is to get one. @throws AuthError */
  #certificateFor(agent: string, key: string, record: TokenRecord): string | undefined {
    const { authority, isBlocked } = this.#options;
    this.#requireMember(agent);
    if (record.key !== undefined && record.key !== key) {
      throw refusal(agent, 'its token has been used');
    }
    const { certificate } = record;
    if (certificate === undefined) {
      return undefined;
    }
    if (isBlocked(fingerprintIn(certificate) ?? '')) {
      throw refusal(agent, 'the certificate that it got for its token is on the blocklist');
    }
    return authority.value !== undefined && isOf(certificate, authority.value) ? certificate : undefined;
  }

  /** The record of a token that counts, used or not. */
  #checkedRecord(secret: Secret | undefined, agent: string, token: string): TokenRecord {
    const record = recordIn(secret, agent);
    if (record === undefined || !isRecordOf(record, token)) {
      // No answer: who guesses learns nothing.
      throw new AuthError('bad-enrolment', 'The hub does not know the enrolment token', { agent });
    }
    if (this.#ended.has(record.hash)) {
      throw refusal(agent, 'its token has been used');
    }
    if (Date.parse(record.expires) <= Date.now()) {
      throw refusal(agent, `its token has expired at ${record.expires}`);
    }
    return record;
  }

  async #remove(agent: string, hash: string): Promise<void> {
    const { client, namespace, signal } = this.#options;
    const name = { namespace, name: tokensSecret };
    for (let attempt = 1; ; attempt++) {
      const secret = await client.get(secrets, name, signal);
      if (secret === undefined || recordIn(secret, agent)?.hash !== hash) {
        return;
      }
      try {
        return await putRecord(client, secret, { agent, record: undefined, signal });
      } catch (error) {
        if (!isConflict(error) || attempt === attempts) {
          throw error;
        }
        await sleep(backoffDelay(attempt), signal);
      }
    }
  }

  #limit(agent: string): void {
    const bucket = this.#rates.get(agent) ?? new TokenBucket(rate);
    this.#rates.set(agent, bucket);
    if (!bucket.tryTake()) {
      throw new AuthError('too-often', 'It asks for certificates too often', { agent });
    }
  }

  async #readRequest(agent: string, pem: string): Promise<SigningRequest> {
    let request: SigningRequest;
    try {
      request = await readSigningRequest(pem);
    } catch (error) {
      if (error instanceof PkiError) {
        throw refusal(agent, `its ${error.message}`);
      }
      throw error;
    }
    const { commonNames, weakness } = request;
    if (commonNames.length !== 1 || commonNames[0] !== agent) {
      throw refusal(agent, 'its request is for another name');
    }
    if (weakness !== undefined) {
      throw refusal(agent, weakness);
    }
    return request;
  }

  async #issue(agent: string, request: SigningRequest, why: string): Promise<string> {
    const { authority, logger } = this.#options;
    if (authority.value === undefined) {
      throw new Error(`no certificate can be issued: ${authority.origin}: ${authority.problem ?? 'not read yet'}`);
    }
    const subject = { commonName: agent, organizations: [] };
    const life = { authority: authority.value, lifetimeMs: certificateMs };
    const certificate = await certifyClient(request, subject, life);
    const { fingerprint, notAfter } = inspectCertificate(certificate);
    logger.info({ agent, fingerprint, until: notAfter.toISOString() }, `An agent gets a certificate ${why}`);
    return certificate;
  }

  #withTrust(certificate: string): IssuedCertificate {
    const { trust } = this.#options;
    if (trust.value === undefined) {
      throw new Error('no certificate can be given: the authorities that agents are to trust are not read yet');
    }
    return { certificate, authorities: trust.value };
  }
}

/** Upper-case hex; undefined for what is no certificate: others may write the record. */
function fingerprintIn(pem: string): string | undefined {
  try {
    return inspectCertificate(pem).fingerprint;
  } catch {
    return undefined;
  }
}

/** Whether a certificate is of this authority, and has not expired. */
function isOf(pem: string, authority: KeyCertificate): boolean {
  try {
    return isIssuedBy(pem, authority.certificate) && inspectCertificate(pem).notAfter.getTime() > Date.now();
  } catch {
    return false;
  }
}

/** A refusal whose reason the agent is told: it has shown that the token, or the login, is its own. */
function refusal(agent: string, reason: string): AuthError {
  return new AuthError('bad-enrolment', `The agent gets no certificate: ${reason}`, { agent, answer: reason });
}
