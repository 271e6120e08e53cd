/** Something that is wrong: what, where, and the command that mends it. */
export type Diagnosis = {
  /** Names the fault, for programs. */
  readonly id: string;
  /** The cluster that it concerns; empty for the whole hub. */
  readonly cluster: string;
  readonly what: string;
  readonly where: string;
  readonly mend: string;
};

/**
 * Faults in the order of causality: one may be the consequence of those before it, never of those after it. So the first
 * finding is the cause.
 */
const order = [
  'hub-unreachable',
  'clock-skew',
  'missing-right',
  'no-answer',
  'namespace-missing',
  'authority-missing',
  'authority-invalid',
  'authority-expired',
  'principal-certificate-missing',
  'principal-certificate-invalid',
  'principal-certificate-expired',
  'principal-certificate-wrong-authority',
  'proxy-certificate-missing',
  'proxy-certificate-invalid',
  'proxy-certificate-expired',
  'proxy-certificate-wrong-authority',
  'jwt-key-missing',
  'jwt-key-invalid',
  'principal-right-missing',
  'principal-not-ready',
  'redis-missing',
  'redis-not-ready',
  'fleet-condition',
  'repository-project-missing',
  'repository-invalid',
  'repository-incomplete',
  'cluster-secret-without-agent',
  'cluster-secret-wrong-label',
  'cluster-not-enrolled',
  'agent-mapped-twice',
  'cluster-name-twice',
  'cluster-secret-wrong-server',
  'cluster-secret-reconciled',
  'client-certificate-invalid',
  'client-certificate-expired',
  'client-certificate-wrong-authority',
  'client-certificate-wrong-name',
  'agent-namespace-missing',
  'cluster-unreachable',
  'cluster-clock-skew',
  'agent-missing-right',
  'agent-authority-missing',
  'agent-authority-wrong',
  'agent-certificate-missing',
  'agent-certificate-invalid',
  'agent-certificate-expired',
  'agent-certificate-wrong-authority',
  'agent-certificate-wrong-name',
  'certificate-blocked',
  'wrong-mode',
  'dns',
  'port-closed',
  'tls-failed',
  'server-certificate-expired',
  'server-certificate-wrong-host',
  'server-certificate-wrong-authority',
  'connection-unsteady',
  'version-skew',
  'agent-not-ready',
  'agent-redis-not-ready',
  'quota',
  'add-on-condition',
  'never-connected',
  'disconnected',
  'round-trip-failed',
  'repository-name-taken',
  'repository-not-delivered',
  'repository-outdated',
  'repository-refused',
  'change-not-delivered',
  'state-not-reported',
  'certificate-ends-soon',
];

/** Findings with the cause first. */
export function inOrder(findings: readonly Diagnosis[]): Diagnosis[] {
  const rank = ({ id }: Diagnosis) => {
    const at = order.indexOf(id);
    return at < 0 ? order.length : at;
  };
  return [...findings].sort((a, b) => rank(a) - rank(b) || (a.cluster < b.cluster ? -1 : 1));
}

/** Makes findings about one agent. */
export function findingsAbout(cluster: string): (id: string, what: string, where: string, mend: string) => Diagnosis {
  return (id, what, where, mend) => ({ id, cluster, what, where, mend });
}
