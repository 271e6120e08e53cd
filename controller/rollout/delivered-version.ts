import { z } from 'zod';
import type { CustomResourceDefinition, KubeObject } from '../../lib/kube/index.ts';
import type { ManifestWork } from '../hub/index.ts';
import type { Version } from '../spec/index.ts';

/** Annotations of works: what they were made with, and when it took the place of another version (RFC 3339). */
export const versionKeys = {
  version: 'apps.open-cluster-management.io/delivered-version',
  updatedAt: 'apps.open-cluster-management.io/updated-at',
} as const;

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

/** The CRDs that a cluster has by its works, by name: those of its version. */
export function crdsOf(works: readonly ManifestWork[]): Map<string, CustomResourceDefinition> {
  const isCrd = ({ kind }: KubeObject) => kind === 'CustomResourceDefinition';
  const found = works.flatMap(({ spec }) => spec.workload.manifests.filter(isCrd)) as CustomResourceDefinition[];
  return new Map(found.filter(({ spec }) => spec !== undefined).map((crd) => [crd.metadata.name, crd]));
}
