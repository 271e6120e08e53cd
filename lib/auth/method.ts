import type { AgentIdentity, AuthRequest, ClientInfo, Login } from './identity.ts';

/** A method by which agents prove their identity. */
export interface AuthMethod {
  /** The method's name in agents' requests: `mtls`, `userpass`, `header` or `spiffe-jwt`. */
  readonly name: string;
  /** @throws AuthError when the credentials prove no identity */
  authenticate(request: AuthRequest, peer: ClientInfo): Promise<Login>;
  /**
   * The identity that the connection itself proves; undefined when it proves none. A token is refused on a connection that
   * proves another identity, so a stolen token alone is worthless. Absent where only requests name agents.
   *
   * @throws AuthError when the connection's identity is no agent
   */
  identify?(peer: ClientInfo): string | undefined;
  /**
   * Checks that the credentials of an earlier login are still valid. Absent where only expiry or the blocklist ends them.
   *
   * @throws AuthError when they were withdrawn or replaced
   */
  check?(identity: AgentIdentity): Promise<void>;
}
