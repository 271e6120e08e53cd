import type { ReplicaDirectory } from '../replicas/index.ts';

/**
 * Calls back when a replica is no longer among the peers, with a test of fingerprints. A replica that held no agent leaves silently.
 * Returns the function that ends it.
 */
export function onDeparture(
  directory: Pick<ReplicaDirectory, 'peers' | 'subscribe'>,
  departed: (isAlive: (fingerprint: string) => boolean) => void,
): () => void {
  const fingerprints = (): ReadonlySet<string> => new Set(directory.peers().map(({ fingerprint }) => fingerprint));
  let alive = fingerprints();
  return directory.subscribe(() => {
    const now = fingerprints();
    const isSame = now.size === alive.size && [...now].every((fingerprint) => alive.has(fingerprint));
    alive = now;
    if (!isSame) {
      departed((fingerprint) => now.has(fingerprint));
    }
  });
}
