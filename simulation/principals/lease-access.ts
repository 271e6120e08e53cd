import { ApiError, type Informer, type InformerHandler, type KubeClient, type Lease } from '../../lib/kube/index.ts';
import {
  type Audit,
  ClusterStore,
  type Machine,
  Refused,
  type SeededDice,
  type SimulatedCluster,
  type SimulatedObject,
} from '../index.ts';

/** A machine's client for the Leases of a simulated hub, and its cache of them. */
export interface LeaseAccess {
  readonly client: KubeClient;
  readonly informer: Informer<Lease>;
  readonly store: ClusterStore<SimulatedObject>;
}

type Ref = { readonly namespace: string; readonly name: string };
type Conditions = { readonly uid?: string; readonly resourceVersion?: string };

/** @param audit called for each write */
export function leaseAccess(
  hub: SimulatedCluster,
  dice: SeededDice,
  machine: Machine,
  audit: Audit<SimulatedObject>,
): LeaseAccess {
  const store = new ClusterStore(hub.of('Lease'), dice, machine, audit);
  const client = {
    get: (_type: unknown, ref: Ref, signal?: AbortSignal) => answered(store.read(ref, signal)),
    create: (_type: unknown, lease: Lease, { signal }: { signal?: AbortSignal }) =>
      answered(store.create(lease as SimulatedObject, signal)),
    replace: (_type: unknown, lease: Lease, { signal }: { signal?: AbortSignal }) =>
      answered(store.replace(lease as SimulatedObject, signal)),
    delete: (_type: unknown, ref: Ref, { signal, uid, resourceVersion }: Conditions & { signal?: AbortSignal }) =>
      answered(
        store.delete(
          ref,
          { propagation: 'Background', ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) },
          signal,
        ),
      ),
  };
  const informer = {
    subscribe: (handler: InformerHandler<Lease>) =>
      store.subscribe((change) => {
        const { old, now } = change as { old: Lease | undefined; now: Lease | undefined };
        const { gap } = change;
        if (now === undefined) {
          handler.deleted?.(old as Lease);
        } else if (old === undefined) {
          handler.added?.(now, false, gap);
        } else if (gap === 'restore' || old.metadata.resourceVersion !== now.metadata.resourceVersion) {
          handler.updated?.(old, now, gap);
        }
      }),
    get: (ref: Ref) => store.get(ref),
    list: () => store.list(),
  };
  return { client: client as unknown as KubeClient, informer: informer as unknown as Informer<Lease>, store };
}

async function answered<R>(call: Promise<R>): Promise<R> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Refused) {
      const { status, reason, message } = error;
      throw new ApiError({ status, reason, message });
    }
    throw error;
  }
}
