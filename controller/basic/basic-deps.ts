import type { Logger } from '../../lib/base/index.ts';
import type { EventRecorder, KubeClient } from '../../lib/kube/index.ts';
import type { Applier } from '../hub/index.ts';
import type { BasicCaches } from './caches.ts';

/** What the reconciles of the basic pull model share. */
export interface BasicDeps {
  readonly client: KubeClient;
  readonly logger: Logger;
  readonly events: EventRecorder;
  readonly caches: BasicCaches;
  /** Writes works. */
  readonly works: Applier;
  /** Writes cluster Secrets. */
  readonly secrets: Applier;
  /** Argo CD's namespace on the hub. */
  readonly argoCdNamespace: string;
  readonly now: () => Date;
  /** A name for an operation, never given before. */
  readonly newId: () => string;
  /** How long a change of an Application waits for the operation that is under way, in milliseconds. */
  readonly patienceMs: number;
  /** UID of the hub's namespace kube-system; undefined when it cannot be read. */
  readonly hubId: () => string | undefined;
}
