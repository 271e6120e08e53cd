import type { CustomResourceDefinition } from '../../../lib/kube/index.ts';

/** What these tests compare of an OpenAPI schema. */
export interface CrdSchema {
  type?: string;
  required?: string[];
  enum?: unknown[];
  properties?: Record<string, CrdSchema>;
  items?: CrdSchema;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
}

/** The schema of one version. */
export function schemaOf(crd: CustomResourceDefinition, version: string): CrdSchema {
  const found = crd.spec?.versions.find(({ name }) => name === version)?.schema as { openAPIV3Schema: CrdSchema };
  return found.openAPIV3Schema;
}
