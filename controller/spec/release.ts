import { createHash } from 'node:crypto';
import type { CustomResourceDefinition } from '../../lib/kube/index.ts';
import { type Caches, kindsOf, operatorKinds } from '../hub/index.ts';
import { type DeliverySettings, defaultImages } from './delivery-settings.ts';
import type { AddOnSettings } from './spec.ts';

/** What runs on a cluster: images before they are looked up in mirrors, and a hash of Argo CD's CRDs. */
export interface Version {
  readonly agent: string;
  readonly argoCD?: string | undefined;
  readonly redis?: string | undefined;
  readonly operator?: string | undefined;
  readonly crds?: string | undefined;
}

/** A version with the CRDs that belong to it, by name. */
export interface Release {
  readonly version: Version;
  readonly crds: ReadonlyMap<string, CustomResourceDefinition>;
}

/** What of the hub decides about versions. */
export type HubState = Pick<Caches, 'crd' | 'hubImage' | 'principalImage'>;

/** What the clusters of a GitOpsCluster are to run: what the settings say, else what the hub runs. */
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
  switch (addOn.argoCD) {
    case 'Existing':
      return { version: { agent: agentImage }, crds };
    case 'Operator': {
      const agent = caches.principalImage(namespace) ?? agentImage;
      return { version: { agent, operator: delivery.operatorImage ?? defaultImages.operator, crds: hash }, crds };
    }
    case 'Install': {
      const argoCD = delivery.argoCdImage ?? caches.hubImage(namespace, 'argocd-server') ?? defaultImages.argoCd;
      const redis = delivery.redisImage ?? caches.hubImage(namespace, 'argocd-redis') ?? defaultImages.redis;
      return { version: { agent: agentImage, argoCD, redis, crds: hash }, crds };
    }
  }
}

const hashes = new WeakMap<CustomResourceDefinition, string>();

/** CRDs are long, and asked for often. */
function hashOf(crd: CustomResourceDefinition): string {
  const known = hashes.get(crd) ?? createHash('sha256').update(JSON.stringify(crd.spec)).digest('hex');
  hashes.set(crd, known);
  return known;
}

/** A version as text: equal for equal versions. */
export function versionText(version: Version): string {
  return JSON.stringify(Object.fromEntries(Object.entries(version).sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** Whether two versions are of the same parts, so that one can take the place of the other. */
export function isComparable(a: Version, b: Version): boolean {
  const parts = (version: Version) => Object.keys(version).sort().join();
  return parts(a) === parts(b);
}

/** A version for people. */
export function describeVersion({ argoCD, operator, agent }: Version): string {
  const first = argoCD ? `Argo CD ${argoCD}, ` : operator ? `argocd-operator ${operator}, ` : '';
  return `${first}agent ${agent}`;
}
