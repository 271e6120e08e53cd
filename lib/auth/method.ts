import type { AuthRequest, ClientInfo } from './identity.ts';

/** One way for agents to prove who they are. */
export interface AuthMethod {
  /** The name that agents put into their requests: `mtls`, `userpass` or `header`. */
  readonly name: string;
  /**
   * The agent's name, always a DNS-1123 label.
   *
   * @throws AuthError when the credentials do not prove one
   */
  authenticate(request: AuthRequest, peer: ClientInfo): Promise<string>;
  /**
   * Who the connection itself says that the peer is; undefined when it does not say. A token counts only on a connection
   * that does not say somebody else: with a stolen token alone nobody gets in. Absent where only requests name agents.
   *
   * @throws AuthError when what the connection shows names no agent
   */
  identify?(peer: ClientInfo): string | undefined;
}
