import { type Logger, sleep } from '../../lib/base/index.ts';
import { startInformer } from '../../lib/bridge/index.ts';
import type { Informer, KubeClient, KubeObject } from '../../lib/kube/index.ts';
import { hubApplicationSets } from './kinds.ts';

/** After this time without a list, the hub goes on without ApplicationSets until they can be listed. */
const patienceMs = 15_000;

/** The hub's ApplicationSets, whose CRD may come later than the principal. */
export interface ApplicationSets {
  readonly informer: Informer<KubeObject>;
  /** Why they take no part; undefined while they do. */
  readonly problem: string | undefined;
  /** Calls back once they take part, when they do not yet. */
  onListed(run: () => void): void;
}

/** Follows the hub's ApplicationSets, from whenever they can be listed. Waits a while for that. */
export async function startApplicationSets(context: {
  readonly client: KubeClient;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  failed(error: unknown): void;
}): Promise<ApplicationSets> {
  const { logger, signal } = context;
  // It is tried on for as long as it takes, and said once.
  const quiet: Logger = {
    debug: (fields, text) => logger.debug(fields, text),
    info: (fields, text) => logger.info(fields, text),
    warn: (fields, text) => logger.debug(fields, text),
    error: (fields, text) => logger.error(fields, text),
  };
  const informer = startInformer({ ...context, type: hubApplicationSets, logger: quiet });
  await Promise.race([informer.settled(signal).catch(() => undefined), sleep(patienceMs, signal)]);
  signal.throwIfAborted();
  if (!informer.hasSynced) {
    logger.warn(
      {
        hint: "is their CRD installed, and has the principal's ClusterRole get, list and watch of applicationsets.argoproj.io?",
      },
      'ApplicationSets are not replicated: they cannot be listed',
    );
  }
  return {
    informer,
    get problem() {
      const { problem = 'no answer' } = informer.stats;
      return informer.hasSynced ? undefined : `ApplicationSets cannot be listed, and are not replicated: ${problem}`;
    },
    onListed: (run) => {
      if (!informer.hasSynced) {
        const begin = () => {
          logger.info({}, 'ApplicationSets can be listed: they are replicated from now on');
          run();
        };
        informer.synced(signal).then(begin, () => undefined);
      }
    },
  };
}
