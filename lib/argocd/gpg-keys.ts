import { z } from 'zod';
import { absent, type ObjectMeta, objectMeta, strings, withoutUndefined } from './object.ts';
import { isSkipped } from './routing.ts';

/** A Kubernetes ConfigMap. */
export interface ConfigMap {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  data?: Record<string, string>;
  [other: string]: unknown;
}

/** Parses a ConfigMap that came from outside; unknown fields are preserved. */
export const configMapSchema = withoutUndefined<ConfigMap>(
  z.looseObject({ metadata: objectMeta, data: absent(strings) }),
);

/** Where Argo CD keeps the GnuPG keys by which commits are verified: key id → public key. */
export const gpgKeysName = 'argocd-gpg-keys-cm';

/** Whether a ConfigMap is Argo CD's GnuPG keys, and takes part in synchronisation. */
export function isGpgKeys(configMap: ConfigMap): boolean {
  return configMap.metadata.name === gpgKeysName && !isSkipped(configMap);
}
