import type { Logger } from '../base/index.ts';
import type { Informer, KubeClient, KubeObject, ResourceType } from '../kube/index.ts';
import { type Detail, detailOf } from '../ops/index.ts';
import type { Store, StoredObject } from '../sync/index.ts';
import { kubeStore } from './kube-store.ts';
import { loggedStore } from './logged-store.ts';

/** Makes the engine's stores of one API server: a function of the kind and its informer. `--full-detail` is applied. */
export function detailedStores(options: {
  client: KubeClient;
  fieldManager: string;
  detail: Detail;
  logger: Pick<Logger, 'info'>;
}): <T extends StoredObject>(type: ResourceType, informer: Informer<KubeObject>) => Store<T> {
  const { client, fieldManager, detail, logger } = options;
  return <T extends StoredObject>(type: ResourceType, informer: Informer<KubeObject>) =>
    loggedStore(kubeStore<T>({ client, type, informer, fieldManager }), {
      kind: type.kind,
      detail,
      logger,
      shown: (object) => detailOf(object, type.kind),
    });
}
