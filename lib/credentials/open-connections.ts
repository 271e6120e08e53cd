import type { X509Certificate } from 'node:crypto';
import { fingerprintOf } from '../auth/index.ts';
import { after, type Logger } from '../base/index.ts';
import { parseCertificates, trustPath } from '../pki/index.ts';

/** Why a client certificate does not count: it is on the blocklist, or it has expired or lacks an authority that is trusted. */
export interface CertificateProblem {
  readonly code: 'revoked' | 'certificate';
  readonly reason: string;
}

/** Ends a connection, or a call on it, with everything that it carries. A connection is ended once. */
export type EndUse = (reason: string) => void;

/** A connection whose client has shown a certificate that TLS has verified. */
export interface CertifiedSocket {
  readonly certificate: X509Certificate;
  readonly address: string;
  /** When it was accepted, by `performance.now()`: TLS has judged by what was trusted then. */
  readonly since: number;
  readonly end: EndUse;
  onClose(listener: () => void): void;
}

/** Why a certificate does not count now; undefined while it does. */
export type Judgement = () => CertificateProblem | undefined;

/** A port that authenticates clients by certificates. */
export interface CertifiedPort {
  /**
   * The authorities that client certificates must come from, PEM, from now on; undefined for none. A connection whose authority is
   * not among them any more is ended, unless its certificate comes from another one.
   */
  trust(authorities: string | undefined): void;
  /**
   * A connection has been opened. It is ended as soon as its certificate does not count any more; whether it counts at first, and
   * for each request, says the judgement.
   */
  opened(socket: CertifiedSocket): Judgement;
}

/** The wall clock may be set: it is looked at this often while a certificate is awaited to expire. */
const clockMs = 60_000;

/**
 * The open connections of all ports that authenticate, and what agents have open on them. What proved a client is judged again, by
 * the judgement of new connections, whenever something happens on which it depends: an authority is not trusted any more, a
 * fingerprint is blocked, a certificate expires, a cluster Secret goes, a key of tokens is withdrawn. What fails is ended at once.
 */
export class OpenConnections {
  readonly #isBlocked: (fingerprint: string) => boolean;
  readonly #logger: Logger;
  readonly #open = new Set<OpenConnection>();
  readonly #uses = new Map<string, Set<Use>>();
  /** When the first certificate expires, and how to stop waiting for it. */
  #next: { readonly ends: number; readonly cancel: () => void } | undefined;

  /** @param options.isBlocked whether a certificate is on the blocklist, by its fingerprint. Default: none is */
  constructor(options: { isBlocked?(fingerprint: string): boolean; readonly logger: Logger }) {
    this.#isBlocked = (fingerprint) => options.isBlocked?.(fingerprint) ?? false;
    this.#logger = options.logger;
  }

  /** A port, by its name in the log. Tell it what it trusts before it listens. */
  port(name: string): CertifiedPort {
    let authorities: readonly X509Certificate[] = [];
    let fingerprints: ReadonlySet<string> = new Set();
    let lostAt = Number.NEGATIVE_INFINITY;
    const own = new Set<OpenConnection>();
    return {
      trust: (pem) => {
        const before = fingerprints;
        authorities = pem === undefined ? [] : parseCertificates(pem, 'certificate authorities');
        fingerprints = new Set(authorities.map(({ fingerprint256 }) => fingerprint256));
        if (isWithin(before, fingerprints)) {
          return;
        }
        lostAt = performance.now();
        const orphans = [...own].filter(({ proof }) => proof === undefined || !isWithin(proof, fingerprints));
        for (const connection of orphans) {
          Object.assign(connection, proofOf(connection.certificate, authorities));
        }
        this.#judge(orphans);
      },
      opened: (socket) => {
        const { certificate } = socket;
        const proof = proofOf(certificate, authorities);
        // Node does not tell which authorities between a client has shown: any of the trusted ones may vouch for them.
        if (proof.proof === undefined && socket.since > lostAt) {
          proof.proof = fingerprints;
        }
        const connection = { ...socket, ...proof, port: name, fingerprint: fingerprintOf(certificate), isEnded: false };
        own.add(connection);
        this.#open.add(connection);
        this.#awaitEnd(connection.ends);
        socket.onClose(() => {
          own.delete(connection);
          this.#open.delete(connection);
        });
        return () => this.#problemOf(connection);
      },
    };
  }

  /**
   * An agent has something open with its login: a call, a request that is being answered.
   * @param token what it was opened with; undefined when the connection alone proves the agent
   * @returns what to call when it has ended
   */
  used(agent: string, end: EndUse, token?: string): () => void {
    const use: Use = { end, token };
    const uses = this.#uses.get(agent) ?? new Set();
    this.#uses.set(agent, uses.add(use));
    return () => {
      uses.delete(use);
      if (uses.size === 0 && this.#uses.get(agent) === uses) {
        this.#uses.delete(agent);
      }
    };
  }

  /** The list of blocked certificates has changed. */
  blocklistChanged(): void {
    this.#judge(this.#open);
  }

  /** The last cluster Secret of an agent is gone. */
  agentGone(agent: string): void {
    for (const { end } of [...(this.#uses.get(agent) ?? [])]) {
      end('the agent is no longer mapped to a cluster');
    }
  }

  /**
   * Another key signs tokens, or one that has signed them does not count any more.
   * @param isSigned whether a token is signed by a key that counts, whatever its age
   */
  async keysChanged(isSigned: (token: string) => Promise<boolean>): Promise<void> {
    const all = [...this.#uses].flatMap(([agent, uses]) => [...uses].map((use) => ({ agent, uses, use })));
    for (const { agent, uses, use } of all) {
      if (use.token !== undefined && !(await isSigned(use.token)) && uses.has(use)) {
        this.#logger.warn({ agent }, 'what an agent has open is ended: the key of its token does not count any more');
        use.end('the key of the token does not count any more');
      }
    }
  }

  #problemOf({ certificate, fingerprint, proof, ends }: OpenConnection): CertificateProblem | undefined {
    if (this.#isBlocked(fingerprint)) {
      return { code: 'revoked', reason: 'the client certificate is on the blocklist' };
    }
    if (proof === undefined) {
      const { subject, issuer } = namesOf(certificate);
      const reason = `the certificate of "${subject}" was issued by "${issuer}", which is not trusted any more`;
      return { code: 'certificate', reason };
    }
    return ends > Date.now()
      ? undefined
      : { code: 'certificate', reason: `the certificate expired on ${new Date(ends).toISOString()}` };
  }

  #judge(connections: Iterable<OpenConnection>): void {
    for (const connection of [...connections]) {
      const problem = this.#problemOf(connection);
      if (problem !== undefined && !connection.isEnded) {
        connection.isEnded = true;
        const { port, address: peer, certificate, fingerprint, end } = connection;
        const about = { port, peer, subject: namesOf(certificate).subject, fingerprint };
        this.#logger.warn(about, `an open connection is ended: ${problem.reason}`);
        end(problem.reason);
      }
    }
  }

  #awaitEnd(ends: number): void {
    if (this.#next !== undefined && this.#next.ends <= ends) {
      return;
    }
    this.#next?.cancel();
    const look = () => {
      this.#next = undefined;
      if (ends > Date.now()) {
        this.#awaitEnd(ends);
      } else {
        this.#expired();
      }
    };
    const waitMs = Math.min(Math.max(0, ends - Date.now()), clockMs);
    this.#next = { ends, cancel: after(waitMs, look, { unref: true }) };
  }

  #expired(): void {
    const now = Date.now();
    this.#judge([...this.#open].filter(({ ends }) => ends <= now));
    const [first] = [...this.#open]
      .map(({ ends }) => ends)
      .filter((ends) => ends > now)
      .sort((a, b) => a - b);
    if (first !== undefined) {
      this.#awaitEnd(first);
    }
  }
}

interface OpenConnection extends CertifiedSocket, Proof {
  readonly port: string;
  readonly fingerprint: string;
  /** It may take its time to close. */
  isEnded: boolean;
}

/** What vouches for a certificate. */
interface Proof {
  /** Fingerprints of the authorities that must stay trusted; undefined when nothing vouches for it. */
  proof: ReadonlySet<string> | undefined;
  /** By the wall clock, ms. */
  ends: number;
}

interface Use {
  readonly end: EndUse;
  readonly token: string | undefined;
}

function proofOf(certificate: X509Certificate, authorities: readonly X509Certificate[]): Proof {
  const path = trustPath([certificate], authorities);
  return {
    proof: path && new Set([path.authority.fingerprint256]),
    ends: (path?.ends ?? certificate.validToDate).getTime(),
  };
}

function isWithin(some: ReadonlySet<string>, all: ReadonlySet<string>): boolean {
  return [...some].every((one) => all.has(one));
}

/** Names on one line. Node gives nothing for an empty one, whatever its types say. */
function namesOf({ subject, issuer }: { readonly subject?: string; readonly issuer?: string }) {
  return { subject: (subject ?? '').replaceAll('\n', ', '), issuer: (issuer ?? '').replaceAll('\n', ', ') };
}
