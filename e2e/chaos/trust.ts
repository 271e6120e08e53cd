import { createAuthority, issueCertificate, type KeyCertificate } from '../../lib/pki/index.ts';
import { giveAgentCredentials, giveHubMaterial } from '../pair/index.ts';
import type { Cluster } from '../testbed/index.ts';
import { persist } from '../testbed/index.ts';

/** Whose certificates {@link Trust} issues. */
export interface TrustOptions {
  readonly authority: KeyCertificate;
  readonly jwtKey: string;
  readonly hubs: readonly Cluster[];
  readonly agents: readonly { readonly name: string; readonly cluster: Cluster }[];
}

/** Who issues a fleet's certificates, which can be replaced while the fleet works. Writes survive outages. */
export class Trust {
  readonly #options: TrustOptions;
  #authority: KeyCertificate;
  #former: KeyCertificate | undefined;

  constructor(options: TrustOptions) {
    this.#options = options;
    this.#authority = options.authority;
  }

  /** What is trusted: the authority and the one before it, PEM. */
  get bundle(): string {
    return `${this.#authority.certificate}${this.#former?.certificate ?? ''}`;
  }

  /** A client certificate, such as Argo CD has for a cluster. */
  clientCertificate(commonName: string): Promise<KeyCertificate> {
    return issueCertificate({ authority: this.#authority, commonName, usages: ['client'] });
  }

  /** Gives everybody a new certificate. */
  async issueAll(): Promise<void> {
    await Promise.all([this.issueForHub(), ...this.#options.agents.map(({ name }) => this.issueForAgent(name))]);
  }

  /** Gives the principals new certificates. */
  async issueForHub(): Promise<void> {
    await this.#writeHub(this.#authority);
  }

  /** Gives an agent a new certificate. */
  async issueForAgent(name: string): Promise<void> {
    await this.#writeAgent(name, this.#authority);
  }

  /** A new authority: everybody trusts both, and when `spread` resolves, everybody gets certificates of the new one. */
  async change(spread: () => Promise<unknown>): Promise<void> {
    const issuer = this.#authority;
    this.#former = issuer;
    this.#authority = await createAuthority({ commonName: 'argocd-agent-ca@chaos' });
    await Promise.all([
      this.#writeHub(issuer),
      ...this.#options.agents.map(({ name }) => this.#writeAgent(name, issuer)),
    ]);
    await spread();
    await this.issueAll();
  }

  async #writeHub(authority: KeyCertificate): Promise<void> {
    const { jwtKey, hubs } = this.#options;
    const material = { authority, jwtKey, trust: this.bundle, isPaired: hubs.length > 1 };
    await Promise.all(hubs.map(({ client }) => persist(() => giveHubMaterial(client, material))));
  }

  async #writeAgent(name: string, authority: KeyCertificate): Promise<void> {
    const trust = { certificate: this.bundle, key: '' };
    for (const { cluster } of this.#options.agents.filter((one) => one.name === name)) {
      await persist(() => giveAgentCredentials(cluster.client, authority, name, { trust }));
    }
  }
}
