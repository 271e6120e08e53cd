import { setTimeout as sleep } from 'node:timers/promises';
import { callEtcd, etcdSocket } from './control-plane.ts';

/** What etcd held at one moment: how to get back to it. Keys and values are base64, as etcd's gateway has them. */
export interface EtcdImage {
  readonly values: ReadonlyMap<string, string>;
  /** The revision that wrote each value. A value that etcd has under another revision is a later one. */
  readonly revisions: Map<string, string>;
}

type Place = { dir: string };

interface Pair {
  key: string;
  value?: string;
  mod_revision: string;
}

/** Keys that the control plane itself keeps writing. */
const living = ['leases/kube-system/', 'masterleases/', 'peerserverleases/', 'ranges/'].map(
  (one) => `/registry/${one}`,
);

const first = '/registry/';
/** The first key after all that begin with {@link first}. */
const end = '/registry0';

/** The API server's keys in etcd as they are now. */
export async function imageOf(cluster: Place): Promise<EtcdImage> {
  const pairs = await read(cluster, { keysOnly: false });
  return {
    values: new Map(pairs.map(({ key, value }) => [key, value ?? ''])),
    revisions: new Map(pairs.map(({ key, mod_revision }) => [key, mod_revision])),
  };
}

/**
 * Makes etcd hold what an image has. The API server and the controllers see it as changes that others made, at once and
 * without finalizers. Resolves when nothing has to be put right any more: controllers may still answer to what went.
 * @throws Error that names what was put right last, when `signal` ends it.
 */
export async function restoreImage(cluster: Place, image: EtcdImage, signal: AbortSignal): Promise<void> {
  let wrong: string[] = [];
  try {
    for (let quiet = 0; quiet < 2; ) {
      const found = await restoreOnce(cluster, image, signal);
      wrong = found.length > 0 ? found : wrong;
      quiet = found.length > 0 ? 0 : quiet + 1;
      await sleep(50, undefined, { signal });
    }
  } catch (cause) {
    const keys = wrong.slice(0, 10).map(text).join(', ');
    throw signal.aborted
      ? new Error(`etcd does not stay as it was: last ${keys || 'nothing'} differed`, { cause })
      : cause;
  }
}

/** The keys that had to be put right. */
async function restoreOnce(cluster: Place, { values, revisions }: EtcdImage, signal: AbortSignal): Promise<string[]> {
  const now = new Map(
    (await read(cluster, { keysOnly: true, signal })).map(({ key, mod_revision }) => [key, mod_revision]),
  );
  const added = [...now.keys()].filter((key) => !values.has(key)).sort((one, other) => rank(one) - rank(other));
  const changed = [...values].filter(([key]) => now.get(key) !== revisions.get(key));
  for (const keys of chunks(added)) {
    await write(
      cluster,
      keys.map((key) => ({ requestDeleteRange: { key } })),
      signal,
    );
  }
  for (const pairs of chunks(changed)) {
    const revision = await write(
      cluster,
      pairs.map(([key, value]) => ({ requestPut: { key, value } })),
      signal,
    );
    for (const [key] of pairs) {
      revisions.set(key, revision);
    }
  }
  return [...added, ...changed.map(([key]) => key)];
}

/** Namespaces go first, so that controllers make nothing in them; CRDs last, after the objects of their kinds. */
function rank(key: string): number {
  const path = text(key);
  return path.startsWith('/registry/namespaces/') ? 0 : path.startsWith('/registry/apiextensions.k8s.io/') ? 2 : 1;
}

async function read(
  cluster: Place,
  { keysOnly, signal }: { keysOnly: boolean; signal?: AbortSignal },
): Promise<Pair[]> {
  const body = { key: base64(first), range_end: base64(end), keys_only: keysOnly };
  const answer = await callEtcd(etcdSocket(cluster), 'POST', '/v3/kv/range', body, signal);
  const { kvs = [] } = JSON.parse(answer) as { kvs?: Pair[] };
  return kvs.filter(({ key }) => !living.some((prefix) => text(key).startsWith(prefix)));
}

/** Runs operations in one transaction and returns its revision. */
async function write(cluster: Place, success: readonly object[], signal: AbortSignal): Promise<string> {
  const answer = await callEtcd(etcdSocket(cluster), 'POST', '/v3/kv/txn', { success }, signal);
  return (JSON.parse(answer) as { header: { revision: string } }).header.revision;
}

/** etcd takes up to 128 operations in one transaction. */
function* chunks<T>(all: readonly T[], size = 100): Generator<T[]> {
  for (let from = 0; from < all.length; from += size) {
    yield all.slice(from, from + size);
  }
}

const base64 = (value: string) => Buffer.from(value).toString('base64');
const text = (key: string) => Buffer.from(key, 'base64').toString();
