import { AuthError } from '../../lib/auth/index.ts';
import { BoundedMap, type Logger, TokenBucket } from '../../lib/base/index.ts';
import { type Informer, isConflict, type KubeClient, type Secret, secrets } from '../../lib/kube/index.ts';
import type { Reloadable } from '../../lib/ops/index.ts';
import {
  certifyClient,
  inspectCertificate,
  type KeyCertificate,
  PkiError,
  readSigningRequest,
  type SigningRequest,
} from '../../lib/pki/index.ts';
import type { MappedAgents } from '../clusters/mapped-agents.ts';
import { certificateMs } from '../hub/pki.ts';
import { agentOfToken, isRecordOf, markUsed, recordIn, sha256, type TokenRecord, tokensSecret } from './tokens.ts';

/** What {@link CertificateIssuer} works with. */
export interface CertificateIssuerOptions {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'mergePatch'>;
  readonly secrets: Pick<Informer<Secret>, 'get'>;
  readonly agents: Pick<MappedAgents, 'has'>;
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
/** Others may write the Secret of the tokens at the same time. */
const attempts = 5;

/**
 * Gives certificates to agents: for a token that an operator has made with `argocd-agent enroll`, or to renew one. A token
 * counts for one agent and one key: a second key gets nothing, and the same key may ask again when the answer was lost.
 */
export class CertificateIssuer {
  readonly #options: CertificateIssuerOptions;
  readonly #rates = new BoundedMap<string, TokenBucket>(maxAgents);

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
    checkedRecord(cache.get(key), agent, token);
    this.#limit(agent);
    const read = await this.#readRequest(agent, request);
    await this.#use(agent, token, sha256(new Uint8Array(read.publicKey.rawData)));
    return this.#issue(agent, read, 'by a token');
  }

  /**
   * Renews the certificate of an agent that has logged in.
   * @throws AuthError `bad-enrolment` or `too-often`
   */
  async renew(agent: string, request: string): Promise<IssuedCertificate> {
    if (!this.#options.agents.has(agent)) {
      throw refusal(agent, 'it has no cluster Secret');
    }
    this.#limit(agent);
    return this.#issue(agent, await this.#readRequest(agent, request), 'to renew the last one');
  }

  /** Marks the token as used by a key: the first one gets it. */
  async #use(agent: string, token: string, key: string): Promise<void> {
    const { client, secrets: cache, namespace, signal } = this.#options;
    const name = { namespace, name: tokensSecret };
    let secret = cache.get(name);
    for (let attempt = 1; ; attempt++) {
      const record = checkedRecord(secret, agent, token);
      if (record.key === key) {
        return;
      }
      if (record.key !== undefined) {
        throw refusal(agent, 'its token has been used');
      }
      try {
        return await markUsed(client, secret as Secret, { agent, record, key, signal });
      } catch (error) {
        if (!isConflict(error) || attempt === attempts) {
          throw error;
        }
        secret = await client.get(secrets, name, signal);
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

  async #issue(agent: string, request: SigningRequest, why: string): Promise<IssuedCertificate> {
    const { authority, trust, logger } = this.#options;
    if (authority.value === undefined || trust.value === undefined) {
      throw new Error(`no certificate can be issued: ${authority.origin}: ${authority.problem ?? 'not read yet'}`);
    }
    const subject = { commonName: agent, organizations: [] };
    const life = { authority: authority.value, lifetimeMs: certificateMs };
    const certificate = await certifyClient(request, subject, life);
    const { fingerprint, notAfter } = inspectCertificate(certificate);
    logger.info({ agent, fingerprint, until: notAfter.toISOString() }, `An agent gets a certificate ${why}`);
    return { certificate, authorities: trust.value };
  }
}

/** The record of a token that counts, used or not. */
function checkedRecord(secret: Secret | undefined, agent: string, token: string): TokenRecord {
  const record = recordIn(secret, agent);
  if (record === undefined || !isRecordOf(record, token)) {
    // No answer: who guesses learns nothing.
    throw new AuthError('bad-enrolment', 'The hub does not know the enrolment token', { agent });
  }
  if (Date.parse(record.expires) <= Date.now()) {
    throw refusal(agent, `its token has expired at ${record.expires}`);
  }
  return record;
}

/** A refusal whose reason the agent is told: it has shown that the token, or the login, is its own. */
function refusal(agent: string, reason: string): AuthError {
  return new AuthError('bad-enrolment', `The agent gets no certificate: ${reason}`, { agent, answer: reason });
}
