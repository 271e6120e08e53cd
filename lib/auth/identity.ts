import type { X509Certificate } from 'node:crypto';

/** How an agent works: `managed` takes its Applications from the principal, `autonomous` gives its own to it. */
export type AgentMode = 'managed' | 'autonomous';

/** Whether a text is one of the two modes. */
export function isAgentMode(value: string): value is AgentMode {
  return value === 'managed' || value === 'autonomous';
}

/** Who an access token speaks for. */
export interface AgentIdentity {
  readonly agent: string;
  readonly mode: AgentMode;
}

/** The other end of a connection, as far as the transport knows it. */
export interface ClientInfo {
  /** `address:port`. */
  readonly address: string;
  /** Whether the connection is encrypted. */
  readonly encrypted: boolean;
  /** The client certificate, present only if it was verified against the trusted CAs and is in force. */
  readonly certificate?: X509Certificate;
  /** Request headers that credentials may be in, names in lower case (only what the caller chose to pass on). */
  header(name: string): string | undefined;
  /** Whether nobody waits for an answer any more. */
  isGone?(): boolean;
}

/** What an agent presents to get tokens: argocd-agent's `AuthRequest`. */
export interface AuthRequest {
  readonly method: string;
  readonly credentials: Readonly<Record<string, string>>;
  readonly mode: AgentMode;
  readonly version: string;
  readonly agentNamespace: string;
}

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Whether a name is a DNS-1123 label, as every agent name must be. */
export function isDnsLabel(name: string): boolean {
  return label.test(name);
}
