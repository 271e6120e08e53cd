import type { Logger } from '../../lib/base/index.ts';
import type { EventRecorder, KubeClient } from '../../lib/kube/index.ts';
import type { Applier } from '../hub/index.ts';
import type { BasicCaches } from './caches.ts';

/**
 * The reasons of the Events of the basic pull model. docs/reference/events.md says what they mean
 * (`site/reference/events.ts`).
 */
export type BasicEventReason = 'NotPulled' | 'NotApplied' | 'NoClusterSecret';

/** What the reconcilers of the basic pull model share. */
export interface BasicDeps {
  readonly client: KubeClient;
  readonly logger: Logger;
  readonly events: EventRecorder<BasicEventReason>;
  readonly caches: BasicCaches;
  /** Writes ManifestWorks. */
  readonly works: Applier;
  /** Writes cluster Secrets. */
  readonly secrets: Applier;
  /** Argo CD's namespace on the hub. */
  readonly argoCdNamespace: string;
  /** Other namespaces whose Applications are served: entries as in Argo CD's `application.namespaces`. */
  readonly applicationNamespaces: readonly string[];
  readonly now: () => Date;
  /** Returns a new unique id for an operation. */
  readonly newId: () => string;
  /** How long a change of an Application waits for a running operation, in milliseconds. */
  readonly patienceMs: number;
  /** UID of the hub's namespace kube-system; undefined when it cannot be read. */
  readonly hubId: () => string | undefined;
}
