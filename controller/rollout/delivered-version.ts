import { z } from 'zod';
import type { CustomResourceDefinition, KubeObject } from '../../lib/kube/index.ts';
import type { ManifestWork } from '../hub/index.ts';
import type { Version } from '../spec/index.ts';

/** Annotations of works: the version that they were made with, and when it replaced another version (RFC 3339). */
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

/** The version that a work was made with; undefined when it is not recorded or the record is invalid. */
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
    return undefined; // somebody changed the annotation
  }
  const { data } = schema.safeParse(content);
  const updatedAt = metadata.annotations?.[versionKeys.updatedAt];
  return data && { version: data, updatedAt: Number.isNaN(Date.parse(updatedAt ?? '')) ? undefined : updatedAt };
}

/** The CRDs in a cluster's works, by name. They belong to the version of the works. */
export function crdsOf(works: readonly ManifestWork[]): Map<string, CustomResourceDefinition> {
  const isCrd = ({ kind }: KubeObject) => kind === 'CustomResourceDefinition';
  const found = works.flatMap(({ spec }) => spec.workload.manifests.filter(isCrd)) as CustomResourceDefinition[];
  return new Map(found.filter(({ spec }) => spec !== undefined).map((crd) => [crd.metadata.name, crd]));
}
