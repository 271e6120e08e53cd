import { type ObjectRef, type Runtime, type Store, type Tuning, View } from '../../../sync/index.ts';
import type { AgentKind, CopySync, ObjectMessage } from '../../peer/kind-sync.ts';
import type { PeerConnection } from '../../peer/messages.ts';
import type { ReplicaKind, ReplicaObject } from '../kinds.ts';
import { Replica } from '../replica.ts';
import type { ReplicaRules } from '../replica-rules.ts';

/** How copies on a managed cluster are kept. */
export interface ClusterReplicaOptions<T extends ReplicaObject> {
  readonly store: Store<T>;
  /** The agent's namespace, the only one that counts. */
  readonly namespace: string;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** Copies of one kind that a managed cluster has of the hub's objects. */
export function clusterReplica<T extends ReplicaObject>(
  kind: ReplicaKind<T>,
  rules: ReplicaRules<T>,
  options: ClusterReplicaOptions<T>,
): AgentKind<CopySync> {
  const { store, namespace, runtime, tuning } = options;
  let replica: Replica<T> | undefined;
  let requestUpdate: (ref: ObjectRef) => void = () => undefined;
  const view = new View<T>({
    clock: runtime.clock,
    changed: (ref, change) => replica?.localChange(ref, change),
    doubted: ({ name }) => replica?.reconcile(name, true),
  });
  const started = (): Replica<T> => {
    if (replica === undefined) {
      throw new TypeError('used before it was started');
    }
    return replica;
  };
  return {
    kind: kind.kind,
    start: (signal) => {
      const unfollow = view.follow(within(store, namespace));
      signal.addEventListener('abort', unfollow);
      replica = new Replica({ kind, rules, store, view, namespace, peer: {}, runtime, tuning }, signal);
      replica.onDoubt((ref) => requestUpdate(ref));
      replica.adoptFound();
    },
    connected: (connection: PeerConnection) => started().connected(connection),
    disconnected: () => started().disconnected(),
    writable: () => started().writable(),
    acknowledged: () => started().acknowledged(),
    receive: (message: ObjectMessage) => started().receive(message),
    copies: () => started().copies(),
    holding: (ref) => started().holding(ref),
    localRef: (source) => started().localRef(source),
    onDoubt: (listener) => {
      requestUpdate = listener;
    },
    sourceRestarted: () => started().sourceRestarted(),
    stats: () => started().stats(),
    close: () => replica?.close(),
  };
}

function within<T extends ReplicaObject>(store: Store<T>, namespace: string): Pick<Store<T>, 'subscribe'> {
  return {
    subscribe: (listener) =>
      store.subscribe((change) => {
        if ((change.now ?? change.old)?.metadata.namespace === namespace) {
          listener(change);
        }
      }),
  };
}
