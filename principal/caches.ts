import { setTimeout as delay } from 'node:timers/promises';
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
import type { PrincipalFlags } from './flags.ts';
import { blocklistName } from './sessions/blocklist.ts';
import { connectionLabels } from './sessions/connection-records.ts';

/** How long the first listing may take; the pod is started anew after that. */
const syncTimeoutMs = 300_000;
/** How often it is said what is still waited for. */
const reminderMs = 30_000;

const rightsAttempts = 4;
const rightsIntervalMs = 1_000;

/** What the principal watches on the hub, by the name that operators know it by. */
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
    Secrets: startInformer({ ...shared, type: secrets, namespace }),
    Applications: startInformer({ ...shared, type: argoApplications, labelSelector, transform: shareTexts() }),
    AppProjects: startInformer({ ...shared, type: argoAppProjects, namespace, labelSelector }),
    'blocked certificates': named(blocklistName),
    'GPG keys': named(wellKnown.gpgKeysConfigMap),
    Leases: startInformer({
      ...shared,
      type: leases,
      namespace,
      labelSelector: Object.entries(connectionLabels)
        .map(([key, value]) => `${key}=${value}`)
        .join(','),
    }),
  };
}

/**
 * Waits until everything is listed; what is missing is said in the log, and given to `waiting` for the health check.
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
 * Whether the records of connections can be had: argocd-agent's own manifests give its principal no rights for Leases. Asked
 * again for a while, since an API server that has just started refuses what it has not loaded the rights for yet.
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

/** Applications say the same again and again, also to each other: with their texts shared they take 40 % less memory. */
function shareTexts(): (object: KubeObject) => KubeObject {
  const pool = new TextPool();
  return (object) => pool.share(object);
}
