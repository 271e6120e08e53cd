const isDecimal = /^\d+$/;

/**
 * Below 0 when resource version `a` is earlier than `b`, above 0 when it is later, 0 when they are equal; undefined when they
 * cannot be compared. Resource versions of one kind in one cluster are decimal numbers that count up (KEP-5504, Kubernetes
 * 1.35; etcd always did); others are opaque.
 */
export function compareVersions(a = '', b = ''): number | undefined {
  if (a === b) {
    return 0;
  }
  if (!isDecimal.test(a) || !isDecimal.test(b)) {
    return undefined;
  }
  return a.length - b.length || (a < b ? -1 : 1);
}

/** Whether `a` is later than `b`. Of two that cannot be compared `a` counts as later: the caller received it later. */
export function isNewerVersion(a = '', b = ''): boolean {
  return (compareVersions(a, b) ?? 1) > 0;
}

/**
 * Whether a cache that had `before` and now has `now` has gone back: the same object, in no newer version. That happens only when
 * the API server was restored from a backup; what was known of the object before is not true any more.
 */
export function hasGoneBack(before: Versioned, now: Versioned): boolean {
  return before.uid === now.uid && !isNewerVersion(now.resourceVersion, before.resourceVersion);
}

interface Versioned {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}
