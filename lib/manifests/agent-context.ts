import { createHash } from 'node:crypto';
import { bracketed } from '../base/index.ts';
import type { KeyCertificate } from '../pki/index.ts';

/** The settings of the agent on a managed cluster. */
export interface AgentInput {
  /** Namespace of Argo CD and the agent on the managed cluster. */
  readonly namespace: string;
  readonly mode: 'managed' | 'autonomous';
  readonly serverAddress: string;
  readonly serverPort: string;
  /** Certificates of the authorities that may have issued the principal's certificate, PEM. */
  readonly authorities: string;
  /** Secret with the agent's client certificate. */
  readonly clientSecretName: string;
  /** Undefined when the cluster requests its certificate itself. */
  readonly clientCertificate: KeyCertificate | undefined;
  /** The token by which the agent requests its certificate from the principal; undefined when it does not. */
  readonly enrolmentToken: string | undefined;
  /** Whether the namespace belongs to the add-on, which deletes it when the cluster is detached. */
  readonly isAddOn: boolean;
  readonly agentImage: string;
  readonly pullPolicy: string;
  /** The agent's rights for live access: `Full`, `None` or the name of a ClusterRole on the cluster. */
  readonly liveAccess: string;
  /** Managed agents: true keeps the namespaces of Applications and creates them; false puts all into Argo CD's namespace. */
  readonly destinationBasedMapping: boolean;
  /** Namespaces whose pods may read the agent's metrics and health. Default: the usual ones of Prometheus. */
  readonly metricsNamespaces?: readonly string[] | undefined;
}

/** As in the charts' values. */
const usualMetricsNamespaces = ['monitoring', 'openshift-monitoring', 'openshift-user-workload-monitoring'];

/** Name of the delivered ClusterRole with full rights for live access. */
const fullLiveAccess = 'argocd-agent-live-access';

/**
 * Whether an image is argocd-agent's own, which needs more rights and answers other probes than this project's. Its name
 * tells, in any registry.
 */
export function isOriginalImage(image: string): boolean {
  return /(^|\/)argocd-agent([:@]|$)/.test(image);
}

/** The values that the agent's templates are rendered with. */
export function agentContextOf(input: AgentInput) {
  const params = {
    namespace: input.namespace,
    // Agents of argocd-agent append the port to it as it is.
    serverAddress: bracketed(input.serverAddress),
    serverPort: input.serverPort,
    mode: input.mode,
    clientSecretName: input.clientSecretName,
    destinationBasedMapping: input.mode === 'managed' && input.destinationBasedMapping,
  };
  return {
    ...params,
    authorities: input.authorities,
    isAutonomous: input.mode === 'autonomous',
    clientCertificate: input.clientCertificate ?? false,
    enrolmentToken: input.enrolmentToken ?? false,
    isAddOn: input.isAddOn,
    agentImage: input.agentImage,
    isOriginal: isOriginalImage(input.agentImage),
    pullPolicy: input.pullPolicy,
    /** The agents' service accounts. */
    agents: [{ name: 'argocd-agent-agent', namespace: input.namespace }],
    metricsNamespaces: input.metricsNamespaces ?? usualMetricsNamespaces,
    liveAccessIsFull: input.liveAccess === 'Full',
    liveAccessRole: input.liveAccess === 'Full' ? fullLiveAccess : input.liveAccess !== 'None' && input.liveAccess,
    paramsDigest: createHash('sha256').update(JSON.stringify(params)).digest('hex').slice(0, 16),
  };
}

/** The values that the agent's templates are rendered with. */
export type AgentContext = ReturnType<typeof agentContextOf>;
