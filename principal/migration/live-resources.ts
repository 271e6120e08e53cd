import { Semaphore } from '../../lib/base/index.ts';
import { apiVersionOf, type KubeClient, type KubeObject, pods } from '../../lib/kube/index.ts';
import type { ManagedResource, MovingApplication } from './objects.ts';

/** UIDs of live objects, by group, kind, namespace and name. */
export type Uids = Readonly<Record<string, string>>;

const workloads = ['Deployment', 'StatefulSet', 'DaemonSet'];
const parallel = 8;

/** The UIDs of the resources that an Application manages on a cluster, and of the pods of its workloads. */
export async function liveUids(
  cluster: KubeClient,
  application: MovingApplication,
  signal: AbortSignal,
): Promise<Uids> {
  const uids: Record<string, string> = {};
  const turns = new Semaphore(parallel);
  await Promise.all(
    (application.status?.resources ?? []).map((resource) =>
      turns.run(async () => {
        const object = await read(cluster, resource, signal);
        if (object === undefined) {
          return;
        }
        uids[keyOfResource(resource)] = object.metadata.uid ?? '';
        if (resource.group === 'apps' && workloads.includes(resource.kind)) {
          Object.assign(uids, await podsOf(cluster, object, signal));
        }
      }),
    ),
  );
  return uids;
}

/** What is not the same object any more. */
export function replacedObjects(before: Uids, after: Uids): string[] {
  return Object.keys(before).filter((key) => before[key] !== after[key]);
}

function keyOfResource({ group = '', kind, namespace = '', name }: ManagedResource): string {
  return `${group}/${kind} ${namespace}/${name}`;
}

async function read(
  cluster: KubeClient,
  resource: ManagedResource,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const { group = '', version, kind, namespace, name } = resource;
  const type = await cluster.resolve(apiVersionOf({ group, version }), kind, signal);
  return type && (await cluster.get(type, { ...(type.namespaced ? { namespace } : {}), name }, signal));
}

async function podsOf(cluster: KubeClient, workload: KubeObject, signal: AbortSignal): Promise<Uids> {
  const { matchLabels = {} } =
    (workload as { spec?: { selector?: { matchLabels?: Record<string, string> } } }).spec?.selector ?? {};
  const labelSelector = Object.entries(matchLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
  if (labelSelector === '') {
    return {};
  }
  const { namespace } = workload.metadata;
  const found = await cluster.list(pods, { namespace, labelSelector, signal });
  const running = found.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return Object.fromEntries(running.map(({ metadata }) => [`/Pod ${namespace}/${metadata.name}`, metadata.uid ?? '']));
}
