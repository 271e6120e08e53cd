import type { VirtualTime } from '../../../simulation/index.ts';
import type { AgentSync, HubSync, Message, PeerConnection } from '../index.ts';

/** What one side of a connection sent and acknowledged. */
export interface RecordedSide {
  /** Everything sent, acknowledgements apart. */
  readonly sent: Message[];
  /** `type resourceId eventId` of everything acknowledged. */
  readonly acknowledged: string[];
}

/** Joins a principal and an agent by a connection that loses nothing, until the returned function is called. */
export function joinPeers(
  time: Pick<VirtualTime, 'after'>,
  principal: RecordedSide & { readonly sync: HubSync },
  agent: RecordedSide & { readonly sync: AgentSync },
  { name, mode }: { readonly name: string; readonly mode: 'managed' | 'autonomous' },
): () => void {
  let isOpen = true;
  const later = (run: () => void) => time.after(0, () => (isOpen ? run() : undefined));
  const down: PeerConnection = {
    send: (message) => {
      principal.sent.push(message);
      later(() => agent.sync.receive(message));
      return true;
    },
    acknowledge: (message) => {
      principal.acknowledged.push(messageName(message));
      later(() => agent.sync.acknowledged(message));
    },
  };
  const up: PeerConnection = {
    send: (message) => {
      agent.sent.push(message);
      later(() => principal.sync.receive(name, message));
      return true;
    },
    acknowledge: (message) => {
      agent.acknowledged.push(messageName(message));
      later(() => principal.sync.acknowledged(name, message));
    },
  };
  principal.sync.connected(name, mode, down);
  agent.sync.connected(up, { agent: name, principalNamespace: 'argocd' });
  return () => {
    isOpen = false;
    principal.sync.disconnected(name, down);
    agent.sync.disconnected(up);
  };
}

/** A short form of a message: its type and ids. */
export function messageName(message: Message): string {
  return `${message.type} ${message.resourceId} ${message.eventId}`;
}
