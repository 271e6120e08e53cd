import { z } from 'zod';
import { wellKnown } from '../base/index.ts';
import { absent, type Metadata, objectMeta, strings, withoutUndefined } from './object.ts';
import { isSkipped } from './routing.ts';

/** The fields of a ConfigMap that the rules about GnuPG keys read; everything else is kept as it came. */
export interface GpgKeys {
  apiVersion?: string;
  kind?: string;
  metadata: Metadata;
  data?: Record<string, string>;
  [other: string]: unknown;
}

/** Parses a ConfigMap that came from outside; unknown fields are preserved. */
export const configMapSchema = withoutUndefined<GpgKeys>(
  z.looseObject({ metadata: objectMeta, data: absent(strings) }),
);

/** Where Argo CD keeps the GnuPG keys by which commits are verified: key id → public key. */
export const gpgKeysName: string = wellKnown.gpgKeysConfigMap;

/** Whether a ConfigMap is Argo CD's GnuPG keys, and takes part in synchronisation. */
export function isGpgKeys(configMap: GpgKeys): boolean {
  return configMap.metadata.name === gpgKeysName && !isSkipped(configMap);
}
