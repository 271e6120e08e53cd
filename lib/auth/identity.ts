import type { X509Certificate } from 'node:crypto';

/** An agent's mode: `managed` receives its Applications from the principal, `autonomous` reports its own to it. */
export type AgentMode = 'managed' | 'autonomous';

/** Whether a text is one of the two modes. */
export function isAgentMode(value: string): value is AgentMode {
  return value === 'managed' || value === 'autonomous';
}

/** The identity that an agent has proved. */
export interface Login {
  /** The agent's name, always a DNS-1123 label. */
  readonly agent: string;
  /** A digest of the credentials, where the method can withdraw them; the agent's tokens contain it. */
  readonly credential?: string;
}

/** The agent that an access token was issued to. */
export interface AgentIdentity extends Login {
  readonly mode: AgentMode;
}

/** The remote end of a connection, as the transport knows it. */
export interface ClientInfo {
  /** `address:port`. */
  readonly address: string;
  /** Whether the connection is encrypted. */
  readonly encrypted: boolean;
  /** The client certificate; present only if it was verified against the trusted CAs and is valid now. */
  readonly certificate?: X509Certificate;
  /** The request headers that may hold credentials, names in lower case; the caller selects them. */
  header(name: string): string | undefined;
  /** Whether the caller has gone away. */
  isGone?(): boolean;
}

/** An agent's request for tokens: argocd-agent's `AuthRequest`. */
export interface AuthRequest {
  readonly method: string;
  readonly credentials: Readonly<Record<string, string>>;
  readonly mode: AgentMode;
  readonly version: string;
  readonly agentNamespace: string;
}
