import type { Store, StoredObject } from '../sync/index.ts';

/** What is logged with whole objects (`--full-detail`): `informers` the changes seen, `actions` the writes. */
export interface StoreDetail {
  has(category: 'informers' | 'actions'): boolean;
}

/** The same store, whose changes and writes are logged with the whole objects. `shown` makes an object fit for a log. */
export function loggedStore<T extends StoredObject>(
  store: Store<T>,
  options: {
    kind: string;
    detail: StoreDetail;
    logger: { info(fields: object, message: string): void };
    shown: (object: unknown) => unknown;
  },
): Store<T> {
  const { kind, detail, logger, shown } = options;
  const [seesChanges, seesWrites] = [detail.has('informers'), detail.has('actions')];
  if (!seesChanges && !seesWrites) {
    return store;
  }
  const log = (log_category: string, action: string, fields: object) =>
    logger.info({ log_category, action, kind, ...fields }, `${log_category} in full`);
  const writes: Pick<Store<T>, 'create' | 'patch' | 'delete'> = {
    create: (object, signal) => {
      log('actions', 'create', { detail: shown(object) });
      return store.create(object, signal);
    },
    patch: (ref, patch, signal, planned) => {
      log('actions', 'patch', { ...ref, detail: shown(patch) });
      return store.patch(ref, patch, signal, planned);
    },
    delete: (ref, options, signal) => {
      log('actions', 'delete', { ...ref, ...options });
      return store.delete(ref, options, signal);
    },
  };
  return {
    subscribe: (listener) =>
      store.subscribe((change) => {
        if (seesChanges) {
          const action = change.now === undefined ? 'deleted' : change.old === undefined ? 'added' : 'updated';
          log('informers', action, { detail: shown(change.now ?? change.old) });
        }
        listener(change);
      }),
    read: (ref, signal) => store.read(ref, signal),
    create: (object, signal) => (seesWrites ? writes : store).create(object, signal),
    patch: (ref, patch, signal, planned) => (seesWrites ? writes : store).patch(ref, patch, signal, planned),
    delete: (ref, options, signal) => (seesWrites ? writes : store).delete(ref, options, signal),
  };
}
