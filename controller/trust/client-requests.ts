import type { CertificateSigningRequest } from '../../lib/kube/index.ts';
import type { SigningRequest } from '../../lib/pki/index.ts';
import { addOnName, agentSubject, keys, quoted } from '../hub/index.ts';

/** How old a request may be at the first reconcile, in milliseconds. Requesters of older ones have given up or ask again. */
export const requestLifetimeMs = 3_600_000;

const allowedUsages = ['client auth', 'digital signature', 'key encipherment'];

/**
 * Why a requested certificate must not be issued; undefined when it may be issued.
 *
 * OCM gives every cluster's agent the right to create requests, and that right is not bound to a cluster. So the requester,
 * the cluster and the requested subject and usages are checked here.
 */
export function reasonToDeny(csr: CertificateSigningRequest, request: SigningRequest, now: Date): string | undefined {
  const { username = '', groups = [], usages = [] } = csr.spec ?? {};
  const cluster = csr.metadata.labels?.[keys.requestCluster] ?? '';
  if (cluster === '') {
    return `it lacks the label ${keys.requestCluster}`;
  }
  const addOn = csr.metadata.labels?.[keys.addOnName];
  if (addOn !== addOnName) {
    return `its label ${keys.addOnName} is ${quoted(addOn ?? '')}, not "${addOnName}"`;
  }
  const group = `system:open-cluster-management:${cluster}`;
  const [prefix, agent = ''] = [username.slice(0, group.length + 1), username.slice(group.length + 1)];
  if (prefix !== `${group}:` || agent === '' || agent.includes(':') || !groups.includes(group)) {
    return `it was made by ${quoted(username)}, not by the registration agent of cluster ${cluster}`;
  }
  const subject = agentSubject(cluster);
  if (request.commonNames.length !== 1 || request.commonNames[0] !== subject.commonName) {
    return `its common name is ${quoted(request.commonNames.join(', '))}, not "${subject.commonName}"`;
  }
  if (!sameNames(request.organizations, subject.organizations)) {
    return `its organizations are ${quoted(request.organizations.join(', '))}, not "${subject.organizations.join(', ')}"`;
  }
  if (request.otherAttributes.length > 0) {
    return `its subject has more than it may: ${quoted(request.otherAttributes.join(', '))}`;
  }
  const foreign = usages.filter((usage) => !allowedUsages.includes(usage));
  if (foreign.length > 0) {
    return `its usages are more than client authentication: ${quoted(foreign.join(', '))}`;
  }
  if (!usages.includes('client auth')) {
    return 'its usages lack client auth';
  }
  const ownName = `${addOnName}.addon.open-cluster-management.io`;
  const names = [...request.dnsNames.filter((name) => name !== ownName), ...request.otherNames];
  if (names.length > 0) {
    return `it asks for other names: ${quoted(names.join(', '))}`;
  }
  if (request.weakness !== undefined) {
    return request.weakness;
  }
  const age = now.getTime() - Date.parse(csr.metadata.creationTimestamp ?? '');
  if (age > requestLifetimeMs) {
    return 'it is older than an hour; the cluster makes a new one';
  }
  return undefined;
}

/** Whether a request is decided and carried out: it has a certificate, or was denied, or failed. */
export function isDone({ status }: CertificateSigningRequest): boolean {
  return status?.certificate !== undefined || hasVerdict(status, 'Denied') || hasVerdict(status, 'Failed');
}

/** Whether a request has been approved, by anybody. */
export function isApproved({ status }: CertificateSigningRequest): boolean {
  return hasVerdict(status, 'Approved');
}

function hasVerdict(status: CertificateSigningRequest['status'], type: string): boolean {
  return status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return JSON.stringify([...a].sort()) === JSON.stringify([...b].sort());
}
