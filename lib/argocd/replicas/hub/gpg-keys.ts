import { type GpgKeys, gpgKeysName, isGpgKeys } from '../../gpg-keys.ts';
import { gpgKeysKind } from '../kinds.ts';
import { Publisher } from '../publisher.ts';
import type { HubPublisherOptions } from './app-projects.ts';

/** The hub's GnuPG keys for all managed agents. Messages about them do not carry the principal's identity. */
export function publishGpgKeys(options: Omit<HubPublisherOptions<GpgKeys>, 'principalUid'>): Publisher<GpgKeys> {
  return new Publisher({
    ...options,
    kind: gpgKeysKind,
    concerns: ({ metadata }) => metadata.name === gpgKeysName,
    forAgent: (configMap) => (isGpgKeys(configMap) ? configMap : undefined),
  });
}
