import { z } from 'zod';
import type { CustomResourceDefinition, KubeObject } from '../../lib/kube/index.ts';
import type { ManifestWork } from '../hub/index.ts';
import { type ClusterSettings, type Version, versionText } from '../spec/index.ts';

/** Annotations of works: the version that they were made with, and the update that brought it. */
export const versionKeys = {
  version: 'apps.open-cluster-management.io/delivered-version',
  /** When the version replaced another one, RFC 3339. */
  updatedAt: 'apps.open-cluster-management.io/updated-at',
  /** `true`: the update has another endpoint, so the agent must connect anew. */
  reconnects: 'apps.open-cluster-management.io/update-reconnects',
  /** `true`: the whole rollout is over. What happens to the cluster later is no failure of the update. */
  isOver: 'apps.open-cluster-management.io/rollout-over',
} as const;

const schema = z.object({
  agent: z.string(),
  argoCD: z.string().optional(),
  redis: z.string().optional(),
  operator: z.string().optional(),
  crds: z.string().optional(),
  endpoint: z.object({ address: z.string(), port: z.string() }).optional(),
  // They were parsed before they were recorded, and are merged from two: each of the limits may be exceeded.
  settings: z.custom<ClusterSettings>((value) => typeof value === 'object' && value !== null).optional(),
});

/** The update that brought a cluster its version. */
export interface Update {
  /** When the version replaced another one (RFC 3339); undefined when the cluster was enrolled with it. */
  readonly updatedAt: string | undefined;
  /** Whether the update has another endpoint of the principal, so that the agent must connect anew. */
  readonly reconnects: boolean;
  /** Whether the whole rollout is over. What happens to the cluster later is no failure of the update. */
  readonly isOver: boolean;
}

/** The annotations that record a version and its update. */
export function versionAnnotations(
  version: Version,
  { updatedAt, reconnects, isOver }: Update,
): Record<string, string> {
  return {
    [versionKeys.version]: versionText(version),
    ...(updatedAt === undefined ? {} : { [versionKeys.updatedAt]: updatedAt }),
    ...(updatedAt !== undefined && reconnects ? { [versionKeys.reconnects]: 'true' } : {}),
    ...(updatedAt !== undefined && isOver ? { [versionKeys.isOver]: 'true' } : {}),
  };
}

const known = new WeakMap<ManifestWork, (Update & { readonly version: Version }) | undefined>();

/** The version that a work was made with; undefined when it is not recorded or the record is invalid. */
export function deliveredBy(work: ManifestWork): (Update & { readonly version: Version }) | undefined {
  if (!known.has(work)) {
    known.set(work, readRecord(work));
  }
  return known.get(work);
}

function readRecord({ metadata }: ManifestWork): (Update & { readonly version: Version }) | undefined {
  const text = metadata.annotations?.[versionKeys.version];
  if (text === undefined) {
    return undefined;
  }
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return undefined; // somebody changed the annotation
  }
  const { data } = schema.safeParse(content);
  const updatedAt = metadata.annotations?.[versionKeys.updatedAt];
  return (
    data && {
      version: data,
      updatedAt: Number.isNaN(Date.parse(updatedAt ?? '')) ? undefined : updatedAt,
      reconnects: metadata.annotations?.[versionKeys.reconnects] === 'true',
      isOver: metadata.annotations?.[versionKeys.isOver] === 'true',
    }
  );
}

/** The CRDs in a cluster's works, by name. They belong to the version of the works. */
export function crdsOf(works: readonly ManifestWork[]): Map<string, CustomResourceDefinition> {
  const isCrd = ({ kind }: KubeObject) => kind === 'CustomResourceDefinition';
  const found = works.flatMap(({ spec }) => spec.workload.manifests.filter(isCrd)) as CustomResourceDefinition[];
  return new Map(found.filter(({ spec }) => spec !== undefined).map((crd) => [crd.metadata.name, crd]));
}
