import type { VirtualTime } from '../../sync/testing.ts';
import type { AgentParts, Message, PeerConnection, PrincipalParts } from '../index.ts';

/** What one side said over a connection, and the means to answer it. */
export interface Talk {
  /** Everything sent, acknowledgements apart. */
  readonly said: Message[];
  /** `type resourceId eventId` of everything acknowledged. */
  readonly acknowledged: string[];
}

/** Joins a principal and an agent by a connection that loses nothing, until the returned function is called. */
export function joinParts(
  time: Pick<VirtualTime, 'after'>,
  principal: Talk & { readonly parts: PrincipalParts },
  agent: Talk & { readonly parts: AgentParts },
  { name, mode }: { readonly name: string; readonly mode: 'managed' | 'autonomous' },
): () => void {
  let isOpen = true;
  const later = (run: () => void) => time.after(0, () => (isOpen ? run() : undefined));
  const down: PeerConnection = {
    send: (message) => {
      principal.said.push(message);
      later(() => agent.parts.receive(message));
      return true;
    },
    acknowledge: (message) => {
      principal.acknowledged.push(nameOf(message));
      later(() => agent.parts.acknowledged(message));
    },
  };
  const up: PeerConnection = {
    send: (message) => {
      agent.said.push(message);
      later(() => principal.parts.receive(name, message));
      return true;
    },
    acknowledge: (message) => {
      agent.acknowledged.push(nameOf(message));
      later(() => principal.parts.acknowledged(name, message));
    },
  };
  principal.parts.connected(name, mode, down);
  agent.parts.connected(up, { agent: name, principalNamespace: 'argocd' });
  return () => {
    isOpen = false;
    principal.parts.disconnected(name, down);
    agent.parts.disconnected(up);
  };
}

/** A message in a word: its type and ids. */
export function nameOf(message: Message): string {
  return `${message.type} ${message.resourceId} ${message.eventId}`;
}
