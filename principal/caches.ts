import { setTimeout as delay } from 'node:timers/promises';
import { isRepository, type RepositorySecret } from '../lib/argocd/index.ts';
import type { Logger } from '../lib/base/index.ts';
import { wellKnown } from '../lib/base/index.ts';
import { allSynced, argoApplications, argoAppProjects, startInformer, syncSelector } from '../lib/bridge/index.ts';
import {
  configMaps,
  isForbidden,
  type KubeClient,
  type KubeObject,
  leases,
  secrets,
  TextPool,
} from '../lib/kube/index.ts';
import { FatalError } from '../lib/ops/index.ts';
import type { PrincipalFlags } from './flags.ts';
import { leaderLabels, replicaLabels } from './replicas/index.ts';
import { blocklistName } from './sessions/blocklist.ts';
import { connectionLabels, recordsByAgent } from './sessions/connection-records.ts';

/** Time limit of the first lists; after it the process ends and the pod restarts. */
const syncTimeoutMs = 300_000;
/** Interval of the log lines about caches that are not synced yet. */
const reminderMs = 30_000;

const rightsAttempts = 4;
const rightsIntervalMs = 1_000;

/** Index of the cache of Secrets: under the empty value, those of repositories and credential templates. */
export const repositorySecrets = 'repositories';

/** The principal's caches of the hub, by the names that operators know. */
export type PrincipalCaches = ReturnType<typeof principalCaches>;

/** Starts all informers. */
export function principalCaches(
  flags: PrincipalFlags,
  shared: { client: KubeClient; logger: Logger; signal: AbortSignal; failed(error: unknown): void },
) {
  const { namespace } = flags;
  const labelSelector = syncSelector(flags['label-selector']);
  const named = (name: string) =>
    startInformer({ ...shared, type: configMaps, namespace, fieldSelector: `metadata.name=${name}` });
  return {
    Secrets: startInformer({
      ...shared,
      type: secrets,
      namespace,
      // Each of many clusters has a Secret, too.
      indexers: { [repositorySecrets]: (secret) => (isRepository(secret as RepositorySecret) ? [''] : []) },
    }),
    Applications: startInformer({ ...shared, type: argoApplications, labelSelector, transform: shareTexts() }),
    AppProjects: startInformer({ ...shared, type: argoAppProjects, namespace, labelSelector }),
    // A global project counts for others, whether it is itself synchronised or not.
    'all AppProjects': startInformer({ ...shared, type: argoAppProjects, namespace }),
    'Argo CD settings': named('argocd-cm'),
    'blocked certificates': named(blocklistName),
    'GPG keys': named(wellKnown.gpgKeysConfigMap),
    Leases: startInformer({
      ...shared,
      type: leases,
      namespace,
      indexers: recordsByAgent,
      // One watch for all of them: who holds an agent is never seen before that replica.
      labelSelector: leaseSelector(
        flags['enable-replicas'] ? [connectionLabels, replicaLabels, leaderLabels] : [connectionLabels],
      ),
    }),
  };
}

/**
 * Waits until all caches are synced; missing ones are logged, and passed to `waiting` for the health check.
 * @throws FatalError when it takes too long
 */
export async function principalCachesSynced(
  caches: PrincipalCaches,
  context: {
    client: Pick<KubeClient, 'listPage'>;
    namespace: string;
    logger: Logger;
    signal: AbortSignal;
    waiting(what: string): void;
    /** There may be other principals. */
    readonly isReplica?: boolean;
  },
): Promise<void> {
  const { Leases, ...others } = caches;
  let missing: readonly string[] = [];
  const hint = "are Argo CD's CRDs installed, may the principal list them, and is the API server well?";
  const reminder = setInterval(() => context.logger.warn({ missing, hint }, 'still waiting for lists'), reminderMs);
  const common = {
    timeoutMs: syncTimeoutMs,
    signal: context.signal,
    advice: hint,
    waiting: (still: readonly string[]) => {
      missing = still;
      context.waiting(`the list of ${still.join(', ')}`);
    },
  };
  try {
    await allSynced(others, common);
    if (await mayListLeases(Leases, context)) {
      await allSynced({ Leases }, common);
    } else if (context.isReplica === true) {
      throw new FatalError(
        "--enable-replicas (ARGOCD_PRINCIPAL_ENABLE_REPLICAS): the principal's Role needs get, list, watch, create, update and delete of leases.coordination.k8s.io",
      );
    } else {
      context.logger.warn(
        { hint: "give the principal's Role get, list, watch, create, update and patch of leases.coordination.k8s.io" },
        "who is connected cannot be recorded in Leases, and agents' modes are remembered only while this process runs",
      );
    }
  } finally {
    clearInterval(reminder);
  }
}

/**
 * Whether Leases can be listed: argocd-agent's own manifests give its principal no rights for them. Repeated
 * for a while, because an API server that has just started refuses requests until it has loaded the rights.
 */
async function mayListLeases(
  cache: PrincipalCaches['Leases'],
  { client, namespace, signal }: { client: Pick<KubeClient, 'listPage'>; namespace: string; signal: AbortSignal },
): Promise<boolean> {
  for (let attempt = 1; !cache.hasSynced; attempt++) {
    try {
      await client.listPage(leases, { namespace, limit: 1, signal });
      return true;
    } catch (error) {
      if (!isForbidden(error)) {
        return true;
      }
      if (attempt === rightsAttempts) {
        return false;
      }
      await delay(rightsIntervalMs, undefined, { signal });
    }
  }
  return true;
}

/** Selects objects that have the labels of one of these sets; all sets have the same keys. */
function leaseSelector(sets: readonly Readonly<Record<string, string>>[]): string {
  return Object.keys(sets[0] ?? {})
    .map((key) => `${key} in (${[...new Set(sets.map((labels) => labels[key]))].join(',')})`)
    .join(',');
}

/** Applications repeat many texts. Sharing them saves 40 % of their memory. */
function shareTexts(): (object: KubeObject) => KubeObject {
  const pool = new TextPool();
  return (object) => pool.share(object);
}
