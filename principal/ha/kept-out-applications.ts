import type { Logger } from '../../lib/base/index.ts';
import { allSynced, argoApplications, keptOutSelector, startInformer } from '../../lib/bridge/index.ts';
import type { Informer, KubeClient, KubeObject } from '../../lib/kube/index.ts';

/** Time limit of the first list; the principal's own cache of Applications has been listed before. */
const listTimeoutMs = 300_000;

/**
 * Follows the Applications that the label keeps out, which the principal's cache leaves out: their deletion is told to standbys. There
 * may be many that have nothing to do with agents, so only their metadata is kept.
 * @throws FatalError when they cannot be listed
 */
export async function startKeptOutApplications(
  context: {
    readonly client: KubeClient;
    readonly logger: Logger;
    readonly signal: AbortSignal;
    failed(error: unknown): void;
  },
  labelSelector: string,
): Promise<Informer<KubeObject>> {
  const informer = startInformer({
    ...context,
    type: argoApplications,
    labelSelector: keptOutSelector(labelSelector),
    transform: ({ metadata }) => ({ metadata }),
  });
  await allSynced(
    { 'Applications that are kept out': informer },
    { timeoutMs: listTimeoutMs, signal: context.signal, advice: 'may the principal list Applications?' },
  );
  return informer;
}
