import { type PrincipalEndpoint, principalHosts, type ServiceExposure } from '../endpoint/index.ts';
import { type Caches, type GitOpsCluster, isGuest, type Parsed, quoted } from '../hub/index.ts';
import { type ClusterLabels, defaultClusterLabels } from './cluster-labels.ts';
import type { DeliverySettings } from './delivery-settings.ts';
import { type AddOnSettings, type FleetSpec, parseGitOpsCluster } from './spec.ts';

/** The hub's state that limits what a guest may set, and the controller's settings. */
export interface HostState {
  readonly caches: Pick<Caches, 'gitOpsClusters' | 'principalNamespaceOf' | 'serviceExposure'>;
  readonly delivery: Pick<DeliverySettings, 'clusterLabels'>;
}

/**
 * The specification of a GitOpsCluster, with what its principal's namespace says about the principal if that is another one.
 * What such a guest sets must not reach beyond its own clusters; the rest is refused.
 */
export function specOnHub({ caches, delivery }: HostState, gitOpsCluster: GitOpsCluster): FleetSpec {
  const spec = parseGitOpsCluster(gitOpsCluster);
  const namespace = caches.principalNamespaceOf(gitOpsCluster);
  if (!isGuest(gitOpsCluster, namespace)) {
    return spec;
  }
  const subject = `GitOpsCluster ${gitOpsCluster.metadata.namespace}/${gitOpsCluster.metadata.name}`;
  const host = { namespace, exposure: caches.serviceExposure(namespace), hosts: hostsIn(caches, namespace) };
  return {
    ...spec,
    server: spec.server.value ? guestServer(spec.server.value, host, subject) : spec.server,
    addOn: guestAddOn(spec.addOn, delivery.clusterLabels ?? defaultClusterLabels, namespace, subject),
  };
}

/** The addresses that the GitOpsClusters of a principal's own namespace set, the oldest one's first. */
function hostsIn({ gitOpsClusters }: HostState['caches'], namespace: string): PrincipalEndpoint[] {
  const age = ({ metadata }: GitOpsCluster) => `${metadata.creationTimestamp} ${metadata.name}`;
  return gitOpsClusters
    .list(namespace)
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .sort((a, b) => (age(a) < age(b) ? -1 : 1))
    .flatMap((one) => parseGitOpsCluster(one).server.value ?? [])
    .filter(({ address }) => address !== '');
}

/** An address must be in the principal's certificate anyway: that certificate is the whole fleet's. */
function guestServer(
  own: PrincipalEndpoint,
  { namespace, exposure, hosts }: { namespace: string; exposure: ServiceExposure; hosts: readonly PrincipalEndpoint[] },
  subject: string,
): FleetSpec['server'] {
  if (own.address === '') {
    const [first = own] = hosts;
    return { value: { address: first.address, port: own.port || first.port } };
  }
  const addresses = hosts.map(({ address }) => address);
  if (principalHosts(exposure, namespace, addresses).includes(own.address)) {
    return { value: own };
  }
  return {
    problem: `${subject}: spec.argoCDAgentAddon.principalServerAddress is ${quoted(own.address)}, which is no address of the principal in namespace ${namespace}; leave the field empty, or have the address set in a GitOpsCluster of that namespace (the chart's value gitOpsCluster.principalServerAddress)`,
  };
}

/** Labels of a cluster Secret decide which Applications a cluster gets, and clusters write many of them themselves. */
function guestAddOn(
  settings: Parsed<AddOnSettings>,
  allowed: ClusterLabels,
  namespace: string,
  subject: string,
): Parsed<AddOnSettings> {
  const { labels = [], claims = [] } = settings.value?.clusterLabels ?? {};
  const more = [
    ...labels.filter((one) => !allowed.labels.includes(one)),
    ...claims.filter((one) => !allowed.claims.includes(one)),
  ];
  if (more.length === 0) {
    return settings;
  }
  return {
    problem: `${subject}: spec.argoCDAgentAddon.clusterLabels has ${quoted(more)}, which only a GitOpsCluster in namespace ${namespace} may have, because cluster Secrets there get these labels; remove the entry, or have it set for all (the chart's value controller.clusterLabels)`,
  };
}
