import type { Logger } from '../lib/base/index.ts';
import { wellKnown } from '../lib/base/index.ts';
import { allSynced, argoApplications, argoAppProjects, startInformer, syncSelector } from '../lib/bridge/index.ts';
import { configMaps, type KubeClient, secrets } from '../lib/kube/index.ts';
import type { AgentFlags } from './flags.ts';

/** Argo CD's ConfigMap of settings. */
const settingsName = 'argocd-cm';

/** The agent's caches of its cluster, by the names that operators know. */
export type AgentCaches = ReturnType<typeof agentCaches>;

/** Starts all informers. */
export function agentCaches(
  flags: AgentFlags,
  shared: { client: KubeClient; logger: Logger; signal: AbortSignal; failed(error: unknown): void },
) {
  const { namespace } = flags;
  const labelSelector = syncSelector(flags['label-selector']);
  const everywhere = flags['destination-based-mapping'];
  return {
    Secrets: startInformer({ ...shared, type: secrets, namespace }),
    Applications: startInformer({
      ...shared,
      type: argoApplications,
      namespace: everywhere ? undefined : namespace,
      labelSelector,
    }),
    AppProjects: startInformer({ ...shared, type: argoAppProjects, namespace, labelSelector }),
    "Argo CD's settings": startInformer({
      ...shared,
      type: configMaps,
      namespace,
      fieldSelector: `metadata.name=${settingsName}`,
    }),
    'GPG keys': startInformer({
      ...shared,
      type: configMaps,
      namespace,
      fieldSelector: `metadata.name=${wellKnown.gpgKeysConfigMap}`,
    }),
  };
}

/** Calls back when a cache shows that the cluster was restored from a backup. */
export function followRestores(caches: AgentCaches, restored: () => void): void {
  for (const cache of [caches.Secrets, caches.Applications, caches.AppProjects, caches['GPG keys']]) {
    cache.followRestores(restored);
  }
}

/**
 * Waits until all caches are synced; `waiting` gets the names of the missing ones.
 * @throws FatalError that names what could not be listed in time; the agent's pod then restarts
 */
export function agentCachesSynced(
  caches: AgentCaches,
  flags: AgentFlags,
  context: { signal: AbortSignal; waiting(what: string): void },
): Promise<void> {
  return allSynced(caches, {
    timeoutMs: flags['informer-sync-timeout'],
    signal: context.signal,
    waiting: (missing) => context.waiting(`the list of ${missing.join(', ')}`),
    advice:
      "are Argo CD's CRDs installed, may the agent list them, and is the API server well? " +
      'A slow cluster may need a larger --informer-sync-timeout (ARGOCD_AGENT_INFORMER_SYNC_TIMEOUT)',
  });
}
