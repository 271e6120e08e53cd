import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { CustomResourceDefinition, KubeObject } from '../../lib/kube/index.ts';
import type { Caches } from '../hub/caches.ts';
import { kindsOf, operatorKinds } from '../hub/crds.ts';
import type { ManifestWork } from '../hub/resources.ts';
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

/** Annotations of works: what they were made with, and when it took the place of another version (RFC 3339). */
export const versionKeys = {
  version: 'apps.open-cluster-management.io/delivered-version',
  updatedAt: 'apps.open-cluster-management.io/updated-at',
} as const;

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

const schema = z.object({
  agent: z.string(),
  argoCD: z.string().optional(),
  redis: z.string().optional(),
  operator: z.string().optional(),
  crds: z.string().optional(),
});

/** What a work says that it was made with; undefined when it does not say. */
export function deliveredBy({
  metadata,
}: ManifestWork): { version: Version; updatedAt: string | undefined } | undefined {
  const text = metadata.annotations?.[versionKeys.version];
  if (text === undefined) {
    return undefined;
  }
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return undefined; // somebody wrote into it: as if it was not there
  }
  const { data } = schema.safeParse(content);
  const updatedAt = metadata.annotations?.[versionKeys.updatedAt];
  return data && { version: data, updatedAt: Number.isNaN(Date.parse(updatedAt ?? '')) ? undefined : updatedAt };
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

/** The CRDs that a cluster has by its works, by name: those of its version. */
export function crdsOf(works: readonly ManifestWork[]): Map<string, CustomResourceDefinition> {
  const isCrd = ({ kind }: KubeObject) => kind === 'CustomResourceDefinition';
  const found = works.flatMap(({ spec }) => spec.workload.manifests.filter(isCrd)) as CustomResourceDefinition[];
  return new Map(found.filter(({ spec }) => spec !== undefined).map((crd) => [crd.metadata.name, crd]));
}
