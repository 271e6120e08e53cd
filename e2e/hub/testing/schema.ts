import type { CustomResourceDefinition } from '../../../lib/kube/index.ts';

/** What these tests compare of an OpenAPI schema. */
export interface Schema {
  type?: string;
  required?: string[];
  enum?: unknown[];
  properties?: Record<string, Schema>;
  items?: Schema;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
}

/** The schema of one version. */
export function schemaOf(crd: CustomResourceDefinition, version: string): Schema {
  const found = crd.spec?.versions.find(({ name }) => name === version)?.schema as { openAPIV3Schema: Schema };
  return found.openAPIV3Schema;
}
