import type { Logger, RateLimit } from '../base/index.ts';
import { type ClientOptions, Informer, KubeClient, type KubeObject, type ResourceType } from '../kube/index.ts';
import { FatalError, intFlag } from '../ops/index.ts';

/** Rates that argocd-agent has when they are not set; here there is none then. */
const defaultRate = { perSecond: 100, burst: 300 };

/**
 * The API server that `--kubeconfig`, `--kubecontext`, KUBECONFIG or the pod's service account name.
 * @throws FatalError when there is none or its configuration is unusable
 */
export function kubeClient(
  flags: { readonly kubeconfig: string; readonly kubecontext: string },
  options: Pick<ClientOptions, 'rate' | 'observe' | 'maxConnections' | 'beforeWrite'> = {},
): KubeClient {
  try {
    return KubeClient.load({
      ...options,
      ...(flags.kubeconfig === '' ? {} : { kubeconfig: flags.kubeconfig }),
      ...(flags.kubecontext === '' ? {} : { context: flags.kubecontext }),
      userAgent: 'argocd-agent',
    });
  } catch (error) {
    throw new FatalError(`Could not load Kubernetes config: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * The rate that ARGOCD_AGENT_KUBE_QPS and ARGOCD_AGENT_KUBE_BURST ask for, of both programs; undefined when neither is set.
 * A value that cannot be read is told to `warn` and left out; one below 1 means no limit.
 */
export function kubeRate(
  environment: Readonly<Record<string, string | undefined>>,
  warn: (message: string) => void,
): RateLimit | undefined {
  const read = (name: string, fallback: number): number | undefined => {
    const text = environment[name];
    if (text === undefined) {
      return undefined;
    }
    try {
      return intFlag({ usage: '' }).parseEnv(text);
    } catch (error) {
      warn(`environment variable ${name} = ${JSON.stringify(text)} is ignored: ${(error as Error).message}`);
      return fallback;
    }
  };
  const perSecond = read('ARGOCD_AGENT_KUBE_QPS', defaultRate.perSecond);
  const burst = read('ARGOCD_AGENT_KUBE_BURST', defaultRate.burst);
  if (perSecond === undefined && burst === undefined) {
    return undefined;
  }
  const rate = { perSecond: perSecond ?? defaultRate.perSecond, burst: burst ?? defaultRate.burst };
  return rate.perSecond < 1 ? undefined : rate;
}

/** Starts an informer; what ends it before the signal does is given to `failed`. */
export function startInformer<T extends KubeObject>(options: {
  client: KubeClient;
  type: ResourceType<T>;
  namespace?: string | undefined;
  labelSelector?: string;
  fieldSelector?: string;
  indexers?: Record<string, (object: T) => string[]>;
  /** Shrinks objects before they are cached. */
  transform?: (object: T) => T;
  logger: Logger;
  signal: AbortSignal;
  failed(error: unknown): void;
}): Informer<T> {
  const { signal, failed, ...rest } = options;
  const informer = new Informer<T>(rest);
  informer.run(signal).catch((error: unknown) => {
    if (!signal.aborted) {
      failed(error);
    }
  });
  return informer;
}
