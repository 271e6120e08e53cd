import { type Logger, sleep } from '../../lib/base/index.ts';
import { startInformer } from '../../lib/bridge/index.ts';
import type { Informer, KubeClient, KubeObject } from '../../lib/kube/index.ts';
import { hubApplicationSets } from './kinds.ts';

/** After this time without a list, the hub counts as one without ApplicationSets. */
const patienceMs = 15_000;

/** Follows the hub's ApplicationSets; undefined where they cannot be listed. */
export async function startApplicationSets(context: {
  readonly client: KubeClient;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  failed(error: unknown): void;
}): Promise<Informer<KubeObject> | undefined> {
  const { logger, signal } = context;
  const stop = new AbortController();
  const informer = startInformer({
    ...context,
    type: hubApplicationSets,
    signal: AbortSignal.any([signal, stop.signal]),
  });
  await Promise.race([informer.settled(signal).catch(() => undefined), sleep(patienceMs, signal)]);
  if (informer.hasSynced) {
    return informer;
  }
  stop.abort();
  signal.throwIfAborted();
  logger.warn(
    {
      hint: "is their CRD installed, and has the principal's ClusterRole get, list and watch of applicationsets.argoproj.io?",
    },
    'ApplicationSets are not replicated: they cannot be listed',
  );
  return undefined;
}
