import type { Logger } from '../../lib/base/index.ts';
import type { EventRecorder, KubeClient, ObjectMeta } from '../../lib/kube/index.ts';
import { parseKey } from '../../lib/kube/index.ts';
import type { Applier } from '../hub/applier.ts';
import type { Caches } from '../hub/caches.ts';
import { keys, labelValue, managedBy } from '../hub/names.ts';
import type { Renderings } from '../render/renderings.ts';
import type { Templates } from '../render/templates.ts';
import type { Rollouts } from '../rollout/rollouts.ts';
import type { DeliverySettings } from '../spec/delivery-settings.ts';
import type { Foundation } from '../spec/foundation.ts';

/** What the reconcile of one cluster works with. */
export interface ClusterContext {
  readonly cluster: string;
  readonly foundation: Foundation;
  readonly caches: Caches;
  readonly client: KubeClient;
  readonly applier: Applier;
  readonly templates: Templates;
  readonly renderings: Renderings;
  readonly rollouts: Rollouts;
  readonly delivery: DeliverySettings;
  readonly logger: Logger;
  /** Missing where works are only looked at. */
  readonly events?: Pick<EventRecorder, 'normal' | 'warning'>;
  readonly now: Date;
  readonly signal: AbortSignal;
  /** Labels and annotations that say whose and what for an object is. */
  readonly ownerMetadata: (component: string) => Pick<ObjectMeta, 'labels' | 'annotations'> & {
    labels: Record<string, string>;
    annotations: Record<string, string>;
  };
  /** Earliest time when a certificate must be renewed, in milliseconds since the epoch. */
  renewAt: number;
}

/** Labels and annotations of everything that is made for a cluster. */
export function ownerMetadataOf(owner: string, cluster: string): ClusterContext['ownerMetadata'] {
  const { namespace = '', name } = parseKey(owner);
  return (component) => ({
    labels: {
      [keys.managedBy]: managedBy,
      [keys.component]: component,
      [keys.ownerName]: labelValue(name),
      [keys.ownerNamespace]: labelValue(namespace),
      [keys.clusterName]: labelValue(cluster),
    },
    annotations: { [keys.owner]: owner },
  });
}
