import { Informer, KubeClient, type KubeLogger, type KubeObject, type ResourceType } from '../kube/index.ts';
import { FatalError } from '../ops/index.ts';

/**
 * The API server that `--kubeconfig`, `--kubecontext`, KUBECONFIG or the pod's service account name.
 * @throws FatalError when there is none or its configuration is unusable
 */
export function kubeClient(flags: { readonly kubeconfig: string; readonly kubecontext: string }): KubeClient {
  try {
    return KubeClient.load({
      ...(flags.kubeconfig === '' ? {} : { kubeconfig: flags.kubeconfig }),
      ...(flags.kubecontext === '' ? {} : { context: flags.kubecontext }),
      userAgent: 'argocd-agent',
    });
  } catch (error) {
    throw new FatalError(`Could not load Kubernetes config: ${(error as Error).message}`, { cause: error });
  }
}

/** Starts an informer; what ends it before the signal does is given to `failed`. */
export function startInformer<T extends KubeObject>(options: {
  client: KubeClient;
  type: ResourceType<T>;
  namespace?: string | undefined;
  labelSelector?: string;
  fieldSelector?: string;
  logger: KubeLogger;
  signal: AbortSignal;
  failed(error: unknown): void;
}): Informer<T> {
  const { signal, failed, ...rest } = options;
  const informer = new Informer<T>(rest);
  informer.run(signal).catch((error: unknown) => {
    if (!signal.aborted) failed(error);
  });
  return informer;
}
