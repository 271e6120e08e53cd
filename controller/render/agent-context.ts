import { createHash } from 'node:crypto';
import type { KeyCertificate } from '../../lib/pki/index.ts';

/** What decides about the agent of a managed cluster. */
export interface AgentInput {
  /** Namespace of Argo CD and the agent on the managed cluster. */
  readonly namespace: string;
  readonly mode: 'managed' | 'autonomous';
  readonly serverAddress: string;
  readonly serverPort: string;
  /** PEM certificates that the principal's certificate may come from. */
  readonly authorities: string;
  /** Undefined when the cluster gets its certificate by itself. */
  readonly clientCertificate: KeyCertificate | undefined;
  readonly agentImage: string;
  readonly pullPolicy: string;
  /** Which rights live access gets: `Full`, `None` or the name of a ClusterRole of the cluster. */
  readonly liveAccess: string;
  /** Of managed agents: Applications keep their namespaces, which are made. False: all go to that of Argo CD. */
  readonly destinationBasedMapping: boolean;
}

/** Secret with the agent's client certificate: the name that the original's operator gives it. */
export const clientSecretName = 'argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert';

/** The Secret into which OCM's registration agent puts the certificate that it asked for: add-on, signer. */
export const requestedSecretName = 'argocd-agent-addon-open-cluster-management.io-argocd-agent-addon-client-cert';

/** The ClusterRole that is delivered for live access to everything that Applications may hold. */
const fullLiveAccess = 'argocd-agent-live-access';

/** What the templates of the agent are filled with. */
export function agentContextOf(input: AgentInput) {
  const params = {
    namespace: input.namespace,
    serverAddress: input.serverAddress,
    serverPort: input.serverPort,
    mode: input.mode,
    clientSecretName: input.clientCertificate ? clientSecretName : requestedSecretName,
    destinationBasedMapping: input.mode === 'managed' && input.destinationBasedMapping,
  };
  return {
    ...params,
    authorities: input.authorities,
    clientCertificate: input.clientCertificate ?? false,
    agentImage: input.agentImage,
    pullPolicy: input.pullPolicy,
    /** The agents' service accounts. */
    agents: [{ name: 'argocd-agent-agent', namespace: input.namespace }],
    liveAccessIsFull: input.liveAccess === 'Full',
    liveAccessRole: input.liveAccess === 'Full' ? fullLiveAccess : input.liveAccess !== 'None' && input.liveAccess,
    paramsDigest: createHash('sha256').update(JSON.stringify(params)).digest('hex').slice(0, 16),
  };
}

/** What the templates of the agent need. */
export type AgentContext = ReturnType<typeof agentContextOf>;
