import { createHash } from 'node:crypto';
import { canonicalJson } from '../../lib/base/index.ts';
import type { CustomResourceDefinition } from '../../lib/kube/index.ts';
import { endpointText, type PrincipalEndpoint } from '../endpoint/index.ts';
import { type Caches, kindsOf, operatorKinds } from '../hub/index.ts';
import { type ClusterSettings, mergeSettings } from './cluster-settings.ts';
import { type DeliverySettings, defaultImages } from './delivery-settings.ts';
import type { AddOnSettings } from './spec.ts';

/**
 * What clusters get step by step: images before registries replace them, a hash of the Argo CD CRDs, the principal's
 * endpoint, and settings. A cluster that a rollout has not reached is given the version that its works record again: so the
 * version has the settings themselves.
 */
export interface Version {
  readonly agent: string;
  readonly argoCD?: string | undefined;
  readonly redis?: string | undefined;
  readonly operator?: string | undefined;
  readonly crds?: string | undefined;
  /** Undefined while unknown, and in records of earlier versions. */
  readonly endpoint?: PrincipalEndpoint | undefined;
  /** Undefined when nothing is set. */
  readonly settings?: ClusterSettings | undefined;
}

/** A version and its CRDs, by name. */
export interface Release {
  readonly version: Version;
  readonly crds: ReadonlyMap<string, CustomResourceDefinition>;
}

/** The hub's state that determines versions. */
export type HubState = Pick<Caches, 'crd' | 'hubImage' | 'principalImage'>;

/** The desired release of a GitOpsCluster's clusters: the configured images, else those that the hub runs. */
export function releaseOf(
  { caches, delivery }: { caches: HubState; delivery: DeliverySettings },
  namespace: string,
  addOn: AddOnSettings,
): Release {
  const names = { Install: kindsOf(addOn.mode), Existing: [], Operator: operatorKinds }[addOn.argoCD];
  const crds = new Map(
    names.flatMap((name) => [caches.crd(name)].flatMap((crd) => (crd ? [[name, crd] as const] : []))),
  );
  const hash = createHash('sha256')
    .update([...crds.values()].map(hashOf).join())
    .digest('hex')
    .slice(0, 16);
  const { agentImage } = delivery;
  const settings = settingsOf(delivery, addOn);
  switch (addOn.argoCD) {
    case 'Existing':
      return { version: { agent: agentImage, settings }, crds };
    case 'Operator': {
      const agent = caches.principalImage(namespace) ?? agentImage;
      return { version: { agent, operator: delivery.operatorImage ?? defaultImages.operator, crds: hash }, crds };
    }
    case 'Install': {
      const argoCD = delivery.argoCdImage ?? caches.hubImage(namespace, 'argocd-server') ?? defaultImages.argoCd;
      const redis = delivery.redisImage ?? caches.hubImage(namespace, 'argocd-redis') ?? defaultImages.redis;
      return { version: { agent: agentImage, argoCD, redis, crds: hash, settings }, crds };
    }
  }
}

/** What is set of all that the clusters take from the controller. */
function settingsOf(
  { clusterSettings: base }: DeliverySettings,
  { argoCD, clusterSettings: own }: AddOnSettings,
): ClusterSettings | undefined {
  switch (argoCD) {
    case 'Install':
      return mergeSettings(base, own);
    case 'Existing':
      return mergeSettings({ agentParams: base?.agentParams }, own);
    case 'Operator':
      return undefined;
  }
}

const hashes = new WeakMap<CustomResourceDefinition, string>();

/** SHA-256 of a CRD's specification, cached: CRDs are long, and the hash is needed for every cluster. */
function hashOf(crd: CustomResourceDefinition): string {
  const known = hashes.get(crd) ?? createHash('sha256').update(JSON.stringify(crd.spec)).digest('hex');
  hashes.set(crd, known);
  return known;
}

/** A version as text. Equal versions have equal texts. */
export function versionText(version: Version): string {
  return canonicalJson(version);
}

/** Whether a version is the desired one. Without a known endpoint every endpoint is. */
export function isVersion(version: Version, desired: Version): boolean {
  const { endpoint = version.endpoint } = desired;
  return versionText(version) === versionText({ ...desired, endpoint });
}

/** Whether two versions have the same components, so that one is an update of the other. */
export function isComparable(a: Version, b: Version): boolean {
  const parts = ({ endpoint: _, settings: __, ...images }: Version) => Object.keys(images).sort().join();
  return parts(a) === parts(b);
}

/** A version as text for people. */
export function describeVersion({ argoCD, operator, agent, endpoint, settings }: Version): string {
  const first = argoCD ? `Argo CD ${argoCD}, ` : operator ? `argocd-operator ${operator}, ` : '';
  return `${first}agent ${agent}${endpoint ? `, principal at ${endpointText(endpoint)}` : ''}${settings ? `, settings ${settingsDigest(settings)}` : ''}`;
}

/** A short text that tells settings apart. */
export function settingsDigest(settings: ClusterSettings): string {
  return createHash('sha256').update(canonicalJson(settings)).digest('hex').slice(0, 8);
}
